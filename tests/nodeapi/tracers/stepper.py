"""Frames run step by step, with every reported cost held against what was taken."""

from __future__ import annotations

import time
from typing import Any

import pytest

from nodeapi.evm.chain_config import LADDER
from nodeapi.evm.computation import GasMeter
from nodeapi.evm.forks import Fork
from nodeapi.tracers.opcodes import OPCODE_NAMES
from nodeapi.tracers.stepping import step_through, stepped
from tests.nodeapi.evm.frames import new_state


class CountingMeter(GasMeter):
    """Knows what was given back, so that what was taken can be told."""

    __slots__ = ("returned",)

    def __init__(self, start_gas: int) -> None:
        super().__init__(start_gas)
        self.returned = 0

    def return_gas(self, amount: int) -> None:
        super().return_gas(amount)
        self.returned += amount


class CostChecker:
    """A tracer that compares, step by step, and keeps what it was told.

    What an instruction took is looked up when the next one of its frame is reported,
    or when its frame is over.
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
        frame, meter = step.frame, step.frame._gas_meter
        self.entries.append(
            {
                "pc": step.pc,
                "op": OPCODE_NAMES[step.op],
                "gas": step.gas,
                "cost": step.cost,
                "depth": step.depth,
                "refund": step.refund,
                "error": step.error,
                "stack": list(frame._stack.values),
            }
        )
        if step.error is None:
            self._open[step.depth] = (
                frame,
                OPCODE_NAMES[step.op],
                step.gas,
                step.cost,
                meter.returned,
                len(frame.children),
            )

    def finish(self) -> None:
        """Compare what is left when the outermost frame is over."""
        self._close_deeper(0)

    def _close_deeper(self, depth: int) -> None:
        for deeper in [d for d in self._open if d > depth]:
            self._compare_at_end(*self._open.pop(deeper))

    def _compare_at_end(self, frame: Any, *before: Any) -> None:
        # A creation has paid for its code by now.
        if frame._error is None and not frame.msg.is_create:
            self._compare(frame._gas_meter.gas_remaining, frame, *before)

    def _compare(
        self,
        gas_now: int,
        frame: Any,
        op: str,
        gas: int,
        cost: int,
        returned: int,
        children: int,
    ) -> None:
        taken = gas - gas_now + frame._gas_meter.returned - returned
        if op in ("CREATE", "CREATE2"):
            if len(frame.children) > children:
                taken -= frame.children[-1].msg.gas
            elif taken > cost:
                return  # a collision burns what it was to be given
        assert taken == cost, (op, taken, cost)
        self.checked += 1

    def fault(self, step: Any) -> None:
        assert step.error is not None
        self.faults.append({"pc": step.pc, "error": step.error})
        self._open.pop(step.depth, None)

    def enter(self, frame: Any) -> None:
        pass

    def exit(self, frame: Any) -> None:
        pass

    def end(self, frame: Any, gas_used: int) -> None:
        pass

    def result(self) -> bytes:
        return b""


@pytest.fixture
def counting_meter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodeapi.evm.computation.GasMeter", CountingMeter)


def stepped_state(fork: Fork | str, tracer: Any, seconds: float = 60) -> Any:
    """Return a state whose frames are reported to the tracer."""
    plain = LADDER[fork] if isinstance(fork, str) else fork
    state = new_state(stepped(plain))
    state.stepping = step_through(state, plain, tracer, time.monotonic() + seconds)
    return state
