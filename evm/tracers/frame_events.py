"""Call events for tracers, sent when calls begin and end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evm.interpreter import run
from evm.tracers.recorder import Recorder
from evm.tracers.stepping import Stepping
from evm.tracers.watching import Watcher

if TYPE_CHECKING:
    from evm.tracers.frames import CallFrame
    from evm.tracers.steps import StepTracer


class TracerEvents(Watcher):
    """A watcher that reports frames and logs to a tracer."""

    tracer: StepTracer | None = None
    """The tracer that receives the events of all frames but the outermost one, or
    None."""

    def attach(self, tracer: StepTracer, deadline: float) -> None:
        """Report what follows to a tracer, instructions too if it wants them.

        deadline: in the time of `time.monotonic()`.
        """
        self.tracer = tracer
        if tracer.wants_steps:
            self.run_frame = Stepping(tracer, deadline).run

    def detach(self) -> None:
        """Report nothing to the tracer any more."""
        self.tracer, self.run_frame = None, run

    def enter(self, frame: CallFrame) -> None:
        """Report the beginning of a frame. Raises: TracerError if the tracer fails."""
        super().enter(frame)
        if frame.depth and self.tracer is not None and self.tracer.wants_frames:
            self.tracer.enter(frame)

    def log(self, address: bytes, topics: tuple[bytes, ...], data: bytes) -> None:
        """Report a log of the executing frame."""
        index = self.log_count
        super().log(address, topics, data)
        if self.tracer is not None and self.tracer.wants_frames:
            self.tracer.log(address, topics, data, index)

    def exit(self, frame: CallFrame) -> None:
        """Report the end of a frame. Raises: TracerError if the tracer fails."""
        super().exit(frame)
        if frame.depth and self.tracer is not None and self.tracer.wants_frames:
            self.tracer.exit(frame)


class FrameEvents(TracerEvents):
    """A watcher of a block that keeps no call tree. Tracers build their own if needed.

    geth reports unpaid code to these tracers as an error. Only its callTracer omits
    this error before Homestead.

    Source: go-ethereum, core/vm/evm.go `captureEnd`; eth/tracers/logger/logger.go,
    js/goja.go `OnExit`, native/call.go `processOutput`
    """

    records = None
    unpaid_code_is_error = True

    def __init__(self) -> None:
        """Begin without a tracer."""
        super().__init__(limit_bytes=0)

    def kept_input(self, data: bytes | memoryview) -> bytes:
        """Return a call's input if the tracer wants call events, otherwise b""."""
        if self.tracer is None or not self.tracer.wants_frames:
            return b""
        return bytes(data)


class RecordingEvents(TracerEvents, Recorder):
    """A recorder that also reports frames and logs to a tracer.

    Unlike `FrameEvents`, it reports no error for unpaid code before Homestead.
    """


Events = FrameEvents | RecordingEvents
"""Watchers of blocks whose transactions are traced."""
