"""What a serving process knows about the networks, kept fresh by the database.

Each change of a network, a new head included, is announced on a channel within the
transaction that makes it. As long as the process listens, what it has read is what
holds; while it cannot listen, heads are read again for each request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from postgres.connections import Connections
from postgres.errors import Unavailable
from postgres.listener import Listener
from postgres.statement import Row, Statement, read_bool, read_int8

logger = logging.getLogger(__name__)

CHANNEL = "portcullis_network"
"""Where changes are announced; the payload is the network's id."""

RETRY_SECONDS = 0.25
"""Pause after a reading that failed; while the database is down it costs nothing."""

_HOSTS_REMEMBERED = 1_000
"""Host headers; whoever sends others waits half a microsecond more."""

_ALL_NETWORKS = Statement(
    """
    SELECT id, slug, name, chain_id, array_to_string(tracers, ','),
        emit_total_difficulty, head_number, head_hash, safe_hash, finalized_hash,
        (SELECT string_agg(h.name, ',') FROM networks_hostname h
         WHERE h.network_id = networks_network.id),
        upstream_url
    FROM networks_network ORDER BY id
    """
)


@dataclass(frozen=True, slots=True)
class NetworkView:
    """A network as it stands at one moment.

    head_number, head_hash: None while there is not even a genesis block.
    safe_hash, finalized_hash: what the forkchoice says, else the head.
    upstream_url: of the node that takes transactions, "" for none; may hold a secret.
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
    upstream_url: str = field(default="", repr=False)


class Directory:
    """All networks, by the ways in which a request may name one.

    default_slug: the network for hosts that are no network's; "": the oldest one.
    """

    def __init__(
        self, connections: Connections, listener: Listener, *, default_slug: str = ""
    ) -> None:
        self._connections = connections
        self._listener = listener
        self._default_slug = default_slug
        self._by_id: dict[int, NetworkView] | None = None
        self._by_slug: dict[str, NetworkView] = {}
        self._by_host: dict[str, NetworkView] = {}
        self._found_by_host: dict[str, NetworkView] = {}
        """What Host headers, as they were sent, have been found to mean."""
        self._default: NetworkView | None = None
        self._read_in_epoch = 0
        self._waiters: list[asyncio.Future[None]] = []
        self._reading: asyncio.Task[None] | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._followers: list[Callable[[], None]] = []
        listener.listen(CHANNEL, lambda _: self._refresh_soon())
        listener.at_epoch(self._refresh_soon)

    @property
    def is_fresh(self) -> bool:
        """Whether what is known is what holds: read while listening, not missed since."""
        epoch = self._listener.epoch
        return epoch != 0 and epoch == self._read_in_epoch

    def all(self) -> list[NetworkView]:
        """Return all networks, the oldest first.

        Raises: Unavailable, like all that follow, while they were never read.
        """
        return list(self._known().values())

    def get(self, network_id: int) -> NetworkView | None:
        """Return the network with an id."""
        return self._known().get(network_id)

    def by_slug(self, slug: str) -> NetworkView | None:
        """Return the network that a base address names."""
        self._known()
        return self._by_slug.get(slug)

    def by_host(self, host: str) -> NetworkView | None:
        """Return the network of a Host header, else the default one.

        None only when there is no network at all.
        """
        found = self._found_by_host.get(host)
        if found is not None:
            return found
        self._known()
        found = self._by_host.get(_without_port(host.lower())) or self._default
        if found is not None and len(self._found_by_host) < _HOSTS_REMEMBERED:
            self._found_by_host[host] = found
        return found

    def current(self, network_id: int) -> NetworkView | Awaitable[NetworkView]:
        """Return a network with a head that may be relied on.

        At once while the process listens, else an awaitable that reads it.
        Raises: Unavailable, also when there is no such network.
        """
        epoch = self._listener.epoch
        if epoch != 0 and epoch == self._read_in_epoch:  # `is_fresh`, without the call
            return self._get_existing(network_id)
        return self.reread(network_id)

    async def reread(self, network_id: int) -> NetworkView:
        """Return a network as it stood in the database after this call was made.

        Raises: Unavailable, also when there is no such network.
        """
        await self.refresh()
        return self._get_existing(network_id)

    def follow(self, look: Callable[[], None]) -> None:
        """Call back each time the networks have been read: heads may be other ones."""
        self._followers.append(look)

    def refresh(self) -> asyncio.Future[None]:
        """Read all networks again, as one for all who ask at the same time.

        One reading ends before the next begins. Hence what is known follows the
        database's own order, and a head never goes back to an older one.
        """
        waiter: asyncio.Future[None] = self._connections.loop.create_future()
        self._waiters.append(waiter)
        if self._reading is None:
            self._reading = self._connections.loop.create_task(self._read_while_asked())
        return waiter

    async def start(self) -> None:
        """Read the networks; when that fails, the listener has them read later."""
        with suppress(Unavailable):
            await self.refresh()

    async def stop(self) -> None:
        """End a reading that is under way or planned."""
        if self._retry is not None:
            self._retry.cancel()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    def _refresh_soon(self) -> None:
        """Refresh with nobody waiting; a failure shows in `is_fresh`."""
        self.refresh().add_done_callback(_ignore_failure)

    def _retry_later(self) -> None:
        """Read again soon: the announcement that was missed is not repeated."""
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
                epoch = self._listener.epoch
                try:
                    rows = await self._connections.fetch(_ALL_NETWORKS)
                except Unavailable as error:
                    self._read_in_epoch = 0
                    _settle(waiters, error)
                    self._retry_later()
                else:
                    self._replace([_view(row) for row in rows])
                    self._read_in_epoch = epoch
                    _settle(waiters, None)
                    self._tell_followers()
        except BaseException:
            self._read_in_epoch = 0  # whatever it was, what is known may be old
            _settle(waiters, Unavailable("the networks could not be read"))
            raise
        finally:
            self._reading = None
            _settle(self._waiters, Unavailable("the directory was stopped"))

    def _tell_followers(self) -> None:
        """Call the followers; one that fails is no reason not to know the networks."""
        for look in self._followers:
            try:
                look()
            except Exception:
                logger.exception("a follower of the networks failed")

    def _replace(self, views: list[NetworkView]) -> None:
        self._by_id = {view.id: view for view in views}
        self._by_slug = {view.slug: view for view in views}
        self._by_host = {name: view for view in views for name in view.host_names}
        self._found_by_host = {}
        oldest = views[0] if views else None
        self._default = self._by_slug.get(self._default_slug, oldest)

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
    """Return a Host header's name: `a.example`, `127.0.0.1`, `[::1]`.

    The dot at the end of an absolute name, as DNS has them, means nothing here.
    """
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).removesuffix(".")


def _view(row: Row) -> NetworkView:
    def words(column: bytes | None) -> frozenset[str]:
        return frozenset((column or b"").decode().split(",")) - {""}

    head_hash = row[7]
    return NetworkView(
        id=read_int8(row[0] or b""),
        slug=(row[1] or b"").decode(),
        name=(row[2] or b"").decode(),
        chain_id=read_int8(row[3] or b""),
        tracers=words(row[4]),
        emit_total_difficulty=read_bool(row[5] or b""),
        head_number=None if row[6] is None else read_int8(row[6]),
        head_hash=head_hash,
        safe_hash=row[8] or head_hash,
        finalized_hash=row[9] or head_hash,
        host_names=words(row[10]),
        upstream_url=(row[11] or b"").decode(),
    )
