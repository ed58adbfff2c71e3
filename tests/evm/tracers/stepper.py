"""Frames that run step by step. Each reported cost is compared with the charged gas."""

from __future__ import annotations

import time
from typing import Any

from evm.chain_config import LADDER
from evm.fork import Fork
from evm.opcodes import OPCODE_NAMES
from evm.tracers.stepping import step_through, stepped
from tests.evm.frames import new_state


class CountingFrame:
    """Mixin before a frame. It counts gas returned by calls and passed to creations."""

    returned = 0
    given = 0

    def return_gas(self, amount: int) -> None:
        self.returned += amount
        super().return_gas(amount)  # type: ignore[misc]

    def apply_child_computation(self, message: Any) -> Any:
        if message.is_create:
            self.given += message.gas
        return super().apply_child_computation(message)  # type: ignore[misc]


class CostChecker:
    """A tracer that compares costs with the charged gas, and keeps the reported values.

    The charged gas is known when the next instruction of the frame is reported, or
    when the frame ends.
    """

    wants_steps = True
    wants_frames = False

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.faults: list[dict[str, Any]] = []
        self._open: dict[int, tuple[Any, ...]] = {}
        self.checked = 0

    def start(self, transaction: Any) -> None:
        pass

    def step(self, step: Any) -> None:
        self._close_deeper(step.depth)
        before = self._open.pop(step.depth, None)
        if before is not None and before[0] is step.frame:
            self._compare(step.gas, *before)
        elif before is not None:
            self._compare_at_end(*before)
        frame = step.frame
        self.entries.append(
            {
                "pc": step.pc,
                "op": OPCODE_NAMES[step.op],
                "gas": step.gas,
                "cost": step.cost,
                "depth": step.depth,
                "refund": step.refund,
                "error": step.error,
                "stack": list(frame.stack),
            }
        )
        if step.error is None:
            self._open[step.depth] = (
                frame,
                OPCODE_NAMES[step.op],
                step.gas,
                step.cost,
                frame.returned,
                frame.given,
            )

    def finish(self) -> None:
        """Compare the remaining instructions when the outermost frame has ended."""
        self._close_deeper(0)

    def _close_deeper(self, depth: int) -> None:
        for deeper in [d for d in self._open if d > depth]:
            self._compare_at_end(*self._open.pop(deeper))

    def _compare_at_end(self, frame: Any, *before: Any) -> None:
        # A creation has been charged for its code by now.
        if frame._error is None and not frame.msg.is_create:
            self._compare(frame.gas_remaining, frame, *before)

    def _compare(
        self,
        gas_now: int,
        frame: Any,
        op: str,
        gas: int,
        cost: int,
        returned: int,
        given: int,
    ) -> None:
        taken = gas - gas_now + frame.returned - returned
        if op in ("CREATE", "CREATE2"):
            taken -= frame.given - given
            if frame.given == given and taken > cost:
                return  # a collision uses up the gas of the init code
        assert taken == cost, (op, taken, cost)
        self.checked += 1

    def fault(self, step: Any) -> None:
        assert step.error is not None
        self.faults.append({"pc": step.pc, "error": step.error})
        self._open.pop(step.depth, None)

    def enter(self, frame: Any) -> None:
        pass

    def log(self, *log: Any) -> None:
        pass

    def exit(self, frame: Any) -> None:
        pass

    def end(self, frame: Any, gas_used: int) -> None:
        pass

    def result(self) -> bytes:
        return b""


def stepped_state(fork: Fork | str, tracer: Any, seconds: float = 60) -> Any:
    """Return a state whose frames are reported to the tracer."""
    plain = LADDER[fork] if isinstance(fork, str) else fork
    state = new_state(stepped(plain))
    frames = state.computation_class
    state.computation_class = type(frames.__name__, (CountingFrame, frames), {})
    state.stepping = step_through(state, plain, tracer, time.monotonic() + seconds)
    return state
