"""Customers' requests that only a network's upstreams can answer.

Transactions are checked here and sent to every upstream. The pending block and pending
transactions are read from upstreams, and cached for a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import orjson

from evm.fork import Fork
from networks.directory import NetworkView
from nodeapi.encoding import index
from nodeapi.errors import (
    NoUpstream,
    PendingBlockNotAvailable,
    PendingStateNotAvailable,
    RelayedError,
    TooManyRelayedCalls,
    TransactionRejected,
    UpstreamsUnavailable,
)
from nodeapi.pending import PendingBlock, pending_block, pending_transaction
from nodeapi.ports import Store
from nodeapi.sending.decoding import Submission, decode_submission
from nodeapi.sending.rules import HeadRules, check, check_size
from nodeapi.short_cache import ShortCache
from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.errors import (
    MethodUnavailable,
    UpstreamError,
    UpstreamUnavailable,
)
from nodeapi.upstreams.pool import UpstreamPool
from postgres.errors import Unavailable

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_CALLS = 256
"""Maximum number of relayed calls that a process has in flight."""
MAX_CALLS_OF_KEY = 32
"""Maximum number of relayed calls that an API key has in flight in a process."""

READ_SECONDS = 5.0
"""Time limit for reading from one upstream."""

PENDING_SECONDS = 1.0
"""Time for which a pending block, a pending transaction or its absence is cached. A
pending block is cached only until a new head."""

MAX_PENDING_BLOCK_BYTES = 16 * 2**20
"""Maximum size of an upstream's response with a pending block."""

CACHE_BYTES = 32 * 2**20
"""Size of the cache of pending blocks, and of the cache of pending transactions."""

LONG_BYTES = 2**14
"""Longer transactions are checked in a thread, because that may take milliseconds."""

_ALREADY_KNOWN = (
    "already known",  # geth, reth, Erigon
    "alreadyknown",  # Nethermind
    "already imported",  # anvil
    "known transaction",  # Besu
)
"""Parts of the messages of upstreams that have the transaction already."""

_ABSENT = b"null"


