"""Unknown values that a web process fetches, proves and stores for its customers.

Keys of all requests in flight are shared, merged into batches, and proved against the
network's head. A stored value answers for every block since the checkpoint, so that a key
is fetched once, by whichever process asks first.

Customers take turns, and each may only ask for so many keys at a time and in a second. So a
scan of unknown slots delays other customers by a batch, and leaves the upstreams' rate to
the follower.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from eth_typing import Address, Hash32

from evm.proved_state import Keys, Slot
from jsonrpc.errors import ServiceUnavailable
from jsonrpc.turns import FairQueue
from nodeapi.errors.blocks import HistoryPruned, NotProved
from nodeapi.errors.proofs import TooManyUnknownValues
from nodeapi.proofs.fetch import Fetched, fetch
from nodeapi.proofs.past_reads import PastReader
from nodeapi.proofs.values import Anchor, NoProof
from nodeapi.proofs.writer import ValueWriter
from nodeapi.upstreams.errors import UpstreamError, UpstreamUnavailable
from nodeapi.upstreams.hints import call_keys
from postgres.errors import Unavailable
from postgres.statement import BYTEA, INT8, Statement, int8, read_int8

if TYPE_CHECKING:
    from networks.directory import Directory, NetworkView
    from nodeapi.proofs.unknown import UnknownInCall
    from nodeapi.upstreams.pool import UpstreamPool
    from postgres.connections import Connections

logger = logging.getLogger(__name__)

MAX_KEYS = 2048
"""Keys that a customer may wait for in a process. One request may have more, alone."""
KEYS_PER_SECOND = 500
"""Keys that a customer may ask for in a second, in a process. Up to `MAX_KEYS` at once."""
BATCH_KEYS = 200
"""Keys that are fetched together. They take up to four requests, if all are accounts."""
BATCHES = 2
"""Batches of one network that are fetched at a time. They take up to half of the requests
that an upstream client has in flight. The follower has a client of its own."""
HINTS = 4
"""Access lists that are asked for at a time."""
FETCH_SECONDS = 20.0
"""Time limit of a batch, in which every upstream is asked."""
HINT_SECONDS = 5.0
"""Time limit for an upstream's access list of a call."""
HINTED_KEYS = 1024
"""Most keys that an upstream may name for a call."""
BLOCKS_BACK = (0, 4, 32, 96)
"""Blocks below the head against which values are proved, one after the other. An upstream
that lags behind has only the older ones, and nodes keep some 128 blocks."""
_CUSTOMERS_KEPT = 4096

_ANCHORS = Statement(
    """
    SELECT b.number, b.hash, b.state_root
    FROM networks_network w JOIN nodeapi_block b
        ON b.network_id = w.id AND b.is_canonical AND b.number = w.head_number - $2
    WHERE w.id = $1 AND b.number >= w.checkpoint_number
    """,
    [INT8.oid, INT8.oid],
)
"""network_id, blocks below the head → number, hash and state root of the block."""

_AT_HASH = Statement(
    """
    SELECT b.number, b.hash, b.state_root
    FROM nodeapi_block b WHERE b.network_id = $1 AND b.hash = $2
    """,
    [INT8.oid, BYTEA.oid],
)

Key = Address | Slot
"""An account, or a slot of an account."""


class _Wanted:
    """The keys of one network that are queued or fetched."""

    def __init__(self) -> None:
        self.queue: FairQueue[Key] = FairQueue()
        self.proved: dict[Key, asyncio.Future[None]] = {}
        """For each key, a future that completes when its value is stored."""
        self.batches = 0
        self.is_planned = False


