"""Submitted and pending transactions, and upstreams that don't respond.

Source: go-ethereum eth/api_backend.go, internal/ethapi/errors.go
"""

from __future__ import annotations

from jsonrpc.errors import RpcError
from nodeapi.go.fields import go_duration


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
        "Request the receipt with the hash in data. The transaction may still be "
        "included."
    )
    code = 4

    def __init__(self, transaction_hash: bytes, seconds: float) -> None:
        super().__init__(
            "The transaction was added to the transaction pool but wasn't processed in "
            f"{go_duration(seconds)}"
        )
        self._hash = transaction_hash

    @property
    def data(self) -> object:
        """The transaction's hash."""
        return f"0x{self._hash.hex()}"


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


class RelayedError(RpcError):
    """Raised when an upstream returns an error, which is passed on unchanged.

    code, message, data: those of the upstream's error object.
    """

    form = "the message of the network's node"
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
