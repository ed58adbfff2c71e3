"""The call tree of a transaction.

It has a frame for each call that geth reports: also for calls of accounts without code
and of precompiled contracts, for calls that failed before their execution, and for
SELFDESTRUCT. An instruction that failed in the calling frame has no frame of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

CREATIONS = frozenset({"CREATE", "CREATE2"})


@dataclass(slots=True)
class FrameLog:
    """A log that a frame wrote with LOG0 … LOG4."""

    address: bytes
    topics: tuple[bytes, ...]
    """Up to four words of 32 bytes."""
    data: bytes
    index: int
    """The log's number in its block. The numbers of undone logs are used again."""
    position: int
    """Number of calls that the frame had made before the log."""


@dataclass(slots=True)
class CallFrame:
    """One message call, creation or self-destruction."""

    type: str
    """CALL, CALLCODE, DELEGATECALL, STATICCALL, CREATE, CREATE2, SELFDESTRUCT."""
    sender: bytes
    """The account whose storage the calling code used. At depth 0: the sender."""
    to: bytes | None
    """The called account, the new contract, or the beneficiary of a SELFDESTRUCT. If a
    creation failed, the address that the contract would have had."""
    gas: int
    """Gas given to the frame, including the stipend. At depth 0 the gas limit."""
    input: bytes
    """Call data, or the init code of a creation."""
    value: int | None
    """Wei. None in STATICCALL; the calling frame's value in DELEGATECALL."""
    depth: int
    """0: the transaction's own."""
    gas_used: int = 0
    """At depth 0 the gas that the sender paid for, after refunds and floor."""
    output: bytes = b""
    """Return data, the code of a new contract, or the data of a revert."""
    error: str | None = None
    """geth's error text, or None if the frame succeeded."""
    calls: list[CallFrame] | tuple[()] = ()
    """In order. An empty tuple saves memory: a block may have half a million frames."""
    logs: list[FrameLog] | tuple[()] = ()
    """In order. The logs were reverted if this frame or one above it failed."""

    def add_call(self, call: CallFrame) -> None:
        """Add a call that the frame makes."""
        if self.calls:
            self.calls.append(call)
        else:
            self.calls = [call]

    def add_log(self, log: FrameLog) -> None:
        """Add a log that the frame writes."""
        if self.logs:
            self.logs.append(log)
        else:
            self.logs = [log]