class Relay:
    """Sends transactions to upstreams, and reads pending blocks and transactions.

    payer: the id of the API key. All methods raise TooManyRelayedCalls while the key or
    the process has too many calls in flight.
    """

    def __init__(self, pool: UpstreamPool, store: Store) -> None:
        self._pool = pool
        self._store = store
        self._rules: dict[int, tuple[bytes, HeadRules]] = {}
        """Network id → hash of a head, and the rules that it determines."""
        self._blocks: ShortCache[tuple[int, bytes], PendingBlock] = ShortCache(
            PENDING_SECONDS, CACHE_BYTES
        )
        """By network id and head."""
        self._transactions: ShortCache[tuple[int, bytes], bytes] = ShortCache(
            PENDING_SECONDS, CACHE_BYTES
        )
        """By network id and hash. `null` for transactions that no upstream has."""
        self._reading: dict[Hashable, asyncio.Task[Any]] = {}
        """Reads in flight by key. Callers with the same key share a read."""
        self._sending: set[asyncio.Task[None]] = set()
        """Calls that send a transaction. They outlive their caller."""
        self._calls: Counter[int] = Counter()
        """Calls in flight, by API key."""

    async def close(self) -> None:
        """Cancel all calls."""
        tasks = [*self._sending, *self._reading.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def send(
        self,
        network: NetworkView,
        raw: bytes,
        payer: int,
        allow: Callable[[bytes], None],
    ) -> bytes:
        """Check a transaction, send it to every upstream, and return its hash.

        allow: called with the recipient, empty for a creation. Its error ends the call.

        Return as soon as one upstream has accepted the transaction. It is sent to the
        other upstreams even if the caller is cancelled.

        Raises: NoUpstream; TransactionRejected if the transaction breaks a rule;
            RelayedError with the first upstream's error if all reject it;
            UpstreamsUnavailable.
        """
        clients = self._pool.clients(network)
        if not clients:
            raise NoUpstream(network.slug)
        with self._in_flight(payer):
            rules = await self._head_rules(network)
            submission = await _checked(raw, rules)
            allow(submission.transaction.to)
            transaction_hash = submission.transaction.hash
            await self._broadcast(clients, raw)
        self._transactions.discard((network.id, transaction_hash))
        logger.info(
            "relayed transaction 0x%s to %s", transaction_hash.hex(), network.slug
        )
        return transaction_hash

    async def pending_block(
        self, network: NetworkView, payer: int
    ) -> PendingBlock | None:
        """Return the pending block of the first available upstream.

        None if that upstream has no pending block.

        Raises: RelayedError if upstreams answer with an error;
            PendingBlockNotAvailable if none answers.
        """
        key = (network.id, network.head_hash or b"")
        cached = self._blocks.get(key)
        if cached is not None:
            return cached
        with self._in_flight(payer):
            return await self._shared(key, lambda: self._read_block(network, key))

    async def pending_nonce(
        self, network: NetworkView, address: bytes, payer: int
    ) -> int:
        """Return the next nonce of an account after its pending transactions.

        It is the highest answer of all available upstreams, because a transaction that
        one of them has accepted may not have reached the others yet.

        Raises: RelayedError if upstreams answer with an error;
            PendingStateNotAvailable if none answers.
        """
        with self._in_flight(payer):
            clients = self._pool.by_availability(network)
            available = [c for c in clients if not self._pool.is_avoided(c)]
            answers = await asyncio.gather(
                *(self._nonce(client, address) for client in available or clients),
                return_exceptions=True,
            )
        nonces = [answer for answer in answers if isinstance(answer, int)]
        if nonces:
            return max(nonces)
        for answer in answers:
            if isinstance(answer, UpstreamError):
                raise RelayedError(answer.code, answer.message, answer.data)
        raise PendingStateNotAvailable

    async def pending_transaction(
        self, network: NetworkView, transaction_hash: bytes, payer: int
    ) -> bytes | None:
        """Return a transaction that is known to an upstream, as a JSON object.

        None if no available upstream has the transaction.
        """
        key = (network.id, transaction_hash)
        found = self._transactions.get(key)
        if found is None:
            with self._in_flight(payer):
                found = await self._shared(
                    key, lambda: self._read_transaction(network, key)
                )
        return None if found is _ABSENT else found

    @contextmanager
    def _in_flight(self, payer: int) -> Iterator[None]:
        """Count a call while it is in flight. Raises: TooManyRelayedCalls."""
        calls = self._calls
        if calls[payer] >= MAX_CALLS_OF_KEY or calls.total() >= MAX_CALLS:
            raise TooManyRelayedCalls
        calls[payer] += 1
        try:
            yield
        finally:
            calls[payer] -= 1
            if not calls[payer]:
                del calls[payer]

    async def _shared(
        self, key: Hashable, read: Callable[[], Coroutine[Any, Any, T]]
    ) -> T:
        """Return the result of a read. Concurrent callers with the same key share it."""
        task: asyncio.Task[T] | None = self._reading.get(key)
        if task is None:
            task = asyncio.create_task(read())
            self._reading[key] = task
            task.add_done_callback(partial(self._end_reading, key))
        # A caller that disconnects does not end the read of the others.
        return await asyncio.shield(task)

    def _end_reading(self, key: Hashable, task: asyncio.Task[Any]) -> None:
        del self._reading[key]
        if not task.cancelled():
            task.exception()  # otherwise asyncio would log it if all callers are gone

    # Sending

    async def _head_rules(self, network: NetworkView) -> HeadRules:
        """Return the rules for transactions under a network's head.

        Raises: Unavailable.
        """
        head_hash = network.head_hash
        if head_hash is None:
            raise Unavailable("the network has no blocks yet")
        known = self._rules.get(network.id)
        if known is not None and known[0] == head_hash:
            return known[1]
        key = ("rules", network.id, head_hash)
        return await self._shared(key, lambda: self._read_rules(network, head_hash))

    async def _read_rules(self, network: NetworkView, head_hash: bytes) -> HeadRules:
        document = await self._store.block_by_hash(network.id, head_hash, False, False)
        if document is None:
            raise Unavailable("the head was removed")
        config = await self._store.genesis_config(network.id)
        head = orjson.loads(document)
        rules = HeadRules(
            network.chain_id,
            await asyncio.to_thread(_fork, config, head),
            int(head["gasLimit"], 16),
        )
        self._rules[network.id] = head_hash, rules
        return rules

    async def _broadcast(self, clients: Sequence[UpstreamClient], raw: bytes) -> None:
        """Send a transaction to all upstreams, and return when one has accepted it.

        Raises: RelayedError or UpstreamsUnavailable if no upstream accepts it.
        """
        calls = [asyncio.create_task(submit(client, raw)) for client in clients]
        for call in calls:
            self._sending.add(call)
            call.add_done_callback(self._sent)
        waiting = set(calls)
        while waiting:
            done, waiting = await asyncio.wait(
                waiting, return_when=asyncio.FIRST_COMPLETED
            )
            if any(call.exception() is None for call in done):
                return
        raise rejection([call.exception() for call in calls])

    def _sent(self, call: asyncio.Task[None]) -> None:
        self._sending.discard(call)
        if not call.cancelled():
            call.exception()  # otherwise asyncio would log it

    # Reading

    async def _read_block(
        self, network: NetworkView, key: tuple[int, bytes]
    ) -> PendingBlock | None:
        total_difficulty = None
        if network.emit_total_difficulty and network.head_hash is not None:
            head = await self._store.block_by_hash(
                network.id, network.head_hash, False, True
            )
            if head is not None:
                total_difficulty = int(orjson.loads(head)["totalDifficulty"], 16)
        failure: UpstreamError | None = None
        for client in self._pool.by_availability(network):
            try:
                async with asyncio.timeout(READ_SECONDS):
                    found = await client.call(
                        *("eth_getBlockByNumber", "pending", True),
                        max_bytes=MAX_PENDING_BLOCK_BYTES,
                    )
                if found is None:
                    return None
                block = pending_block(found, total_difficulty)
            except UpstreamError as error:
                failure = failure or error
            except (UpstreamUnavailable, TimeoutError, ValueError):
                self._pool.avoid(client)
            else:
                self._blocks.put(key, block, block.size)
                return block
        if failure is not None:
            raise RelayedError(failure.code, failure.message, failure.data)
        raise PendingBlockNotAvailable

    async def _read_transaction(
        self, network: NetworkView, key: tuple[int, bytes]
    ) -> bytes:
        """Ask all upstreams for a transaction at once. Return its JSON, or `null`."""
        name = "0x" + key[1].hex()
        look_ups = [
            asyncio.create_task(self._look_up(client, name))
            for client in self._pool.clients(network)
        ]
        found = _ABSENT
        try:
            for look_up in asyncio.as_completed(look_ups):
                found = await look_up
                if found is not _ABSENT:
                    break
        finally:
            for task in look_ups:
                task.cancel()
        self._transactions.put(key, found, len(found))
        return found

    async def _nonce(self, client: UpstreamClient, address: bytes) -> int:
        """Ask an upstream for the next nonce of an account.

        Raises: UpstreamError, UpstreamUnavailable, or ValueError for a malformed answer.
        """
        name = "0x" + address.hex()
        try:
            async with asyncio.timeout(READ_SECONDS):
                found = await client.call("eth_getTransactionCount", name, "pending")
            return index(found)
        except (UpstreamUnavailable, TimeoutError, ValueError):
            self._pool.avoid(client)
            raise

    async def _look_up(self, client: UpstreamClient, name: str) -> bytes:
        """Ask an upstream for a transaction, and return the object as JSON.

        name: the hash in hexadecimal. Return `null` if the upstream does not have the
        transaction, or its call fails.
        """
        try:
            async with asyncio.timeout(READ_SECONDS):
                found = await client.call("eth_getTransactionByHash", name)
            if found is None or found["hash"].lower() != name:
                return _ABSENT
            return pending_transaction(found)
        except (UpstreamUnavailable, TimeoutError):
            self._pool.avoid(client)
        except (UpstreamError, ValueError, TypeError, KeyError, AttributeError):
            pass
        return _ABSENT


async def submit(client: UpstreamClient, raw: bytes) -> None:
    """Send a transaction to an upstream. "Already known" counts as accepted.

    Raises: UpstreamError if the upstream rejects it; UpstreamUnavailable.
    """
    try:
        await client.call("eth_sendRawTransaction", "0x" + raw.hex())
    except UpstreamError as error:
        message = error.message.lower()
        if not any(text in message for text in _ALREADY_KNOWN):
            raise


def rejection(
    failures: Sequence[BaseException | None],
) -> RelayedError | UpstreamsUnavailable:
    """Return the error for a transaction that no upstream has accepted.

    failures: the exceptions of the calls, in the order of the upstreams. A
        MethodUnavailable is reported only if no upstream gives another reason.
    """
    errors = [failure for failure in failures if isinstance(failure, UpstreamError)]
    errors.sort(key=lambda error: isinstance(error, MethodUnavailable))
    for error in errors:
        return RelayedError(error.code, error.message, error.data)
    return UpstreamsUnavailable()


async def _checked(raw: bytes, rules: HeadRules) -> Submission:
    """Return a decoded transaction that follows the rules.

    Raises: TransactionRejected.
    """
    try:
        check_size(raw)
        if len(raw) > LONG_BYTES:
            return await asyncio.to_thread(_decode, raw, rules)
        return _decode(raw, rules)
    except ValueError as error:
        raise TransactionRejected(str(error)) from None


def _decode(raw: bytes, rules: HeadRules) -> Submission:
    submission = decode_submission(raw)
    check(submission, rules)
    return submission


def _fork(config: Any, head: dict[str, Any]) -> Fork:
    """Return the head's fork. geth's transaction pool applies its rules."""
    # Importing it loads py-evm, which takes about a second and 20 MB, once.
    from evm.chain_config import ChainConfig

    return ChainConfig.from_genesis({"config": config}).fork_at(
        int(head["number"], 16),
        int(head["timestamp"], 16),
        is_merged=int(head["difficulty"], 16) == 0,
    )
