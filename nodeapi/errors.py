"""Errors of the node: blocks and states with geth's texts, then networks and methods.

Source: go-ethereum eth/api_backend.go, eth/tracers/api.go, internal/ethapi/errors.go
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from jsonrpc.errors import RpcError


class HeaderNotFound(RpcError):
    """Raised when a block number is above the head, or a network has no blocks."""

    remedy = "Use a block at or below the head, which eth_blockNumber returns."
    text = "header not found"


class HeaderForHashNotFound(RpcError):
    """Raised when a state is requested for an unknown block hash."""

    remedy = (
        "Check the hash. A block of another network or of an abandoned branch may be "
        "unknown."
    )
    text = "header for hash not found"


class NotCanonical(RpcError):
    """Raised when a canonical block is required and the hash is a side block's."""

    remedy = (
        "Read the canonical block of that height with eth_getBlockByNumber, or leave "
        "requireCanonical out."
    )
    text = "hash is not currently canonical"


class TaggedBlockNotFound(RpcError):
    """Raised when the safe or the finalized block is unknown.

    A network without upstreams has both, because its head stands for them.
    """

    form = "<tag> block not found"
    remedy = "Use the tag latest, or try again when the network knows such a block."

    def __init__(self, tag: str) -> None:
        super().__init__(f"{tag} block not found")


class PendingBlockNotAvailable(RpcError):
    """Raised when no upstream responds to a request for the pending block."""

    remedy = "Use the tag latest, or try again."
    text = "pending block is not available"


class PendingStateNotAvailable(RpcError):
    """Raised when no upstream responds to a request for the pending state."""

    remedy = "Use the tag latest, or try again."
    text = "pending state is not available"


class PoolNotAvailable(RpcError):
    """Raised when no upstream responds to a request for its transaction pool."""

    remedy = "Try again."
    text = "transaction pool is not available"


class TransactionRejected(RpcError):
    """Raised when a submitted transaction is malformed or breaks a rule.

    Neither an upstream nor the local pool gets it. The message is geth's.
    """

    form = 'such as "nonce too low: next nonce <number>, tx nonce <number>"'
    remedy = "Correct the transaction as the message says, sign it again and send it."


class TransactionNotProcessed(RpcError):
    """Raised when a transaction was sent, and no block had it before the timeout.

    seconds: the timeout. transaction_hash: 32 bytes, which `data` contains.
    """

    form = (
        "The transaction was added to the transaction pool but wasn't processed in "
        "<time>"
    )
    remedy = (
        "Ask for the receipt with the hash in data. The transaction may still be "
        "included."
    )
    code = 4

    def __init__(self, transaction_hash: bytes, seconds: float) -> None:
        super().__init__(
            "The transaction was added to the transaction pool but wasn't processed in "
            f"{_duration(seconds)}"
        )
        self._hash = transaction_hash

    @property
    def data(self) -> object:
        """The transaction's hash."""
        return f"0x{self._hash.hex()}"


class RelayedError(RpcError):
    """Raised when an upstream returns an error, which is passed on unchanged.

    code, message, data: those of the upstream's error object.
    """

    form = "that of the network's node"
    remedy = "Follow the message, which is that of the network's own node."

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self._data = data

    @property
    def data(self) -> object:
        """The upstream's `data`, None if it is absent."""
        return self._data


class UpstreamsUnavailable(RpcError):
    """Raised when no upstream has responded to a submitted transaction.

    An upstream may have accepted it, so the transaction may become part of a block.
    """

    remedy = "Look the transaction up by its hash before you send it again."
    code = -32603
    reason = "upstreams_unavailable"
    text = "no upstream has responded; the transaction may have been accepted"


class TooManyRelayedCalls(RpcError):
    """Raised when too many calls that upstreams answer are in flight.

    The limit is for an API key in a process, or for the whole process.
    """

    remedy = "Try again after the time in Retry-After."
    http_status = 429
    code = -32005
    reason = "too_many_relayed_calls"
    text = "too many calls that upstream nodes answer are in flight; try again"
    headers = {"Retry-After": "1"}


class NotCurrentHead(RpcError):
    """Raised when a block is to be built on another block than the head."""

    remedy = "Build on the head, which eth_getBlockByNumber returns for the tag latest."
    text = "parentHash is not current head"


