"""Customers' transactions, and the pending blocks and transactions of a network.

Transactions are checked here and sent to every upstream. The pending block and pending
transactions are read from upstreams, and cached for a second. A network without
upstreams has a local pool instead.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

import orjson

from networks.directory import NetworkView
from nodeapi.documents.pending import PendingBlock, pending_block, pending_transaction
from nodeapi.encoding import index
from nodeapi.errors.relay import (
    PendingBlockNotAvailable,
    PendingStateNotAvailable,
    RelayedError,
    UpstreamsUnavailable,
)
from nodeapi.mempool.local import LocalPool
from nodeapi.relay.bounds import CallsInFlight, SharedReads, ShortCache
from nodeapi.relay.checking import Checker
from nodeapi.relay.pools import TransactionPools
from nodeapi.relay.receipt_waits import ReceiptWaits
from nodeapi.results.answers import Answer
from nodeapi.sending.decoding import decode_submission
from nodeapi.sending.rules import MAX_BLOB_BYTES
from nodeapi.store import Store
from nodeapi.tracing.pool import TracePool
from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.errors import (
    MethodUnavailable,
    UpstreamError,
    UpstreamUnavailable,
)
from nodeapi.upstreams.pool import UpstreamPool

logger = logging.getLogger(__name__)

READ_SECONDS = 5.0
"""Time limit for reading from one upstream."""

PENDING_SECONDS = 1.0
"""Time for which a pending block, a pending transaction or its absence is cached. A
pending block is cached only until a new head."""

MAX_RAW_BYTES = 2 * MAX_BLOB_BYTES + 1024
"""Maximum size of an upstream's response with an encoded transaction."""

MAX_PENDING_BLOCK_BYTES = 16 * 2**20
"""Maximum size of an upstream's response with a pending block."""

CACHE_BYTES = 32 * 2**20
"""Size of the cache of pending blocks, and of the cache of pending transactions."""

_ALREADY_KNOWN = (
    "already known",  # geth, reth, Erigon
    "alreadyknown",  # Nethermind
    "already imported",  # anvil
    "known transaction",  # Besu
)
"""Parts of the messages of upstreams that have the transaction already."""

_MALFORMED = (ValueError, TypeError, KeyError, AttributeError)
"""Errors of decoding a malformed result."""

_ABSENT = b"null"


