"""All networks with their heads, cached in a worker and read again after each change.

Each change of a network, a new head included, is appended to a stream of the outbox in
the same transaction. While the process knows all changes, the cached networks are
current. Otherwise networks are read again for each request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import orjson

from jsonrpc.later import Later
from outbox.streams import ACCESS, blocks
from outbox.subscriber import Subscriber
from postgres.connections import Connections
from postgres.errors import Unavailable
from postgres.statement import Row, Statement, read_bool, read_int8

logger = logging.getLogger(__name__)

RETRY_SECONDS = 0.25
"""Pause after a failed read."""

_HOSTS_CACHED = 1_000
"""Maximum number of cached Host headers. A header that is not cached costs half a
microsecond."""

_ALL_NETWORKS = Statement(
    """
    SELECT id, slug, name, chain_id, array_to_string(tracers, ','),
        emit_total_difficulty, head_number, head_hash, safe_hash, finalized_hash,
        (SELECT string_agg(h.name, ',') FROM networks_hostname h
         WHERE h.network_id = networks_network.id),
        (SELECT json_agg(json_build_array(u.id, u.url, u.headers)
                         ORDER BY u.position, u.id)::text
         FROM networks_upstream u
         WHERE u.network_id = networks_network.id AND u.is_enabled),
        state,
        is_preparing,
        CASE WHEN is_preparing THEN (
            SELECT best_number FROM nodeapi_followerstatus s
            WHERE s.network_id = networks_network.id) END,
        checkpoint_number,
        oldest_number
    FROM networks_network ORDER BY id
    """
)


@dataclass(frozen=True, slots=True)
class UpstreamView:
    """An enabled upstream. The URL and the headers may contain secrets."""

    id: int
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False, hash=False)


@dataclass(frozen=True, slots=True)
class NetworkView:
    """A network at one moment.

    head_number, head_hash: None while the network has no blocks.
    safe_hash, finalized_hash: the forkchoice's blocks. Without a forkchoice, they are None
        if the network has upstreams, and otherwise the head.
    upstreams: the enabled upstreams, in the configured order.
    is_visible: whether customers see the network.
    is_preparing: whether it is being imported for the first time.
    target_number: number of the upstreams' head while it is preparing, None if unknown.
    checkpoint_number: number of the block at which the network started, None for block 0.
        From it on, the state is sparse: a value without a row is unknown.
    oldest_number: number of the oldest stored block but block 0 if the network started at
        a checkpoint, None if no blocks are missing.
    """

    id: int
    slug: str
    name: str
    chain_id: int
    tracers: frozenset[str]
    emit_total_difficulty: bool
    head_number: int | None
    head_hash: bytes | None
    safe_hash: bytes | None
    finalized_hash: bytes | None
    host_names: frozenset[str]
    upstreams: tuple[UpstreamView, ...] = ()
    is_visible: bool = True
    is_preparing: bool = False
    target_number: int | None = None
    checkpoint_number: int | None = None
    oldest_number: int | None = None


class Directory:
    """All networks that are not retired, by id, slug and host name.

    default_slug: the network for unknown hosts. If empty, it is the oldest network.
    While it is retired, unknown hosts have no network, because another chain would
    answer their requests.
    """

    def __init__(
        self,
        connections: Connections,
        subscriber: Subscriber,
        *,
        default_slug: str = "",
    ) -> None:
        self._connections = connections
        self._subscriber = subscriber
        self._default_slug = default_slug
        self._by_id: dict[int, NetworkView] | None = None
        self._current: dict[int, Later[NetworkView]] = {}
        """The networks by id, as results that are created once for all requests."""
        self._by_slug: dict[str, NetworkView] = {}
        self._by_host: dict[str, NetworkView] = {}
        self._found_by_host: dict[str, NetworkView] = {}
        """Cached results of `by_host`, by the header as it was sent."""
        self._default: NetworkView | None = None
        self._retired: dict[str, str] = {}
        """The slugs of retired networks, by slug and by host name. The key "" is the
        default network."""
        self._read_in_epoch = 0
        self._waiters: list[asyncio.Future[None]] = []
        self._reading: asyncio.Task[None] | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._subscribers: list[Callable[[], None]] = []
        self._end_of_blocks: dict[int, Callable[[], None]] = {}
        """Functions that end the subscriptions to the networks' blocks, by network id."""
        subscriber.subscribe(ACCESS, self._access_changed, self._refresh_soon)
        subscriber.at_epoch(self._refresh_soon)

    @property
    def is_fresh(self) -> bool:
        """Whether the cached networks are current: read in the subscriber's epoch."""
        epoch = self._subscriber.epoch
        return epoch != 0 and epoch == self._read_in_epoch

    def all(self) -> list[NetworkView]:
        """Return all networks that are not retired, the oldest first.

        Raises: Unavailable if the networks have never been read, as do all methods
        that return networks.
        """
        return list(self._known().values())

    def get(self, network_id: int) -> NetworkView | None:
        """Return the network with an id, or None."""
        return self._known().get(network_id)

    def by_slug(self, slug: str) -> NetworkView | None:
        """Return the network with a slug, or None."""
        found = self._by_slug.get(slug)
        if found is None:
            self._known()
        return found

    def by_host(self, host: str) -> NetworkView | None:
        """Return the network of a Host header, otherwise the default network.

        None if that network is retired, or no network exists.
        """
        found = self._found_by_host.get(host)
        if found is not None:
            return found
        self._known()
        name = _without_port(host.lower())
        if name in self._retired:
            return None
        found = self._by_host.get(name) or self._default
        if found is not None and len(self._found_by_host) < _HOSTS_CACHED:
            self._found_by_host[host] = found
        return found

    def retired(self, slug: str, host: str) -> str:
        """Return the slug of the retired network that a request is for, otherwise "".

        slug: from the path; "" for the network of the Host header.
        """
        if slug:
            return self._retired.get(slug, "")
        name = _without_port(host.lower())
        if name in self._by_host:
            return ""
        return self._retired.get(name) or self._retired.get("", "")

    def current(self, network_id: int) -> Later[NetworkView]:
        """Return a network with its current head.

        The result is complete while the process knows all changes. Otherwise the
        network is read again. Fails with Unavailable if the read fails or the network
        does not exist.
        """
        epoch = self._subscriber.epoch
        if epoch == 0 or epoch != self._read_in_epoch:  # `is_fresh`, without the call
            return self.reread(network_id)
        current = self._current.get(network_id)
        if current is None:
            return Later.failed(Unavailable("the network was removed"))
        return current

    def reread(self, network_id: int) -> Later[NetworkView]:
        """Return a network as it is in the database after this call.

        Fails with Unavailable, also without such a network.
        """
        refreshed = Later.from_future(self.refresh())
        return refreshed.then(lambda _: self._get_existing(network_id))

    def subscribe(self, look: Callable[[], None]) -> None:
        """Call a function after each read of the networks. Heads may have changed."""
        self._subscribers.append(look)

    def refresh(self) -> asyncio.Future[None]:
        """Read all networks again; concurrent calls share a read.

        Reads do not overlap, so that an older result never replaces a newer one.
        """
        waiter: asyncio.Future[None] = self._connections.loop.create_future()
        self._waiters.append(waiter)
        if self._reading is None:
            self._reading = self._connections.loop.create_task(self._read_while_asked())
        return waiter

    async def start(self) -> None:
        """Read the networks. After a failure they are read when an epoch begins."""
        with suppress(Unavailable):
            await self.refresh()

    async def stop(self) -> None:
        """Cancel a read that is in progress or scheduled."""
        if self._retry is not None:
            self._retry.cancel()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    def _access_changed(self, subject: str) -> None:
        if subject.startswith("network:"):
            self._refresh_soon()

    def _refresh_soon(self) -> None:
        """Refresh in the background. After a failure, `is_fresh` is false."""
        self.refresh().add_done_callback(_ignore_failure)

    def _retry_later(self) -> None:
        """Schedule another read, because a change is reported only once."""
        if self._retry is not None:
            self._retry.cancel()
        self._retry = self._connections.loop.call_later(
            RETRY_SECONDS, self._refresh_soon
        )

    async def _read_while_asked(self) -> None:
        waiters: list[asyncio.Future[None]] = []
        try:
            while self._waiters:
                waiters, self._waiters = self._waiters, []
                epoch = self._subscriber.epoch
                try:
                    rows = await self._connections.fetch(_ALL_NETWORKS)
                except Unavailable as error:
                    self._read_in_epoch = 0
                    _settle(waiters, error)
                    self._retry_later()
                else:
                    self._replace(rows)
                    self._read_in_epoch = epoch
                    _settle(waiters, None)
                    self._notify_subscribers()
        except BaseException:
            self._read_in_epoch = 0  # the cached networks may be outdated
            _settle(waiters, Unavailable("the networks could not be read"))
            raise
        finally:
            self._reading = None
            _settle(self._waiters, Unavailable("the directory was stopped"))

    def _notify_subscribers(self) -> None:
        """Notify subscribers. A failing subscriber does not prevent the update."""
        for look in self._subscribers:
            try:
                look()
            except Exception:
                logger.exception("a subscriber of the networks failed")

    def _replace(self, rows: list[Row]) -> None:
        everything = [(_view(row), row[12] == b"retired") for row in rows]
        views = [view for view, is_retired in everything if not is_retired]
        self._by_id = {view.id: view for view in views}
        self._current = {view.id: Later(view) for view in views}
        self._by_slug = {view.slug: view for view in views}
        self._by_host = {name: view for view in views for name in view.host_names}
        self._found_by_host = {}
        retired = [view for view, is_retired in everything if is_retired]
        names = {view.slug: view for view in retired}
        names |= {name: view for view in retired for name in view.host_names}
        by_default = {view.slug: view for view, _ in everything}
        oldest = everything[0][0] if everything else None
        default = by_default.get(self._default_slug, oldest)
        if default in retired:
            names[""] = default
            default = None
        self._default = default
        self._retired = {name: view.slug for name, view in names.items()}
        self._follow_blocks()

    def _follow_blocks(self) -> None:
        """Subscribe to the blocks of new networks, and unsubscribe from removed ones."""
        for network_id in self._current.keys() - self._end_of_blocks.keys():
            self._end_of_blocks[network_id] = self._subscriber.subscribe(
                blocks(network_id), lambda _: self._refresh_soon(), self._refresh_soon
            )
        for network_id in self._end_of_blocks.keys() - self._current.keys():
            self._end_of_blocks.pop(network_id)()

    def _known(self) -> dict[int, NetworkView]:
        if self._by_id is None:
            raise Unavailable("the networks have not been read yet")
        return self._by_id

    def _get_existing(self, network_id: int) -> NetworkView:
        view = None if self._by_id is None else self._by_id.get(network_id)
        if view is None:
            self._known()
            raise Unavailable("the network was removed")
        return view


