"""What a tracer sees that watches every instruction, and what it has to answer.

`nodeapi.tracers.stepping` runs code and calls; the struct logger and JavaScript
tracers are called.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from nodeapi.tracers.frames import CallFrame


class TracerError(Exception):
    """A tracer that failed; its text stands for the transaction's result.

    The transaction is then executed to its end without the tracer.
    """


class ExecutionTimeout(TracerError):
    """A transaction that was traced for longer than it may be."""

    def __init__(self) -> None:
        super().__init__("execution timeout")


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedTransaction:
    """A transaction about to be executed, and where it stands."""

    hash: bytes
    index: int
    """Its place in the block."""
    block_hash: bytes
    block_number: int
    coinbase: bytes
    sender: bytes
    to: bytes | None
    """None when it creates a contract."""
    input: bytes
    gas: int
    """Its gas limit, intrinsic gas included."""
    gas_price: int
    """Wei per gas that it pays, tip included."""
    value: int
    """Wei."""
    intrinsic_gas: int
    precompiles: Container[bytes]
    """Addresses of the fork's precompiled contracts."""
    state: Any
    """The state, live: `get_balance(address)`, `get_nonce(address)`, `get_code(address)`,
    `get_storage(address, slot)` give what stands at the moment of asking. An address
    exists for a tracer if it is not `account_is_empty(address)`: py-evm brings accounts
    into being by looking at them."""
    deadline: float
    """`time.monotonic()` at which `ExecutionTimeout` is due. The stepping loop looks at
    it; a tracer that may take long within one call has to as well."""


class Step:
    """The instruction about to be executed; one object per frame, used again."""

    __slots__ = ("cost", "depth", "error", "frame", "gas", "op", "pc", "refund")

    pc: int
    op: int
    """0 (STOP) as well where the code ends."""
    gas: int
    """What the frame has left before the instruction."""
    cost: int
    """All that the instruction takes: memory, cold access, gas given to a call (without
    the stipend), but not the gas given to a creation."""
    depth: int
    """1 is the transaction's own frame."""
    refund: int
    """The transaction's refund counter, this instruction's own change included."""
    error: str | None
    """Why the instruction can't be executed, in geth's words."""
    frame: Any
    """py-evm's computation. `frame._stack.values`: ints, the top is last.
    `frame._memory._bytes`: a bytearray, not yet expanded by this instruction.
    `frame.return_data`: of the last call. `frame.msg`: `sender`, `storage_address`,
    `value`, `data`, `is_create`. None of them may be changed, nor kept."""

    def __init__(self, frame: Any, depth: int) -> None:
        self.frame = frame
        self.depth = depth
        self.pc = self.op = self.gas = self.cost = self.refund = 0
        self.error = None


class StepTracer(Protocol):
    """Follows one transaction. Any method may raise a `TracerError`."""

    wants_steps: bool
    """Whether `step` does anything; a transaction runs much faster if not."""
    wants_frames: bool
    """Whether `enter` and `exit` do anything."""

    def start(self, transaction: TracedTransaction) -> None:
        """See the transaction and the state before its gas is bought."""

    def step(self, step: Step) -> None:
        """See an instruction before it is executed, the STOP at code's end included.

        When it is known that it can't be executed, `step.error` is set, and no `fault`
        follows. (So it is in geth.)
        """

    def fault(self, step: Step) -> None:
        """See that the instruction last stepped on failed, as `step.error` tells.

        REVERT and what is no instruction end here as well.
        """

    def enter(self, frame: CallFrame) -> None:
        """See a call, a creation or a SELFDESTRUCT of depth ≥ 1 begin."""

    def exit(self, frame: CallFrame) -> None:
        """See it end, with `gas_used`, `output` and `error` filled in."""

    def end(self, frame: CallFrame, gas_used: int) -> None:
        """See the outermost frame when the transaction is over.

        gas_used: of the transaction, as in its receipt.
        """

    def result(self) -> bytes:
        """Return the JSON of what the tracer has found."""
