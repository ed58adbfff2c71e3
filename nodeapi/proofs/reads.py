"""Unknown values that a web process fetches, proves and stores for its customers.

Keys of all requests in flight are shared, merged into batches, and proved against the
network's head. A stored value answers for every block since the checkpoint, so that a key
is fetched once, by whichever process asks first. Readers of the head do not wait until it
is stored: the store's cache has it as soon as it is proved.

Customers take turns, and each may only ask for so many keys at a time and in a second. So a
scan of unknown slots delays other customers by a batch, and leaves the upstreams' rate to
the follower.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from eth_typing import Address, Hash32

from evm.proof_nodes import ProofNodes
from evm.proved_state import Keys, Slot
from jsonrpc.errors import ServiceUnavailable
from jsonrpc.turns import FairQueue, Turns
from nodeapi.errors.blocks import HistoryPruned, NotProved
from nodeapi.errors.proofs import TooManyUnknownValues, TooMuchToProve
from nodeapi.proofs.fetch import Fetched, fetch
from nodeapi.proofs.past_reads import PastReader
from nodeapi.proofs.values import Anchor, NoProof
from nodeapi.proofs.writer import ValueWriter
from nodeapi.upstreams.errors import UpstreamError, UpstreamUnavailable
from nodeapi.upstreams.hints import call_keys
from postgres.errors import Unavailable

if TYPE_CHECKING:
    from evm.proved_state import ProvedValues
    from jsonrpc.later import Later
    from networks.directory import Directory, NetworkView
    from nodeapi.proofs.unknown import UnknownInCall
    from nodeapi.upstreams.pool import UpstreamPool

logger = logging.getLogger(__name__)

MAX_KEYS = 2048
"""Keys that a customer may wait for in a process. One request may have more, alone."""
KEYS_PER_SECOND = 500
"""Keys that a customer may ask for in a second, in a process. Up to `MAX_KEYS` at once."""
BATCH_KEYS = 200
"""Keys that are fetched together. They take up to four requests, if all are accounts."""
KEYS_AT_ONCE = 400
"""Keys of one network that are fetched at a time."""
BATCHES = 4
"""Batches of one network that are fetched at a time, for keys that do not arrive together.
They take up to half of the requests that an upstream client has in flight. The follower
has a client of its own."""
HINTS = 4
"""Access lists that are asked for at a time."""
FETCHES = 2
"""Fetches of trie nodes, and of values below checkpoints, at a time in a process. Customers
take turns."""
NODES_BYTES = 32 * 2**20
"""Maximum size of the trie nodes for one execution or proof."""
COLLECT_SECONDS = 0.002
"""Time for which keys are collected for another batch, multiplied by the number of batches
that are fetched already. So the first key does not wait, and those that follow it, such as
the other calls of a request, take few batches."""
STALE_SECONDS = 1.0
"""Time for which a stored value is remembered, for readers who have just missed it."""
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

Key = Address | Slot
"""An account, or a slot of an account."""


class ProvingStore(Protocol):
    """The methods of `nodeapi.store.Store` that `ValueReader` calls."""

    def canonical_hash(
        self, network_id: int, number_or_tag: int | str
    ) -> Later[bytes | None]:
        """Return the hash of a canonical block."""

    async def state_root(self, network_id: int, block_hash: bytes) -> tuple[bytes, int]:
        """Return the state root and the number of a block. Raises: Unavailable."""

    def keep_values(
        self, network_id: int, block_hash: bytes, values: ProvedValues
    ) -> None:
        """Cache values that were proved against the state root of a block."""


class _Value:
    """A value that is queued, fetched or written.

    proved: completes with the hash of a block for which the store's cache has the value.
    stored: completes when the database has it. Then it is remembered for a moment.
    """

    __slots__ = ("proved", "stored")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.proved: asyncio.Future[bytes] = loop.create_future()
        self.stored: asyncio.Future[None] = loop.create_future()


class _Wanted:
    """The keys of one network that are queued or fetched."""

    def __init__(self) -> None:
        self.queue: FairQueue[Key] = FairQueue()
        self.values: dict[Key, _Value] = {}
        self.batches = 0
        self.fetched = 0
        """Keys of all batches."""
        self.is_planned = False

    def end(self, keys: Keys) -> None:
        """Complete the values of keys, which are stored, and forget them later."""
        stored = {key: self.values[key] for key in _members(keys)}
        for value in stored.values():
            value.stored.set_result(None)
        loop = asyncio.get_running_loop()
        loop.call_later(STALE_SECONDS, self._forget, stored)

    def _forget(self, stored: Mapping[Key, _Value]) -> None:
        for key, value in stored.items():
            if self.values.get(key) is value:
                del self.values[key]

    def fail(self, keys: Keys, error: Exception) -> None:
        """Fail the values of keys, unless they are stored."""
        for key in _members(keys):
            value = self.values.pop(key, None)
            if value is None:
                continue
            for future in (value.proved, value.stored):
                if not future.done():
                    future.set_exception(error)
                    future.exception()  # all callers may have disconnected


class ValueReader:
    """Fetches unknown values for the requests of a process, on one event loop.

    conninfo: libpq's connection string, for the connection that stores values.
    """

    def __init__(
        self,
        store: ProvingStore,
        directory: Directory,
        upstreams: UpstreamPool,
        conninfo: str,
    ) -> None:
        self._store = store
        self._directory = directory
        self._upstreams = upstreams
        self._writer = ValueWriter(conninfo)
        self._turns = Turns(FETCHES)
        self.past = PastReader(
            self._admit, self._nodes_at, self._writer, upstreams, self._turns
        )
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

    async def prove(
        self,
        network_id: int,
        keys: Keys,
        customer: Hashable,
        block_hash: bytes | None = None,
    ) -> None:
        """Prove and store unknown values of a network. Those in flight are waited for.

        block_hash: of the block after which the caller reads them from the store, if it
            does. Values that the store's cache has for this block may be stored later.

        Raises: NotProved if no upstream proves one of them; TooManyUnknownValues;
            Unavailable.
        """
        count = len(keys)
        self._admit(customer, count)
        wanted = self._wanted.setdefault(network_id, _Wanted())
        values = [
            self._value(network_id, wanted, key, customer) for key in _members(keys)
        ]
        self._held[customer] += count
        try:
            await _settled(values, block_hash)
        finally:
            self._held[customer] -= count
            if not self._held[customer]:
                del self._held[customer]

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
    ) -> tuple[Anchor, ProofNodes]:
        """Return the trie nodes that prove keys in the state after a stored block.

        Raises: NotProved, HistoryPruned below the checkpoint, if no upstream proves them;
            TooManyUnknownValues; TooMuchToProve; Unavailable.
        """
        self._admit(customer, len(keys))
        nodes = ProofNodes()
        for part in _batches(keys):
            async with self._turns.place(customer):
                anchor, fetched = await self._nodes_at(network, block_hash, part)
            nodes.update(fetched.nodes)
            if nodes.size > NODES_BYTES:
                raise TooMuchToProve
        return anchor, nodes

    async def _nodes_at(
        self, network: NetworkView, block_hash: bytes, keys: Keys
    ) -> tuple[Anchor, Fetched]:
        anchor = await self._anchor(network.id, block_hash)
        checkpoint = network.checkpoint_number or 0
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

    def _value(
        self, network_id: int, wanted: _Wanted, key: Key, customer: Hashable
    ) -> _Value:
        """Return the value of a key, which is queued unless it is in flight."""
        value = wanted.values.get(key)
        if value is None:
            loop = asyncio.get_running_loop()
            value = wanted.values[key] = _Value(loop)
            wanted.queue.push(customer, key)
            if not wanted.is_planned:
                wanted.is_planned = True
                # Not now, so that requests that arrived together share a batch.
                pause = wanted.batches * COLLECT_SECONDS
                loop.call_later(pause, self._dispatch, network_id, wanted)
        elif value.stored.done():
            # Only once, because it was not stored if the chain was reorganised.
            del wanted.values[key]
        return value

    def _dispatch(self, network_id: int, wanted: _Wanted) -> None:
        """Start batches while there are keys and places."""
        wanted.is_planned = False
        while len(wanted.queue) and wanted.batches < BATCHES:
            count = min(len(wanted.queue), BATCH_KEYS, KEYS_AT_ONCE - wanted.fetched)
            if not count:
                break
            keys = Keys()
            for _ in range(count):
                _, key = wanted.queue.pop()
                _add(keys, key)
            if self._is_closed:
                wanted.fail(keys, ServiceUnavailable())
                continue
            wanted.batches += 1
            wanted.fetched += count
            task = asyncio.create_task(self._fetch(network_id, wanted, keys))
            self._fetching.add(task)
            task.add_done_callback(self._fetching.discard)

    async def _fetch(self, network_id: int, wanted: _Wanted, keys: Keys) -> None:
        """Prove and store a batch."""
        error: Exception = NotProved()
        count = len(keys)
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                await self._prove(network_id, wanted, keys)
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
            wanted.fail(keys, error)
            wanted.batches -= 1
            wanted.fetched -= count
            self._dispatch(network_id, wanted)

    async def _prove(self, network_id: int, wanted: _Wanted, keys: Keys) -> None:
        """Prove keys against the newest block that an upstream has, and store the values.

        keys: each is removed from it when it is stored. Raises: Unavailable.
        """
        network = await self._directory.current(network_id)
        for back in BLOCKS_BACK:
            number = (network.head_number or 0) - back
            if number < (network.checkpoint_number or 0):
                break
            block_hash = await self._store.canonical_hash(network_id, number)
            if block_hash is None:
                break
            anchor = await self._anchor(network_id, block_hash)
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
            done = Keys(keys.accounts - left.accounts, keys.slots - left.slots)
            self._store.keep_values(network_id, anchor.hash, fetched.values)
            for key in _members(done):
                wanted.values[key].proved.set_result(anchor.hash)
            await self._writer.write(network_id, anchor, fetched.values)
            keys.accounts &= left.accounts
            keys.slots &= left.slots
            wanted.end(done)
            if not keys:
                break

    async def _anchor(self, network_id: int, block_hash: bytes) -> Anchor:
        """Return a stored block. Raises: Unavailable."""
        state_root, number = await self._store.state_root(network_id, block_hash)
        return Anchor(number, Hash32(block_hash), Hash32(state_root))

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


def _batches(keys: Keys) -> Iterator[Keys]:
    """Yield keys in batches, as they may be fetched together."""
    members = _members(keys)
    for start in range(0, len(members), BATCH_KEYS):
        batch = Keys()
        for key in members[start : start + BATCH_KEYS]:
            _add(batch, key)
        yield batch


def _add(keys: Keys, key: Key) -> None:
    if isinstance(key, tuple):
        keys.slots.add(key)
    else:
        keys.accounts.add(key)


async def _settled(values: Sequence[_Value], block_hash: bytes | None) -> None:
    """Wait until values are stored, or proved at a block; see `ValueReader.prove`.

    A value that has been proved before was not found in the store's cache.
    """
    # Not `gather`, which would cancel the futures that others wait for.
    unproved = {value.proved for value in values if not value.proved.done()}
    if unproved:
        await asyncio.wait(unproved)
    unstored = [
        value.stored
        for value in values
        if value.proved not in unproved or value.proved.result() != block_hash
    ]
    if unstored:
        await asyncio.wait(unstored)
    for future in unstored:
        future.result()
