"""The interpreter loop that reports every instruction to a tracer before executing it.

It is separate from `evm.interpreter.run`, which therefore is not slowed down. Both
execute instructions by the same table. The cost is computed in advance
(`evm.tracers.prices`). Tests compare it with the gas that was charged.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from eth.exceptions import Halt, VMError

from evm.code import STOP
from evm.interpreter import (
    CALL,
    COMPUTE,
    DUPLICATE,
    END,
    PUSH,
    READ,
    SWAP,
    OpcodeTable,
    pushed_value,
    run,
)
from evm.opcodes import NUMBERS, OPCODE_NAMES, OPCODES
from evm.tracers.costs import Unpayable
from evm.tracers.prices import Price, price_list
from evm.tracers.steps import ExecutionTimeout, Step

if TYPE_CHECKING:
    from evm.fork import Fork
    from evm.tracers.steps import StepTracer

STEPS_BETWEEN_CHECKS = 256
"""Instructions between two checks of the deadline: a fraction of a millisecond."""

_SELFDESTRUCT = NUMBERS["SELFDESTRUCT"]
_TAKEN = tuple(opcode.taken for opcode in OPCODES)
_FAULTS = {
    NUMBERS["JUMP"]: "invalid jump destination",
    NUMBERS["JUMPI"]: "invalid jump destination",
    NUMBERS["RETURNDATACOPY"]: "return data out of bounds",
    NUMBERS["REVERT"]: "execution reverted",
    NUMBERS["TSTORE"]: "write protection",
    NUMBERS["CREATE"]: "write protection",
    NUMBERS["CREATE2"]: "write protection",
    **{NUMBERS[f"LOG{topics}"]: "write protection" for topics in range(5)},
}
"""Errors of instructions that fail although their cost is covered."""


class CostMismatch(RuntimeError):
    """Raised when an instruction was executed although its cost exceeds the gas."""


class Stepping:
    """Execution of one transaction, reported to a tracer instruction by instruction.

    The state has it as `stepping`. While that is None, code is executed normally.
    """

    def __init__(
        self, tracer: StepTracer, prices: tuple[Price, ...], deadline: float
    ) -> None:
        """prices: of the fork. deadline: in the time of `time.monotonic()`."""
        self._tracer = tracer
        self._prices = prices
        self._deadline = deadline
        self._steps = 0
        self.refund = 0
        """The refund counter: geth raises it while it computes an instruction's cost."""
        self.destroyed: dict[bytes, None] = {}
        """Self-destructed contracts in order, without reverted self-destructions."""

    def _check_deadline(self) -> None:
        """Raise ExecutionTimeout if the deadline has passed."""
        if time.monotonic() >= self._deadline:
            raise ExecutionTimeout

    def run(self, frame: Any, table: OpcodeTable) -> None:
        """Execute a frame's code until it halts.

        Raises: VMError if the code fails, with the program counter at the failed
            instruction; TracerError if the tracer fails.
        """
        if frame.msg.depth == 0:
            self.refund = frame.msg.refund
        code, values, entries = frame.code.raw, frame.stack, table.entries
        step = Step(frame, frame.msg.depth + 1)
        position, gas = 0, frame.gas_remaining
        while True:
            step.pc, step.gas = position, gas
            step.op = code[position] if position < len(code) else STOP
            kind, taken, argument = entries[step.op]
            following = position + 1
            self._report(step, values)
            if step.error is not None:
                self._fail(step, table)
            gas -= taken
            if kind == PUSH:
                values.append(pushed_value(code, position, argument))
                following += argument
            elif kind == DUPLICATE:
                values.append(values[-argument])
            elif kind == COMPUTE:
                argument(values)
            elif kind == SWAP:
                values[-1], values[-1 - argument] = values[-1 - argument], values[-1]
            elif kind == READ:
                values.append(argument(frame))
            else:
                frame.gas_remaining, frame.code.program_counter = gas, following
                try:
                    self._execute(step, kind, argument)
                except Halt:
                    return
                if kind == END:
                    return
                gas, following = frame.gas_remaining, frame.code.program_counter
            position = following

    def _report(self, step: Step, values: list[int]) -> None:
        """Report an instruction with its cost, and the error if it can't be executed.

        Raises: TracerError.
        """
        constant, taken, maximum, variable, refund, _ = self._prices[step.op]
        step.cost, step.error, size = constant, None, len(values)
        if size < taken:
            step.error = f"stack underflow ({size} <=> {taken})"
        elif size > maximum:
            step.error = f"stack limit reached {size} ({maximum})"
        elif step.gas < constant:
            step.error = "out of gas"
        elif variable is not None:
            try:
                step.cost += variable(step.frame, values, step.gas - constant)
            except Unpayable as error:
                step.error = str(error)
            else:
                if refund is not None:
                    self.refund += refund(step.frame, values)
                if step.cost > step.gas:
                    step.error = "out of gas"
        step.refund = self.refund
        self._tracer.step(step)
        self._steps += 1
        if not self._steps % STEPS_BETWEEN_CHECKS:
            self._check_deadline()

    def _execute(self, step: Step, kind: int, operation: Any) -> None:
        """Execute an instruction that does more than arithmetic on the stack.

        Raises: Halt, VMError.
        """
        frame, values = step.frame, step.frame.stack
        size = len(values)
        operands = values[-_TAKEN[step.op] :] if step.op in _FAULTS else []
        if step.op == _SELFDESTRUCT and self._prices[step.op].is_valid:
            self.destroyed[frame.msg.storage_address] = None
        try:
            if kind == CALL:
                operation(computation=frame)
            else:
                operation(frame)
        except Halt:
            raise
        except VMError:
            self._fault(step, size, operands)
            raise
        if frame._error is not None:  # REVERT sets an error without raising.
            self._fault(step, size, operands)

    def _fault(self, step: Step, size: int, operands: list[int]) -> None:
        """Report that an instruction failed during its execution.

        size: of the stack before it.

        Raises: TracerError.
        """
        if self._prices[step.op].is_valid:
            step.error = _FAULTS.get(step.op)
        else:
            step.error = f"invalid opcode: {OPCODE_NAMES[step.op]}"
        step.frame.code.program_counter = step.pc
        # A tracer sees the stack as it was before the instruction.
        step.frame.stack[size - len(operands) :] = operands
        self._tracer.fault(step)

    def undo(self, refund: int, destroyed: int) -> None:
        """Restore the refund counter and the number of destroyed contracts."""
        self.refund = refund
        while len(self.destroyed) > destroyed:
            self.destroyed.popitem()

    def _fail(self, step: Step, table: OpcodeTable) -> None:
        """Execute a failing instruction in the interpreter, which raises its error."""
        frame = step.frame
        frame.code.program_counter = step.pc
        frame.gas_remaining = step.gas
        run(frame, table)
        raise CostMismatch(f"{OPCODE_NAMES[step.op]} at {step.pc}: {step.error}")


