"""Calls told to a tracer while they begin and end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeapi.tracers.watching import Watcher

if TYPE_CHECKING:
    from nodeapi.tracers.frames import CallFrame
    from nodeapi.tracers.steps import StepTracer


class FrameEvents(Watcher):
    """A block's watcher that keeps no tree: who wants one builds it.

    geth tells these tracers of code that could not be paid for as of any error; its
    callTracer alone leaves that out before Homestead.
    Source: go-ethereum, core/vm/evm.go `captureEnd`; eth/tracers/logger/logger.go,
    js/goja.go `OnExit`, native/call.go `processOutput`
    """

    records = None
    unpaid_code_is_error = True

    def __init__(self) -> None:
        """Tell nobody yet."""
        super().__init__(limit_bytes=0)
        self.tracer: StepTracer | None = None
        """Told of every frame but the outermost, while it is not None."""

    def enter(self, frame: CallFrame) -> None:
        """See a frame begin. Raises: TracerError as the tracer does."""
        super().enter(frame)
        if frame.depth and self.tracer is not None and self.tracer.wants_frames:
            self.tracer.enter(frame)

    def exit(self, frame: CallFrame) -> None:
        """See it end. Raises: TracerError as the tracer does."""
        super().exit(frame)
        if frame.depth and self.tracer is not None and self.tracer.wants_frames:
            self.tracer.exit(frame)
