"""One QuickJS context that foreign code may run in: bounded memory, stack and time.

The context knows the language and nothing else: no files, no clock that waits, no
modules. What it may ask of Python are the functions that it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quickjs import Context, JSException

Host = Callable[..., Any]
"""A Python function for JavaScript: takes and gives numbers, text, truth and None.
It must not raise."""

MAX_INTEGER = 2**31 - 1
"""What QuickJS takes from Python as an integer; more has to come as a float."""


INTERRUPTED = "InternalError: interrupted"
"""What code is stopped with whose time is over; it can't catch that."""
OUT_OF_MEMORY = "InternalError: out of memory"


def message(error: JSException) -> str:
    """Return what an error of the engine's own says, without its stack."""
    text = str(error).partition("\n")[0]
    # Null is thrown when there is no memory even for an error.
    return OUT_OF_MEMORY if text == "null" else text


class _Disarm:
    """Lifts a context's time limit in the moment in which JavaScript lets go of it."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def __call__(self) -> None:
        """Do nothing: it is a function for being dropped."""

    def __del__(self) -> None:
        self._context.set_time_limit(-1)


class Engine:
    """A context and its limits. It belongs to the thread that made it."""

    def __init__(self, memory_bytes: int, stack_bytes: int) -> None:
        """Make a context that may take so much memory, and so much of the C stack."""
        self._context = Context()
        self._context.set_memory_limit(memory_bytes)
        self._context.set_max_stack_size(stack_bytes)

    def offer(self, name: str, function: Host) -> None:
        """Make a Python function a global of the context."""
        self._context.add_callable(name, function)

    def limit_time(self, seconds: float) -> None:
        """Stop all that runs from now on when the process has used so much CPU time.

        The limit that quickjs offers begins anew with each call, and forbids calls
        from JavaScript into Python while it is set. It is therefore set for one
        evaluation, and lifted before the end of that, by the finaliser of a function
        that is dropped meanwhile: the handler which the evaluation installed stays.
        """
        self.offer("host:disarm", _Disarm(self._context))
        self._context.set_time_limit(max(seconds, 0))
        self.evaluate("delete globalThis['host:disarm']")

    def evaluate(self, source: str) -> Any:
        """Evaluate a script of our own; functions and objects come as callables."""
        return self._context.eval(source)
