"""Arguments that are invalid or exceed a limit."""

from __future__ import annotations

from jsonrpc.errors import RpcError


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


class SimulationTooLarge(RpcError):
    """Raised when a simulation has too many blocks or calls. The message is geth's."""

    form = 'such as "too many blocks"'
    remedy = "Simulate fewer blocks or calls."
    code = -38026


class ProofWindowExceeded(RpcError):
    """Raised when a proof would have to undo too many changes since its block.

    The text is reth's.
    """

    remedy = "Request the proof at a newer block."
    code = -32602
    text = "distance to target block exceeds maximum proof window"
