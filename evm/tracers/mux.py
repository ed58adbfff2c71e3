"""muxTracer, if at least one of its tracers has to observe the execution.

Source: go-ethereum, eth/tracers/native/mux.go
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evm.tracers.frames import CallFrame
    from evm.tracers.steps import Step, StepTracer, TracedTransaction

Recorded = Callable[[], bytes]
"""Returns the JSON of a tracer whose result is computed from trace records."""


class MuxTracer:
    """A `StepTracer` that forwards events to several tracers.

    Its result is an object: tracer name → result.
    """

    def __init__(
        self,
        executed: Sequence[tuple[str, StepTracer]],
        recorded: Sequence[tuple[str, Recorded]],
    ) -> None:
        """Create a tracer for one transaction.

        executed: tracers that need the execution. recorded: results of the others.
        """
        self._executed = executed
        self._recorded = recorded
        tracers = [tracer for _, tracer in executed]
        self._tracers = tracers
        self._of_steps = [tracer for tracer in tracers if tracer.wants_steps]
        self._of_frames = [tracer for tracer in tracers if tracer.wants_frames]
        self.wants_steps = bool(self._of_steps)
        self.wants_frames = bool(self._of_frames)

    def start(self, transaction: TracedTransaction) -> None:
        """Forward the beginning of the transaction."""
        for tracer in self._tracers:
            tracer.start(transaction)

    def step(self, step: Step) -> None:
        """Pass an instruction on to all tracers."""
        for tracer in self._of_steps:
            tracer.step(step)

    def fault(self, step: Step) -> None:
        """Pass the failure of an instruction on to all tracers."""
        for tracer in self._of_steps:
            tracer.fault(step)

    def enter(self, frame: CallFrame) -> None:
        """Forward the beginning of a call."""
        for tracer in self._of_frames:
            tracer.enter(frame)

    def exit(self, frame: CallFrame) -> None:
        """Forward the end of a call."""
        for tracer in self._of_frames:
            tracer.exit(frame)

    def log(
        self, address: bytes, topics: tuple[bytes, ...], data: bytes, index: int
    ) -> None:
        """Pass a log on to all tracers."""
        for tracer in self._of_frames:
            tracer.log(address, topics, data, index)

    def end(self, frame: CallFrame, gas_used: int) -> None:
        """Forward the end of the transaction."""
        for tracer in self._tracers:
            tracer.end(frame, gas_used)

    def result(self) -> bytes:
        """Return the tracers' results as a JSON object, sorted by name.

        Raises: TracerError if a tracer fails.
        """
        answers = {name: tracer.result() for name, tracer in self._executed}
        answers |= {name: answer() for name, answer in self._recorded}
        members = [
            json.dumps(name, ensure_ascii=False).encode() + b":" + answers[name]
            for name in sorted(answers)
        ]
        return b"{" + b",".join(members) + b"}"