class BlockNotFound(RpcError):
    """Raised when a block to be traced does not exist.

    block: its hash, or `#` and its number or tag.
    """

    form = "block <hash or number> not found"
    remedy = "Use a block at or below the head of this network."

    def __init__(self, block: bytes | int | str) -> None:
        name = f"0x{block.hex()}" if isinstance(block, bytes) else f"#{block}"
        super().__init__(f"block {name} not found")


class RawNotFound(RpcError):
    """Raised when a block or header to be returned as RLP has an unknown hash.

    kind: `block` or `header`. geth prints the hash's bytes as decimal numbers.
    """

    form = "<block or header> #<hash> not found"
    remedy = "Check the hash and the network."

    def __init__(self, kind: str, block_hash: bytes) -> None:
        numbers = " ".join(map(str, block_hash))
        super().__init__(f"{kind} #[{numbers}] not found")


class GenesisNotTraceable(RpcError):
    """Raised when block 0 is to be traced, which has no transactions to execute."""

    remedy = "Trace block 1 or later."
    text = "genesis is not traceable"


class TransactionNotFound(RpcError):
    """Raised when a transaction to be traced is not in the canonical chain."""

    remedy = (
        "Check the hash and the network. Only transactions in canonical blocks can be "
        "traced."
    )
    text = "transaction not found"


class InvalidPercentile(RpcError):
    """Raised when eth_feeHistory is called with invalid percentiles."""

    form = "invalid reward percentile: <fault>"
    remedy = "Send percentiles from 0 to 100 in ascending order."


class RequestBeyondHead(RpcError):
    """Raised when a history is requested up to a block above the head.

    requested, head: block numbers.
    """

    form = "request beyond head block: requested <number>, head <number>"
    remedy = "Use a block at or below the head."

    def __init__(self, requested: int, head: int) -> None:
        super().__init__(
            f"request beyond head block: requested {requested}, head {head}"
        )


class TooManySlots(RpcError):
    """Raised when one call requests more storage slots than allowed."""

    form = "too many slots (max <limit>)"
    remedy = "Request fewer slots in one call."
    code = -38026

    def __init__(self, limit: int) -> None:
        super().__init__(f"too many slots (max {limit})")


class UnknownBlock(RpcError):
    """Raised when the logs of a block with an unknown hash are requested."""

    remedy = "Check the hash and the network."
    text = "unknown block"


class TaggedHeaderNotFound(RpcError):
    """Raised when a range of blocks begins or ends at an unknown block with a tag."""

    form = "<tag> header not found"
    remedy = "Use block numbers or the tag latest."

    def __init__(self, tag: str) -> None:
        super().__init__(f"{tag} header not found")


class TooManyAlternatives(RpcError):
    """Raised when a filter has more addresses or topics per position than allowed."""

    remedy = "Send several filters with fewer addresses or topics each."
    text = "exceed max addresses or topics per search position"


class FilterNotFound(RpcError):
    """Raised when no filter of the key has an id, or it was not used for 5 minutes."""

    remedy = "Create the filter again, and poll it at least every 5 minutes."
    text = "filter not found"


class TooManyFilters(RpcError):
    """Raised when an API key has the highest number of filters, or the largest ones.

    limit: number of filters. If is_size is true, bytes that all of them have together.
    """

    remedy = "Uninstall filters that you no longer need."
    http_status = 429
    code = -32005
    reason = "too_many_filters"

    def __init__(self, limit: int, *, is_size: bool = False) -> None:
        text = f"too many filters of this API key: {limit}"
        super().__init__(f"{text} bytes" if is_size else text, limit=limit)


class TooManyLogs(RpcError):
    """Raised when a search finds more logs than one answer may contain.

    limit: maximum number of logs of an answer.
    first, last: a range of blocks with at most that many, or the first block of the
        search alone.

    The text and the data are Infura's, which clients parse.
    """

    form = (
        "query returned more than <limit> results. Try with this block range [<first>, "
        "<last>]."
    )
    remedy = "Search the range of blocks that the message names, then the next one."
    code = -32005
    costs_full_price = True

    def __init__(self, limit: int, first: int, last: int) -> None:
        self.last = last
        self._data = {"from": hex(first), "limit": limit, "to": hex(last)}
        super().__init__(
            f"query returned more than {limit} results. "
            f"Try with this block range [{first:#x}, {last:#x}]."
        )

    @property
    def data(self) -> object:
        """The suggested range and the limit."""
        return self._data


