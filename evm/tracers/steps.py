"""The interface of tracers that receive every instruction.

`evm.tracers.stepping` calls the tracers, such as the struct logger and JavaScript.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from evm.frame import Frame
    from evm.state import State
    from evm.tracers.frames import CallFrame


class TracerError(Exception):
    """Raised when a tracer fails. Its text replaces the transaction's result.

    The transaction is then executed to its end without the tracer.
    """


class ExecutionTimeout(TracerError):
    """Raised when tracing a transaction exceeds its time limit."""

    def __init__(self) -> None:
        super().__init__("execution timeout")


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedTransaction:
    """The transaction to be executed, and its position in the chain."""

    hash: bytes
    index: int
    """Its index in the block."""
    block_hash: bytes
    block_number: int
    coinbase: bytes
    sender: bytes
    to: bytes | None
    """None for a creation."""
    input: bytes
    gas: int
    """Its gas limit, intrinsic gas included."""
    gas_tip: int
    """Wei per gas that it pays above the base fee."""
    value: int
    """Wei."""
    precompiles: Container[bytes]
    """Addresses of the fork's precompiled contracts."""
    state: State
    """The present state. Its `world` returns values as of the call."""
    deadline: float
    """The `time.monotonic()` at which `ExecutionTimeout` is raised. The stepping loop
    checks it. A tracer whose methods may take long has to check it as well."""


class Step:
    """The next instruction. Each frame reuses one object."""

    __slots__ = ("cost", "depth", "error", "frame", "gas", "op", "pc", "refund")

    pc: int
    op: int
    """Number of the opcode. At the end of code, it is 0 (STOP)."""
    gas: int
    """Gas of the frame before the instruction."""
    cost: int
    """All gas that the instruction takes, including memory expansion and cold access.

    The gas given to a call is included (without the stipend), that given to a creation
    is not.
    """
    depth: int
    """Depth of the frame. The outermost frame has 1."""
    refund: int
    """The transaction's refund counter, this instruction's own change included."""
    error: str | None
    """geth's text if the instruction can't be executed, otherwise None."""
    frame: Frame
    """The frame in execution, not yet changed by this instruction. It must be neither
    changed nor kept."""

    def __init__(self, frame: Frame, depth: int) -> None:
        self.frame = frame
        self.depth = depth
        self.pc = self.op = self.gas = self.cost = self.refund = 0
        self.error = None


class StepTracer(Protocol):
    """Traces one transaction. All methods may raise a `TracerError`."""

    wants_steps: bool
    """Whether `step` has an effect. If not, execution is much faster."""
    wants_frames: bool
    """Whether `enter`, `exit` and `log` have an effect."""

    def start(self, transaction: TracedTransaction) -> None:
        """Receive the transaction, before its sender pays for the gas."""

    def step(self, step: Step) -> None:
        """Receive an instruction before its execution.

        The STOP at the end of code is included. If the instruction can't be executed,
        `step.error` is set and no `fault` follows. geth does the same.
        """

    def fault(self, step: Step) -> None:
        """Receive the failure of the last instruction. `step.error` is its text.

        REVERT and invalid opcodes also cause a fault.
        """

    def enter(self, frame: CallFrame) -> None:
        """Receive the beginning of a call, creation or SELFDESTRUCT of depth ≥ 1."""

    def exit(self, frame: CallFrame) -> None:
        """Receive the end of a call frame, with its `gas_used`, `output` and `error`."""

    def log(
        self, address: bytes, topics: tuple[bytes, ...], data: bytes, index: int
    ) -> None:
        """Receive a log of the running frame. Only called if `wants_frames`.

        index: of the log in the block.
        """

    def end(self, frame: CallFrame, gas_used: int) -> None:
        """Receive the outermost frame at the end of the transaction.

        gas_used: the transaction's gas, as in its receipt.
        """

    def result(self) -> bytes:
        """Return the result as JSON."""


class InstructionTracer:
    """Base class of a `StepTracer` that only needs `step` and `result`.

    All other events have no effect.
    """

    wants_steps = True
    wants_frames = False

    def start(self, transaction: TracedTransaction) -> None:
        """Begin a transaction."""

    def fault(self, step: Step) -> None:
        """Ignore the failure: `step` was called for the instruction."""

    def enter(self, frame: CallFrame) -> None:
        """Ignore the beginning of a call frame."""

    def exit(self, frame: CallFrame) -> None:
        """Ignore the end of a call frame."""

    def log(
        self, address: bytes, topics: tuple[bytes, ...], data: bytes, index: int
    ) -> None:
        """Ignore a log."""

    def end(self, frame: CallFrame, gas_used: int) -> None:
        """End the transaction."""