class ValueReader:
    """Fetches unknown values for the requests of a process, on one event loop.

    conninfo: libpq's connection string, for the connection that stores values.
    """

    def __init__(
        self,
        connections: Connections,
        directory: Directory,
        upstreams: UpstreamPool,
        conninfo: str,
    ) -> None:
        self._connections = connections
        self._directory = directory
        self._upstreams = upstreams
        self._writer = ValueWriter(conninfo)
        self.past = PastReader(self._admit, self._nodes_at, self._writer, upstreams)
        """Proves values of states below the checkpoint."""
        self._wanted: dict[int, _Wanted] = {}
        self._held: Counter[Hashable] = Counter()
        """Keys for which each customer waits."""
        self._rates: OrderedDict[Hashable, float] = OrderedDict()
        """When the keys that each customer has asked for are used up by its rate."""
        self._fetching: set[asyncio.Task[None]] = set()
        self._hints = asyncio.Semaphore(HINTS)
        self._is_closed = False

    async def close(self) -> None:
        """Cancel all fetches, and close the connection. Keys in the queue are not fetched."""
        self._is_closed = True
        tasks = [*self._fetching]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.past.close()
        await self._writer.close()

    async def prove(self, network_id: int, keys: Keys, customer: Hashable) -> None:
        """Store unknown values of a network. Those in flight are waited for.

        Raises: NotProved if no upstream proves one of them; TooManyUnknownValues;
            Unavailable.
        """
        count = len(keys)
        self._admit(customer, count)
        wanted = self._wanted.setdefault(network_id, _Wanted())
        futures = [
            self._future(network_id, wanted, key, customer) for key in _members(keys)
        ]
        self._held[customer] += count
        try:
            # Not `gather`, which would cancel the futures that others wait for.
            await asyncio.wait(futures)
        finally:
            self._held[customer] -= count
            if not self._held[customer]:
                del self._held[customer]
        for future in futures:
            future.result()

    async def named_by_upstream(
        self, network: NetworkView, unknown: UnknownInCall
    ) -> Keys:
        """Return what a call may read, as an upstream's access list names it.

        It is empty if none names anything. It only says what to fetch.
        """
        overrides = [] if unknown.overrides is None else [unknown.overrides]
        for client in self._upstreams.by_availability(network):
            try:
                async with asyncio.timeout(HINT_SECONDS), self._hints:
                    return await call_keys(
                        *(client, unknown.call, unknown.block_hash, HINTED_KEYS),
                        *overrides,
                    )
            except (UpstreamError, UpstreamUnavailable, TimeoutError):
                continue
        return Keys()

    async def nodes_at(
        self, network: NetworkView, block_hash: bytes, keys: Keys, customer: Hashable
    ) -> tuple[Anchor, Fetched]:
        """Return the trie nodes that prove keys in the state after a stored block.

        Raises: NotProved, HistoryPruned below the checkpoint, if no upstream proves them;
            TooManyUnknownValues; Unavailable.
        """
        self._admit(customer, len(keys))
        return await self._nodes_at(network, block_hash, keys)

    async def _nodes_at(
        self, network: NetworkView, block_hash: bytes, keys: Keys
    ) -> tuple[Anchor, Fetched]:
        rows = await self._connections.fetch(_AT_HASH, [int8(network.id), block_hash])
        if not rows:
            raise Unavailable("the block was deleted")
        anchor, checkpoint = _anchor(rows[0]), network.checkpoint_number or 0
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                return anchor, await self._ask(network, anchor, keys)
        except (NoProof, TimeoutError) as error:
            if anchor.number < checkpoint:
                raise HistoryPruned(checkpoint) from error
            raise NotProved from error

    # Bounds

    def _admit(self, customer: Hashable, count: int) -> None:
        """Count keys of a customer. Raises: TooManyUnknownValues."""
        held = self._held.get(customer, 0)
        now = time.monotonic()
        used_up = max(self._rates.get(customer, 0.0), now)
        if (held and held + count > MAX_KEYS) or (
            used_up - now > MAX_KEYS / KEYS_PER_SECOND
        ):
            raise TooManyUnknownValues(MAX_KEYS, KEYS_PER_SECOND)
        self._rates[customer] = used_up + count / KEYS_PER_SECOND
        self._rates.move_to_end(customer)
        if len(self._rates) > _CUSTOMERS_KEPT:
            self._rates.popitem(last=False)

    # Batches

    def _future(
        self, network_id: int, wanted: _Wanted, key: Key, customer: Hashable
    ) -> asyncio.Future[None]:
        """Return the future of a key, which is queued unless it is in flight."""
        future = wanted.proved.get(key)
        if future is None:
            loop = asyncio.get_running_loop()
            future = wanted.proved[key] = loop.create_future()
            wanted.queue.push(customer, key)
            if not wanted.is_planned:
                # Later, so that requests that arrived together share a batch.
                wanted.is_planned = True
                loop.call_soon(self._dispatch, network_id, wanted)
        return future

    def _dispatch(self, network_id: int, wanted: _Wanted) -> None:
        """Start batches while there are keys and places."""
        wanted.is_planned = False
        while len(wanted.queue) and wanted.batches < BATCHES:
            keys = Keys()
            for _ in range(min(len(wanted.queue), BATCH_KEYS)):
                _, key = wanted.queue.pop()
                _add(keys, key)
            if self._is_closed:
                _settle(wanted, keys, ServiceUnavailable())
                continue
            wanted.batches += 1
            task = asyncio.create_task(self._fetch(network_id, wanted, keys))
            self._fetching.add(task)
            task.add_done_callback(self._fetching.discard)

    async def _fetch(self, network_id: int, wanted: _Wanted, keys: Keys) -> None:
        """Prove and store a batch, and complete its futures."""
        error: Exception = NotProved()
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                await self._store(network_id, wanted, keys)
        except TimeoutError:
            pass
        except Unavailable as unavailable:
            error = unavailable
        except asyncio.CancelledError:
            error = ServiceUnavailable()
            raise
        except Exception:
            logger.exception("%d values of a sparse state", len(keys))
            error = ServiceUnavailable()
        finally:
            _settle(wanted, keys, error)
            wanted.batches -= 1
            self._dispatch(network_id, wanted)

    async def _store(self, network_id: int, wanted: _Wanted, keys: Keys) -> None:
        """Prove keys against the newest block that an upstream has, and store the values.

        keys: each is removed from it when it is stored. Raises: Unavailable.
        """
        network = await self._directory.current(network_id)
        for back in BLOCKS_BACK:
            rows = await self._connections.fetch(
                _ANCHORS, [int8(network_id), int8(back)]
            )
            if not rows:
                break
            anchor = _anchor(rows[0])
            left = Keys()
            try:
                fetched = await self._ask(network, anchor, keys)
            except NoProof as error:
                left = error.keys
                if len(left) in (0, len(keys)):
                    continue
                others = Keys(keys.accounts - left.accounts, keys.slots - left.slots)
                try:
                    fetched = await self._ask(network, anchor, others)
                except NoProof:
                    continue
            await self._writer.write(network_id, anchor, fetched.values)
            done = Keys(keys.accounts - left.accounts, keys.slots - left.slots)
            keys.accounts &= left.accounts
            keys.slots &= left.slots
            _settle(wanted, done, None)
            if not keys:
                break

    async def _ask(self, network: NetworkView, anchor: Anchor, keys: Keys) -> Fetched:
        """Return proved values. Upstreams that fail are asked last for a while."""
        upstreams = self._upstreams
        clients = upstreams.by_availability(network)
        return await fetch(
            clients, anchor, keys, lambda client, _: upstreams.avoid(client)
        )


def _members(keys: Keys) -> list[Key]:
    members: list[Key] = [*keys.accounts]
    return [*members, *keys.slots]


def _add(keys: Keys, key: Key) -> None:
    if isinstance(key, tuple):
        keys.slots.add(key)
    else:
        keys.accounts.add(key)


def _anchor(row: Sequence[bytes | None]) -> Anchor:
    number, block_hash, state_root = row
    assert block_hash is not None and state_root is not None
    return Anchor(read_int8(number or b""), Hash32(block_hash), Hash32(state_root))


def _settle(wanted: _Wanted, keys: Keys, error: Exception | None) -> None:
    """Complete the futures of keys that are still open."""
    for key in _members(keys):
        future = wanted.proved.pop(key, None)
        if future is None or future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
            future.exception()  # all callers may have disconnected