class LogSearchTimedOut(RpcError):
    """Raised when a search for logs takes longer than the database may work on it."""

    remedy = "Search fewer blocks, or name addresses and topics."
    code = -32005
    reason = "log_search_timed_out"
    text = "query timeout exceeded. Consider reducing your block range."
    costs_full_price = True


class LogsNotIndexed(RpcError):
    """Raised when a range contains blocks whose logs are not indexed yet.

    They were imported by an earlier version, and `backfill_logs` is indexing their logs.
    first: the number of the first block from which on all logs are indexed.
    """

    remedy = "Search newer blocks, or one block at a time."
    code = -32005
    reason = "logs_not_indexed"

    def __init__(self, first: int) -> None:
        super().__init__(
            f"logs of blocks below {first:#x} are being indexed, try again later; "
            "logs of a single block are available",
            first=hex(first),
        )


class SimulationTooLarge(RpcError):
    """Raised when a simulation has too many blocks or calls. The message is geth's."""

    form = 'such as "too many blocks"'
    remedy = "Simulate fewer blocks or calls."
    code = -38026


class ProofWindowExceeded(RpcError):
    """Raised when too much has changed since a block for a proof of its state.

    The text is reth's.
    """

    remedy = "Request the proof at a newer block."
    code = -32602
    text = "distance to target block exceeds maximum proof window"


class MethodNotEntitled(RpcError):
    """Raised when a key lacks the entitlement for a method, or the entitlement expired.

    network: its slug. contact: for questions.
    tracing_page: path of the page on which the key's owner requests access.
    expired_at: Unix seconds, or None if the key never had the entitlement.
    """

    remedy = (
        "Request access to tracing in the dashboard. data.request_access is the "
        "address of that page."
    )
    http_status = 403
    code = -32002
    reason = "method_not_entitled"

    def __init__(
        self,
        method: str,
        network: str,
        *,
        tracing_page: str,
        contact: str,
        expired_at: float | None = None,
    ) -> None:
        ended, details = "", {"method": method, "network": network}
        if expired_at is not None:
            moment = f"{datetime.fromtimestamp(expired_at, UTC):%Y-%m-%dT%H:%M:%SZ}"
            ended = f": that expired on {moment}"
            details["expired_at"] = moment
        super().__init__(
            f"{method} is not enabled for this API key on {network}{ended}"
            f"; ask {contact} about custom plans",
            **details,
        )
        self._tracing_page = tracing_page

    @property
    def links(self) -> Mapping[str, str]:
        """Also `request_access`: the page on which the owner requests tracing."""
        return {**super().links, "request_access": self._tracing_page}


_UNNAMED_TRACERS = {
    "structLog": "the struct logger (no tracer was named)",
    "javascript": "a JavaScript tracer",
}
"""Descriptions of tracers that a request does not name."""


def _spoken(tracer: str) -> str:
    return _UNNAMED_TRACERS.get(tracer) or f'tracer "{tracer}"'


class TracerNotAvailable(RpcError):
    """Raised when a network does not offer a tracer.

    network: its slug. available: the tracers that it offers.
    """

    remedy = "Use a tracer that the message names."
    code = -32602
    reason = "tracer_not_available"

    def __init__(self, tracer: str, network: str, available: Iterable[str]) -> None:
        offered = sorted(available)
        names = ", ".join(f'"{name}"' for name in offered) or "none"
        super().__init__(
            f"invalid params: {_spoken(tracer)} is not available on {network}"
            f"; available: {names}",
            tracer=tracer,
            network=network,
            available=offered,
        )


