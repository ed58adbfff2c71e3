"""The interpreter loop that reports every instruction to a tracer before executing it.

It is separate from `evm.interpreter.run`, which therefore is not slowed down. Both
execute the same functions. An instruction's cost is computed in advance, by the function
that its operation charges from.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from evm.code import STOP
from evm.frame_errors import OUT_OF_GAS, FrameError
from evm.instructions import INVALID, instructions_of
from evm.instructions.kinds import COMPUTE, DUPLICATE, END, HALT, PUSH, READ, SWAP
from evm.interpreter import pushed_value, run, stack_error
from evm.opcodes import NUMBERS, OPCODE_NAMES
from evm.tracers.steps import ExecutionTimeout, Step

if TYPE_CHECKING:
    from evm.frame import Frame
    from evm.instructions.kinds import Instruction, Operation
    from evm.tracers.steps import StepTracer

STEPS_BETWEEN_CHECKS = 256
"""Instructions between two checks of the deadline: a fraction of a millisecond."""

_REVERT = NUMBERS["REVERT"]


class CostMismatch(RuntimeError):
    """Raised when an instruction was executed although its cost exceeds the gas."""


class Stepping:
    """Execution of one transaction, reported to a tracer instruction by instruction."""

    def __init__(self, tracer: StepTracer, deadline: float) -> None:
        """deadline: in the time of `time.monotonic()`."""
        self._tracer = tracer
        self._deadline = deadline
        self._steps = 0

    def run(self, frame: Frame) -> None:
        """Execute a frame's code until it halts.

        Raises: FrameError if the code fails, with the program counter at the failed
            instruction; TracerError if the tracer fails.
        """
        code, values, entries = frame.code, frame.stack, frame.state.entries
        step, instructions = (
            Step(frame, frame.message.depth + 1),
            instructions_of(frame.fork),
        )
        position = 0
        while True:
            step.pc, step.gas = position, frame.gas_remaining
            step.op = code[position] if position < len(code) else STOP
            kind, constant, argument = entries[step.op]
            self._report(step, instructions[step.op], constant)
            if step.error is not None:
                self._fail(step)
            frame.gas_remaining = step.gas - constant
            if kind == PUSH:
                values.append(pushed_value(code, position, argument))
                position += argument
            elif kind == DUPLICATE:
                values.append(values[-argument])
            elif kind == COMPUTE:
                argument(values)
            elif kind == SWAP:
                values[-1], values[-1 - argument] = values[-1 - argument], values[-1]
            elif kind == READ:
                values.append(argument(frame))
            else:
                frame.pc = position
                self._execute(step, argument)
                if kind in (END, HALT):
                    return
                position = frame.pc
                continue
            position += 1

    def _report(self, step: Step, instruction: Instruction, constant: int) -> None:
        """Report an instruction with its cost, and the error if it can't be executed.

        constant: its constant price.

        Raises: TracerError.
        """
        frame, (_, _, cost, refund, state_cost) = step.frame, instruction
        step.cost, step.error = constant, None
        # As in geth, a refund counts from the computation of the cost on.
        step.refund = frame.transaction.effects.refund
        stack = stack_error(step.op, len(frame.stack))
        if instruction is INVALID:
            pass
        elif stack is not None:
            step.error = str(stack)
        elif step.gas < constant:
            step.error = OUT_OF_GAS
        elif cost is not None:
            frame.gas_remaining = step.gas - constant
            try:
                step.cost += cost(frame)
            except FrameError as error:
                step.error = str(error)
            else:
                if refund is not None:
                    step.refund += refund(frame)
                left = step.gas - step.cost
                if left < 0 or (
                    state_cost is not None
                    and state_cost(frame) > left + frame.reservoir
                ):
                    step.error = OUT_OF_GAS
        self._tracer.step(step)
        self._steps += 1
        if not self._steps % STEPS_BETWEEN_CHECKS and (
            time.monotonic() >= self._deadline
        ):
            raise ExecutionTimeout

    def _execute(self, step: Step, operation: Operation) -> None:
        """Execute an instruction that does more than arithmetic on the stack.

        Raises: FrameError; TracerError.
        """
        frame = step.frame
        # The operands of other instructions are still there after a failure.
        operands = frame.stack[-2:] if step.op == _REVERT else []
        try:
            operation(frame)
        except FrameError as error:
            self._fault(step, error)
            raise
        if frame.error is not None:  # REVERT sets an error without raising.
            frame.stack += operands
            self._fault(step, frame.error)

    def _fault(self, step: Step, error: FrameError) -> None:
        """Report that an instruction failed during its execution. Raises: TracerError.

        A tracer sees the stack as it was before the instruction.
        """
        step.error = str(error)
        self._tracer.fault(step)

    def _fail(self, step: Step) -> None:
        """Execute a failing instruction in the interpreter, which raises its error."""
        frame = step.frame
        frame.pc, frame.gas_remaining = step.pc, step.gas
        run(frame)
        raise CostMismatch(f"{OPCODE_NAMES[step.op]} at {step.pc}: {step.error}")
