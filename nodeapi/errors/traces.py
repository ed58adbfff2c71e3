"""Blocks and transactions that can't be traced.

Source: go-ethereum eth/tracers/api.go
"""

from __future__ import annotations

from jsonrpc.errors import RpcError


class BlockNotFound(RpcError):
    """Raised when a block to be traced does not exist.

    block: its hash, or `#` and its number or tag.
    """

    form = "block <hash or number> not found"
    remedy = "Use a block at or below the head of this network."

    def __init__(self, block: bytes | int | str) -> None:
        name = f"0x{block.hex()}" if isinstance(block, bytes) else f"#{block}"
        super().__init__(f"block {name} not found")


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
            f"the trace record of transaction {index} exceeds the size limit and was not "
            "stored; use the struct logger or another tracer that executes the "
            "transaction again",
            index=index,
        )
