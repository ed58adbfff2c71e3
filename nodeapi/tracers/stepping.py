"""The loop that tells a tracer of every instruction before it executes it.

It stands beside `nodeapi.evm.interpreter.run`, which is not slowed down by it. What an
instruction does is decided by the same entries of the same table; what it costs is
computed beforehand (`nodeapi.tracers.prices`), and in tests held against what it took.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from eth.exceptions import Halt, VMError

from nodeapi.evm.code import STOP
from nodeapi.evm.interpreter import (
    CALL,
    COMPUTE,
    DUPLICATE,
    PUSH,
    SWAP,
    OpcodeTable,
    instruction_at,
    run,
)
from nodeapi.tracers.costs import Unpayable
from nodeapi.tracers.opcodes import NUMBERS, OPCODE_NAMES
from nodeapi.tracers.prices import Price, price_list
from nodeapi.tracers.steps import ExecutionTimeout, Step

if TYPE_CHECKING:
    from nodeapi.evm.forks import Fork
    from nodeapi.tracers.steps import StepTracer

STEPS_BETWEEN_LOOKS = 256
"""Instructions between two looks at the clock: a fraction of a millisecond."""

_SELFDESTRUCT = NUMBERS["SELFDESTRUCT"]
_FAULTS = {
    NUMBERS["JUMP"]: "invalid jump destination",
    NUMBERS["JUMPI"]: "invalid jump destination",
    NUMBERS["RETURNDATACOPY"]: "return data out of bounds",
    NUMBERS["REVERT"]: "execution reverted",
    NUMBERS["TSTORE"]: "write protection",
    **{NUMBERS[f"LOG{topics}"]: "write protection" for topics in range(5)},
}
"""How an instruction can still fail that could be paid for."""


class CostMismatch(RuntimeError):
    """An instruction that was executed though its cost said that it can't be."""


class Stepping:
    """One transaction's execution, told to a tracer instruction by instruction.

    It is put into the state as `stepping`; while that is None, code just runs.
    """

    def __init__(
        self, tracer: StepTracer, prices: tuple[Price, ...], deadline: float
    ) -> None:
        """Watch for a tracer.

        prices: of the fork. deadline: in the time of `time.monotonic()`.
        """
        self._tracer = tracer
        self._prices = prices
        self._deadline = deadline
        self._steps = 0
        self.refund = 0
        """The refund counter: geth raises it while it computes an instruction's cost."""
        self.destroyed: dict[bytes, None] = {}
        """Contracts that have destroyed themselves, in order, undone ones left out."""

    def _look_at_clock(self) -> None:
        """Raise ExecutionTimeout when it is time."""
        if time.monotonic() >= self._deadline:
            raise ExecutionTimeout

    def run(self, frame: Any, table: OpcodeTable) -> None:
        """Run a frame's code until it halts.

        Raises: VMError as the code fails, with the program counter at what failed;
        TracerError as the tracer does.
        """
        if frame.msg.depth == 0:
            self.refund = frame.msg.refund
        code, meter = frame.code.raw, frame._gas_meter
        values, program = frame._stack.values, table.decode(frame.code.raw)
        step = Step(frame, frame.msg.depth + 1)
        position, gas = 0, meter.gas_remaining
        while True:
            try:
                kind, taken, argument, following = program[position]
            except KeyError:
                program[position] = instruction_at(table, code, position)
                continue
            step.pc, step.gas = position, gas
            step.op = code[position] if position < len(code) else STOP
            self._report(step, values)
            if step.error is not None:
                self._fail(step, table)
            gas -= taken
            if kind == PUSH:
                values.append(argument)
            elif kind == DUPLICATE:
                values.append(values[-argument])
            elif kind == COMPUTE:
                argument(values)
            elif kind == SWAP:
                values[-1], values[-1 - argument] = values[-1 - argument], values[-1]
            else:
                meter.gas_remaining, frame.code.program_counter = gas, following
                try:
                    self._execute(step, kind, argument)
                except Halt:
                    return
                gas, following = meter.gas_remaining, frame.code.program_counter
            position = following

    def _report(self, step: Step, values: list[int]) -> None:
        """Tell the tracer what an instruction costs, and why it can't be executed.

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
        if not self._steps % STEPS_BETWEEN_LOOKS:
            self._look_at_clock()

    def _execute(self, step: Step, kind: int, operation: Any) -> None:
        """Execute an instruction that is more than arithmetic on the stack.

        Raises: Halt, VMError.
        """
        frame, refund, destroyed = step.frame, self.refund, len(self.destroyed)
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
            if self._prices[step.op].is_valid:
                step.error = _FAULTS.get(step.op)
            else:
                step.error = f"invalid opcode: {OPCODE_NAMES[step.op]}"
            frame.code.program_counter = step.pc
            self._tracer.fault(step)
            raise
        if frame.children and frame.children[-1]._error is not None:
            self.refund = refund
            while len(self.destroyed) > destroyed:
                self.destroyed.popitem()

    def _fail(self, step: Step, table: OpcodeTable) -> None:
        """Let the interpreter itself fail in an instruction that can't be executed."""
        frame = step.frame
        frame.code.program_counter = step.pc
        frame._gas_meter.gas_remaining = step.gas
        run(frame, table)
        raise CostMismatch(f"{OPCODE_NAMES[step.op]} at {step.pc}: {step.error}")


def _run_code(frame: Any, table: OpcodeTable) -> None:
    """Run a frame step by step, if it has code and somebody is watching."""
    stepping: Stepping | None = frame.state.stepping
    if stepping is None or not frame.code.raw:
        run(frame, table)
    else:
        stepping.run(frame, table)


@cache
def stepped(fork: Fork) -> Fork:
    """Return the same fork, whose states can have a `Stepping`."""
    base = fork.base_state_class
    frames = base.computation_class
    watched = type(frames.__name__, (frames,), {"run_code": staticmethod(_run_code)})
    attributes = {"computation_class": watched, "stepping": None}
    return replace(fork, base_state_class=type(base.__name__, (base,), attributes))


def step_through(
    state: Any, fork: Fork, tracer: StepTracer, deadline: float
) -> Stepping:
    """Have the state's next transaction told to a tracer; `fork` is the plain one."""
    state.stepping = Stepping(tracer, price_list(fork), deadline)
    stepping: Stepping = state.stepping
    return stepping
