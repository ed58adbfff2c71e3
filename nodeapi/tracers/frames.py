"""The tree of message calls that a transaction made.

It is geth's view of it: calls to accounts without code, to precompiled contracts and
calls that failed before they began have frames, and so has SELFDESTRUCT. An
instruction that failed in the calling frame itself left none.
"""

from __future__ import annotations

from dataclasses import dataclass, field

CREATIONS = frozenset({"CREATE", "CREATE2"})

REVERTED = "execution reverted"
OUT_OF_GAS = "out of gas"
UNPAID_CODE = "contract creation code storage out of gas"
"""Errors of frames that tracers act upon; see `nodeapi.tracers.failures`."""


@dataclass(slots=True)
class FrameLog:
    """What a frame wrote with LOG0 … LOG4."""

    address: bytes
    topics: tuple[bytes, ...]
    """Up to four words of 32 bytes."""
    data: bytes
    index: int
    """The log's number in its block; a reverted call gives its numbers back."""
    position: int
    """How many calls the frame had made before."""


@dataclass(slots=True)
class CallFrame:
    """One message call, creation or self-destruction."""

    type: str
    """CALL, CALLCODE, DELEGATECALL, STATICCALL, CREATE, CREATE2, SELFDESTRUCT."""
    sender: bytes
    """The contract whose storage the calling code ran on, the transaction's sender at
    depth 0."""
    to: bytes | None
    """The account that was named, the new contract, the heir of a self-destruction;
    of a creation that failed the contract that was not made."""
    gas: int
    """Handed over, the stipend included; the gas limit at depth 0."""
    input: bytes
    """Call data; init code of a creation."""
    value: int | None
    """Wei; None in STATICCALL, the calling frame's in DELEGATECALL."""
    depth: int
    """0: the transaction's own."""
    gas_used: int = 0
    """At depth 0 what the sender paid for, after refunds and floor."""
    output: bytes = b""
    """What was returned, a new contract's code, or what a revert says."""
    error: str | None = None
    """geth's text; None when it went well."""
    calls: list[CallFrame] = field(default_factory=list)
    logs: list[FrameLog] = field(default_factory=list)
    """In order; those of a frame that failed, or below one, did not last."""
