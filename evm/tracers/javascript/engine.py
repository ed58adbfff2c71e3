"""A QuickJS context for untrusted code, with limits of memory, stack and time.

The context contains only the language: no files, no timers, no modules. It can only
call the Python functions that it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quickjs import Context, JSException

Host = Callable[..., Any]
"""A Python function that JavaScript calls, with numbers, strings, booleans and None.
It must not raise."""

MAX_INTEGER = 2**31 - 1
"""Largest integer that QuickJS accepts from Python. Larger numbers are passed as
floats."""


INTERRUPTED = "InternalError: interrupted"
"""Error of code that has exceeded its time limit. JavaScript can't catch it."""
OUT_OF_MEMORY = "InternalError: out of memory"


def message(error: JSException) -> str:
    """Return the message of an engine error, without its stack trace."""
    text = str(error).partition("\n")[0]
    # The engine throws null if it has no memory for an error object.
    return OUT_OF_MEMORY if text == "null" else text


class _Disarm:
    """Removes a context's time limit when JavaScript releases this object."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def __call__(self) -> None:
        """Do nothing. Only the deletion of this object has an effect."""

    def __del__(self) -> None:
        self._context.set_time_limit(-1)


class Engine:
    """A QuickJS context with limits. It may only be used in the thread that created it."""

    def __init__(self, memory_bytes: int, stack_bytes: int) -> None:
        """Create a context with limits of its memory and of the C stack, in bytes."""
        self._context = Context()
        self._context.set_memory_limit(memory_bytes)
        self._context.set_max_stack_size(stack_bytes)

    def offer(self, name: str, function: Host) -> None:
        """Make a Python function a global of the context."""
        self._context.add_callable(name, function)

    def limit_time(self, seconds: float) -> None:
        """Stop all further execution after this CPU time of the process, in seconds.

        quickjs restarts its own limit with each call, and forbids calls from JavaScript
        to Python while a limit is set. The limit is therefore set for one evaluation
        only. During the evaluation, the finaliser of a released function removes the
        limit, but the interrupt handler of the evaluation stays installed.
        """
        self.offer("host:disarm", _Disarm(self._context))
        self._context.set_time_limit(max(seconds, 0))
        self.evaluate("delete globalThis['host:disarm']")

    def evaluate(self, source: str) -> Any:
        """Evaluate a trusted script, and return its value.

        Functions and objects are returned as callables.
        """
        return self._context.eval(source)
