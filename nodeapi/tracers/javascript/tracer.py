"""A JavaScript tracer as the stepping loop knows tracers."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodeapi.tracers.javascript.engine import Engine, EngineError, OutOfTime
from nodeapi.tracers.javascript.host import HostFunctions, number
from nodeapi.tracers.steps import ExecutionTimeout, TracerError

if TYPE_CHECKING:
    from nodeapi.tracers.frames import CallFrame
    from nodeapi.tracers.steps import Step, TracedTransaction

MEMORY_BYTES = 128 * 1024 * 1024
"""What a tracer may keep, its own source included."""
STACK_BYTES = 256 * 1024
"""Of the C stack: some hundred JavaScript calls within each other."""
MAX_SOURCE_CHARACTERS = 1024 * 1024

_RUNTIME = Path(__file__).parent / "runtime"
_FAILED, _STEPS, _FRAMES = 1, 2, 4
"""What model.js answers: failed; else what it wants to be called for."""
_NO_MEMORY = "InternalError: out of memory"


@cache
def _script(name: str) -> str:
    return (_RUNTIME / name).read_text()


class JavaScriptTracer:
    """A `StepTracer` for one transaction, in a context of its own."""

    def __init__(self, source: str, config: str, deadline: float) -> None:
        """Evaluate a tracer, and have it set itself up.

        source: an expression for the tracer's object. config: JSON, for its `setup`.
        deadline: in the time of `time.monotonic()`; what the process may use of the
        CPU until then is the tracer's limit.

        Raises: TracerError.
        """
        if len(source) > MAX_SOURCE_CHARACTERS:
            raise TracerError(
                f"tracer has {len(source)} characters, "
                f"at most {MAX_SOURCE_CHARACTERS} are allowed"
            )
        self._host = HostFunctions()
        self._engine = engine = Engine(MEMORY_BYTES, STACK_BYTES)
        for name, function in self._host.functions().items():
            engine.offer(f"host:{name}", function)
        big_int = engine.evaluate(_script("big_int.js"))
        self._entry = engine.evaluate(_script("model.js"))(big_int)
        self._step, self._fault = self._entry("step"), self._entry("fault")
        self._enter, self._exit = self._entry("enter"), self._entry("exit")
        engine.limit_time(deadline - time.monotonic())
        wanted = self._call(
            self._entry("load"), "", _well_formed(source), _well_formed(config)
        )
        self.wants_steps = bool(wanted & _STEPS)
        self.wants_frames = bool(wanted & _FRAMES)

    def start(self, transaction: TracedTransaction) -> None:
        """See the transaction begin."""
        self._host.transaction = transaction

    def step(self, step: Step) -> None:
        """Call the tracer's `step`."""
        self._host.step = step
        self._call(self._step, "step", *_scalars(step))

    def fault(self, step: Step) -> None:
        """Call the tracer's `fault`."""
        self._host.step = step
        self._call(self._fault, "fault", *_scalars(step))

    def enter(self, frame: CallFrame) -> None:
        """Call the tracer's `enter`."""
        self._host.frame = frame
        self._call(self._enter, "enter")

    def exit(self, frame: CallFrame) -> None:
        """Call the tracer's `exit`."""
        self._host.frame = frame
        self._call(self._exit, "exit")

    def end(self, frame: CallFrame, gas_used: int) -> None:
        """See the outcome."""
        self._host.top, self._host.gas_used = frame, gas_used

    def result(self) -> bytes:
        """Call the tracer's `result`, and return what it gives as JSON."""
        self._call(self._entry("result"), "result")
        found = self._ask("answered")
        if found is None:
            raise TracerError(_in_function(_NO_MEMORY, "result"))
        return found.encode()

    def _call(self, function: Any, hook: str, *arguments: Any) -> int:
        """Call into JavaScript. Raises: TracerError, with geth's text."""
        try:
            answer: int = self._engine.call(function, *arguments)
        except OutOfTime:
            raise ExecutionTimeout from None
        except EngineError as error:
            self._raise_own()
            text = str(error) if str(error) != "null" else _NO_MEMORY
            raise TracerError(_in_function(text, hook)) from None
        if answer & _FAILED:
            self._raise_own()
            text = self._ask("failure") or _NO_MEMORY
            raise TracerError(_in_function(text, hook))
        return answer

    def _raise_own(self) -> None:
        """Raise what failed on our side of it: that is not the tracer's fault."""
        if self._host.failure is not None:
            raise self._host.failure

    def _ask(self, name: str) -> str | None:
        """Return a text, None when there is no memory for it."""
        try:
            text: str | None = self._engine.call(self._entry(name))
        except OutOfTime:
            raise ExecutionTimeout from None
        except EngineError:
            return None
        return text


def _scalars(step: Step) -> tuple[int | float, ...]:
    gas, cost, refund = step.gas, step.cost, step.refund
    return step.pc, step.op, number(gas), number(cost), step.depth, number(refund)


def _in_function(text: str, hook: str) -> str:
    """Return geth's text for a failure in one of the tracer's functions."""
    return f"{text}    in server-side tracer function '{hook}'" if hook else text


def _well_formed(text: str) -> str:
    """Return text without halves of surrogate pairs, which JSON can hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