class Relay:
    """Sends transactions, and reads pending blocks and transactions.

    payer: the id of the API key. All methods raise TooManyRelayedCalls while the key or
    the process has too many calls in flight.
    """

    def __init__(
        self,
        upstreams: UpstreamPool,
        store: Store,
        local: LocalPool,
        receipts: ReceiptWaits,
        tracing: TracePool,
    ) -> None:
        self._upstreams = upstreams
        self._store = store
        self._local = local
        self._receipts = receipts
        self._checker = Checker(store, tracing)
        self._blocks: ShortCache[tuple[int, bytes], PendingBlock] = ShortCache(
            PENDING_SECONDS, CACHE_BYTES
        )
        """By network id and head."""
        self._transactions: ShortCache[tuple[int, bytes], bytes] = ShortCache(
            PENDING_SECONDS, CACHE_BYTES
        )
        """By network id and hash. `null` for transactions that no upstream has."""
        self._reads = SharedReads()
        self._sending: set[asyncio.Task[None]] = set()
        """Calls that send a transaction. They outlive their caller."""
        self._calls = CallsInFlight()
        self.pools = TransactionPools(upstreams, local, self._calls)

    async def close(self) -> None:
        """Cancel all calls."""
        tasks = [*self._sending]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._reads.close()
        await self._checker.close()
        await self.pools.close()
        await self._local.close()

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
        other upstreams even if the caller is cancelled. Without upstreams, the
        transaction is added to the local pool.

        Raises: TransactionRejected if the transaction breaks a rule; RelayedError with
            the first upstream's error if all reject it; UpstreamsUnavailable.
        """
        clients = self._upstreams.clients(network)
        with self._calls.hold(payer):
            submission = await self._checker.check(network, raw)
            transaction = submission.transaction
            allow(transaction.to)
            if clients:
                await self._broadcast(clients, raw)
            elif network.checkpoint_number is not None:
                # The local pool reads senders from rows alone.
                raise UpstreamsUnavailable
            else:
                await self._local.add(network.id, submission)
        self._transactions.discard((network.id, transaction.hash))
        logger.info(
            "%s transaction 0x%s to %s",
            "relayed" if clients else "added",
            transaction.hash.hex(),
            network.slug,
        )
        return transaction.hash

    async def wait_for_receipt(
        self, network: NetworkView, transaction_hash: bytes, payer: int, seconds: float
    ) -> Answer | None:
        """Return the receipt of a transaction as soon as a block contains it.

        None if no block contains it after a time.
        """
        return await self._receipts.wait(network.id, transaction_hash, payer, seconds)

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
        with self._calls.hold(payer):
            return await self._reads.get(key, lambda: self._read_block(network, key))

    async def pending_nonce(
        self, network: NetworkView, address: bytes, payer: int
    ) -> int:
        """Return the next nonce of an account after its pending transactions.

        It is the highest answer of all available upstreams, because a transaction that
        one of them has accepted may not have reached the others yet.

        Raises: RelayedError if upstreams answer with an error;
            PendingStateNotAvailable if none answers.
        """
        if not network.upstreams:
            return await self._local.next_nonce(network.id, address)
        with self._calls.hold(payer):
            clients = self._upstreams.by_availability(network)
            available = [c for c in clients if not self._upstreams.is_avoided(c)]
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
        """Return a transaction that an upstream or the local pool has, as a JSON object.

        None if no available upstream has the transaction.
        """
        if not network.upstreams:
            return await self._local.find(network.id, transaction_hash)
        key = (network.id, transaction_hash)
        found = self._transactions.get(key)
        if found is None:
            with self._calls.hold(payer):
                found = await self._reads.get(
                    key, lambda: self._read_transaction(network, key)
                )
        return None if found is _ABSENT else found

    async def pending_raw_transaction(
        self, network: NetworkView, transaction_hash: bytes, payer: int
    ) -> bytes | None:
        """Return the encoding of a transaction that an upstream or the local pool has.

        None if no available upstream returns it.
        """
        if not network.upstreams:
            return await self._local.find_raw(network.id, transaction_hash)
        # Whether the transaction exists is cached.
        if await self.pending_transaction(network, transaction_hash, payer) is None:
            return None
        key = ("raw", network.id, transaction_hash)
        with self._calls.hold(payer):
            return await self._reads.get(
                key, lambda: self._read_raw(network, transaction_hash)
            )

    # Sending

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
        for client in self._upstreams.by_availability(network):
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
                self._upstreams.avoid(client)
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
            for client in self._upstreams.clients(network)
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

    async def _read_raw(
        self, network: NetworkView, transaction_hash: bytes
    ) -> bytes | None:
        """Ask the upstreams for the encoding of a transaction, one after the other."""
        name = "0x" + transaction_hash.hex()
        for client in self._upstreams.by_availability(network):
            try:
                async with asyncio.timeout(READ_SECONDS):
                    found = await client.call(
                        *("eth_getRawTransactionByHash", name), max_bytes=MAX_RAW_BYTES
                    )
                if found is None:
                    continue
                raw = bytes.fromhex(found.removeprefix("0x"))
                submission = await asyncio.to_thread(decode_submission, raw)
            except UpstreamError:
                pass
            except (UpstreamUnavailable, TimeoutError, *_MALFORMED):
                self._upstreams.avoid(client)
            else:
                if submission.transaction.hash == transaction_hash:
                    return raw
        return None

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
            self._upstreams.avoid(client)
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
        except UpstreamError:
            pass
        except (UpstreamUnavailable, TimeoutError, *_MALFORMED):
            self._upstreams.avoid(client)
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