class SteppedFrame:
    """Mixin that goes before a Computation. Its state may have a `stepping`."""

    state: Any

    @staticmethod
    def run_code(frame: Any, table: OpcodeTable) -> None:
        """Run a frame's code, step by step if the state has a `stepping`."""
        stepping: Stepping | None = frame.state.stepping
        if stepping is None or not frame.code.raw:
            run(frame, table)
        else:
            stepping.run(frame, table)

    def apply_child_computation(self, message: Any) -> Any:
        """Run a call or a creation, and return its frame."""
        stepping: Stepping | None = self.state.stepping
        if stepping is None:
            return super().apply_child_computation(message)  # type: ignore[misc]
        refund, destroyed = stepping.refund, len(stepping.destroyed)
        child = super().apply_child_computation(message)  # type: ignore[misc]
        if child._error is not None:
            stepping.undo(refund, destroyed)
        return child


@cache
def stepped(fork: Fork) -> Fork:
    """Return the same fork, whose states can have a `Stepping`."""
    base: Any = fork.base_state_class
    frames: Any = base.computation_class

    class Stepped(SteppedFrame, frames):  # type: ignore[misc]  # of a fork
        """A call frame of a fork that can be stepped through."""

    class SteppedState(base):  # type: ignore[misc]
        """A state of a fork that can be stepped through."""

        computation_class = Stepped
        stepping: Stepping | None = None

    return replace(fork, base_state_class=SteppedState)


def step_through(
    state: Any, fork: Fork, tracer: StepTracer, deadline: float
) -> Stepping:
    """Report the state's next transaction to a tracer. fork: without `stepped`."""
    state.stepping = Stepping(tracer, price_list(fork), deadline)
    stepping: Stepping = state.stepping
    return stepping