class TracerNotEntitled(RpcError):
    """Raised when a network offers a tracer, but the key's entitlement excludes it.

    network: its slug. contact: for questions.
    tracing_page: path of the page on which the key's owner requests access.
    """

    remedy = (
        "Request access to the tracer in the dashboard. data.request_access is the "
        "address of that page."
    )
    http_status = 403
    code = -32002
    reason = "tracer_not_entitled"

    def __init__(
        self, tracer: str, network: str, *, tracing_page: str, contact: str
    ) -> None:
        super().__init__(
            f"{_spoken(tracer)} is not enabled for this API key on {network}"
            f"; ask {contact} about custom plans",
            tracer=tracer,
            network=network,
        )
        self._tracing_page = tracing_page

    @property
    def links(self) -> Mapping[str, str]:
        """Also `request_access`: the page on which the owner requests tracing."""
        return {**super().links, "request_access": self._tracing_page}


class TraceTooLarge(RpcError):
    """Raised when a transaction's trace record exceeded the size limit.

    index: the transaction's index in its block.
    """

    remedy = (
        "Use the struct logger or another tracer that executes the transaction again."
    )
    reason = "trace_too_large"

    def __init__(self, index: int) -> None:
        super().__init__(
            f"transaction {index} of the block did too much to be recorded, "
            "so that this tracer has no answer to it",
            index=index,
        )


class UnknownNetwork(RpcError):
    """Raised when a URL names an unknown network."""

    remedy = (
        "Check the network's name in the URL. The page about networks lists all of "
        "them."
    )
    http_status = 404
    code = -32001
    reason = "unknown_network"
    text = "unknown network"


class NetworkRetired(RpcError):
    """Raised when a network is no longer served.

    network: its slug.
    """

    remedy = "Use another network. The page about networks lists all of them."
    http_status = 410
    code = -32001
    reason = "network_retired"

    def __init__(self, network: str) -> None:
        super().__init__(f"the network {network} is no longer served", network=network)


class UnknownPath(RpcError):
    """Raised when a path is not that of a network, optionally with a key."""

    remedy = "Use the URL /v3/<API_KEY> or /<network>/v3/<API_KEY>."
    http_status = 404
    code = -32001
    reason = "unknown_path"
    text = "no such path: POST to /v3/<API_KEY> or /<network>/v3/<API_KEY>"


class NoSuchSubscription(RpcError):
    """Raised when a kind of subscription does not exist.

    kind: as it was sent.
    """

    form = 'no "<kind>" subscription in eth namespace'
    remedy = "Subscribe to newHeads, logs, newPendingTransactions or syncing."
    code = -32601

    def __init__(self, kind: str) -> None:
        super().__init__(f'no "{kind}" subscription in eth namespace')


class SubscriptionNotFound(RpcError):
    """Raised when a socket has no subscription with an id."""

    remedy = "Use the id that eth_subscribe returned on the same WebSocket."
    text = "subscription not found"


class TooManySubscriptions(RpcError):
    """Raised when a socket has the highest number of subscriptions.

    limit: number of subscriptions.
    """

    remedy = "Unsubscribe, or open another WebSocket."
    http_status = 429
    code = -32005
    reason = "too_many_subscriptions"

    def __init__(self, limit: int) -> None:
        super().__init__(f"too many subscriptions on this socket: {limit}", limit=limit)


class TooManyCalls(RpcError):
    """Raised when too many calls of a socket, or too many bytes of them, are in progress.

    calls: number of frames. size: their bytes.
    """

    remedy = "Wait for responses before you send more calls on the WebSocket."
    http_status = 429
    code = -32005
    reason = "too_many_calls"

    def __init__(self, calls: int, size: int) -> None:
        super().__init__(
            f"too many calls in progress on this socket: at most {calls} frames with "
            f"{size} bytes",
            calls=calls,
            bytes=size,
        )


def _duration(seconds: float) -> str:
    """Return a duration of at least a millisecond as Go prints it: `20s`, `1m0s`."""
    if seconds < 1:
        return f"{seconds * 1000:.10g}ms"
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:.0f}m{rest:.10g}s" if minutes else f"{rest:.10g}s"


class AddressesNotIndexed(RpcError):
    """Raised when a search by address includes blocks that are not indexed yet.

    They were imported by an earlier version, and `backfill_appearances` is indexing them.
    first: the number of the first block from which on all blocks are indexed.
    """

    remedy = "Search newer blocks, or try again later."
    code = -32005
    reason = "addresses_not_indexed"

    def __init__(self, first: int) -> None:
        super().__init__(
            f"addresses in blocks below {first:#x} are being indexed, try again later",
            first=hex(first),
        )
