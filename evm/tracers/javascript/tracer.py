"""A `StepTracer` that calls the functions of a JavaScript tracer."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quickjs import JSException

from evm.tracers.javascript.engine import (
    INTERRUPTED,
    MAX_INTEGER,
    OUT_OF_MEMORY,
    Engine,
    message,
)
from evm.tracers.javascript.host import HostFunctions
from evm.tracers.steps import ExecutionTimeout, TracerError

if TYPE_CHECKING:
    from evm.tracers.frames import CallFrame
    from evm.tracers.steps import Step, TracedTransaction

MEMORY_BYTES = 256 * 1024 * 1024
"""Memory limit of a tracer, including its own source."""
STACK_BYTES = 4 * 1024 * 1024
"""Limit of the C stack in bytes, which has to be larger. It permits about 2400 nested
JavaScript calls. A recursive walk of a call tree needs up to 1024."""
MAX_SOURCE_CHARACTERS = 1024 * 1024

_RUNTIME = Path(__file__).parent / "runtime"
_NOT_IN_JSON = {"NaN": "NaN", "Infinity": "+Inf", "-Infinity": "-Inf"}
"""Numbers that JSON can't express, and Go's names for them."""
_FAILED, _STEPS, _FRAMES = 1, 2, 4
"""Results of model.js: a failure, otherwise the set of hooks that the tracer has."""


@cache
def _script(name: str) -> str:
    return (_RUNTIME / name).read_text()


class JavaScriptTracer:
    """A `StepTracer` for one transaction, in its own context."""

    def __init__(self, source: str, config: str, deadline: float) -> None:
        """Evaluate a tracer and call its `setup`.

        source: an expression for the tracer's object. config: JSON, the argument of
            `setup`.
        deadline: in the time of `time.monotonic()`. The tracer may use the process's
            CPU time until then.

        Raises: TracerError.
        """
        if len(source) > MAX_SOURCE_CHARACTERS:
            raise TracerError(
                f"tracer has {len(source)} characters, "
                f"at most {MAX_SOURCE_CHARACTERS} are allowed"
            )
        self._host = HostFunctions()
        engine = Engine(MEMORY_BYTES, STACK_BYTES)
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
        """Receive the transaction before its execution."""
        self._host.transaction = transaction

    def step(self, step: Step) -> None:
        """Call the tracer's `step`."""
        self._host.step = step
        gas, cost = step.gas, step.cost
        if gas > MAX_INTEGER or cost > MAX_INTEGER:
            gas, cost = float(gas), float(cost)  # type: ignore[assignment]
        # The same as `_call`, inlined to save a Python call per instruction.
        try:
            if not self._step(step.pc, step.op, gas, cost, step.depth, step.refund):
                return
        except JSException as error:
            raise self._stopped(error, "step") from None
        raise self._failed("step")

    def fault(self, step: Step) -> None:
        """Call the tracer's `fault`. `log` has the same values as in `step`."""
        self._host.step = step
        self._call(self._fault, "fault")

    def enter(self, frame: CallFrame) -> None:
        """Call the tracer's `enter`."""
        self._host.frame = frame
        self._call(self._enter, "enter")

    def exit(self, frame: CallFrame) -> None:
        """Call the tracer's `exit`."""
        self._host.frame = frame
        self._call(self._exit, "exit")

    def log(
        self, address: bytes, topics: tuple[bytes, ...], data: bytes, index: int
    ) -> None:
        """Do nothing: geth's JavaScript tracers do not receive logs."""

    def end(self, frame: CallFrame, gas_used: int) -> None:
        """Receive the outermost frame at the end of the transaction."""
        self._host.top, self._host.gas_used = frame, gas_used

    def result(self) -> bytes:
        """Call the tracer's `result`, and return its value as JSON."""
        self._call(self._entry("result"), "result")
        answer: str | None = self._entry("answered")()
        if answer is None:
            # The engine had no memory left to return the result.
            raise TracerError(_in_function(OUT_OF_MEMORY, "result"))
        if answer in _NOT_IN_JSON:
            raise TracerError(f"json: unsupported value: {_NOT_IN_JSON[answer]}")
        return answer.encode()

    def _call(self, function: Any, hook: str, *arguments: Any) -> int:
        """Call into JavaScript. Raises: TracerError, with geth's text."""
        try:
            answer: int = function(*arguments)
        except JSException as error:
            raise self._stopped(error, hook) from None
        if answer & _FAILED:
            raise self._failed(hook)
        return answer

    def _stopped(self, error: JSException, hook: str) -> BaseException:
        """Return the exception to raise after the engine has stopped a tracer."""
        text = message(error)
        if self._host.failure is not None:
            return self._host.failure
        if text == INTERRUPTED:
            return ExecutionTimeout()
        return TracerError(_in_function(text, hook))

    def _failed(self, hook: str) -> BaseException:
        """Return the exception to raise after one of a tracer's functions has failed.

        If a host function caused the failure, its exception is returned.
        """
        if self._host.failure is not None:
            return self._host.failure
        try:
            text = self._entry("failure")()
        except JSException as error:
            return self._stopped(error, hook)
        return TracerError(_in_function(text or OUT_OF_MEMORY, hook))


def _in_function(text: str, hook: str) -> str:
    """Return geth's text for a failure in one of the tracer's functions."""
    return f"{text}    in server-side tracer function '{hook}'" if hook else text


def _well_formed(text: str) -> str:
    """Return text without lone surrogates, which JSON may contain."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