def _settle(waiters: list[asyncio.Future[None]], error: Unavailable | None) -> None:
    for waiter in waiters:
        if waiter.done():
            continue
        if error is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(error)


def _ignore_failure(future: asyncio.Future[None]) -> None:
    if not future.cancelled():
        future.exception()


def _without_port(host: str) -> str:
    """Return the host of a Host header, such as `a.example`, `127.0.0.1` or `[::1]`.

    The dot at the end of an absolute DNS name is removed.
    """
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).removesuffix(".")


def _view(row: Row) -> NetworkView:
    def words(column: bytes | None) -> frozenset[str]:
        return frozenset((column or b"").decode().split(",")) - {""}

    head_hash = row[7]
    upstreams = tuple(UpstreamView(*each) for each in orjson.loads(row[11] or b"[]"))
    unknown = None if upstreams else head_hash
    is_preparing = read_bool(row[13] or b"")
    return NetworkView(
        id=read_int8(row[0] or b""),
        slug=(row[1] or b"").decode(),
        name=(row[2] or b"").decode(),
        chain_id=read_int8(row[3] or b""),
        tracers=words(row[4]),
        emit_total_difficulty=read_bool(row[5] or b""),
        head_number=None if row[6] is None else read_int8(row[6]),
        head_hash=head_hash,
        safe_hash=row[8] or unknown,
        finalized_hash=row[9] or unknown,
        host_names=words(row[10]),
        upstreams=upstreams,
        is_visible=row[12] == b"visible" and not is_preparing,
        is_preparing=is_preparing,
        target_number=None if row[14] is None else read_int8(row[14]),
        checkpoint_number=None if row[15] is None else read_int8(row[15]),
        oldest_number=None if row[16] is None else read_int8(row[16]),
    )
