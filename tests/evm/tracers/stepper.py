"""Frames that run step by step. Each reported cost is compared with the charged gas."""

from __future__ import annotations

import time
from typing import Any

from evm.frame import Frame
from evm.message import Message
from evm.message_call import MessageCall
from evm.opcodes import OPCODE_NAMES
from evm.rules.fork import Fork
from evm.state import State
from evm.tracers.frame_events import FrameEvents
from evm.tracers.frames import CallFrame
from evm.tracers.watching import WatchedFrame, WatchedState
from tests.evm.frames import CONTRACT, SENDER, new_state


class CountingFrame(WatchedFrame):
    """A frame that counts the gas which calls return and which creations get."""

    returned = 0
    given = 0

    def run_child(self, name: str, message: Message) -> Frame:
        child = super().run_child(name, message)
        self.returned += child.gas_remaining
        if message.is_create:
            self.given += message.gas
        return child

    def refuse_child(self, name: str, message: Message, error: str, used: int) -> None:
        super().refuse_child(name, message, error, used)
        if not message.is_create:
            self.returned += message.gas


class CountingState(WatchedState):
    def frame(self, message: Any, transaction: Any) -> MessageCall:
        return CountingFrame(self, message, transaction)


class CountingEvents(FrameEvents):
    def new_state(self, world: Any, block: Any, fork: Fork) -> State:
        return CountingState(world, block, fork, self)


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
        if frame.error is None and not frame.message.is_create:
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


def stepped_state(fork: Fork | str, tracer: Any, seconds: float = 60) -> State:
    """Return a state whose frames are reported to the tracer."""
    events = CountingEvents()
    events.attach(tracer, time.monotonic() + seconds)
    events.enter(CallFrame("CALL", SENDER, CONTRACT, 0, b"", 0, 0))
    return new_state(fork, events)
