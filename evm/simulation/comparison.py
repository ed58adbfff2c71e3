"""Comparison of two executions of a transaction or call, each by the rules of a fork."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evm.checks import CallRejected
from evm.tracers.watching import Watcher

if TYPE_CHECKING:
    from evm.simulation.call import CallResult
    from evm.tracers.frames import CallFrame

MAX_FRAME_BYTES = 2**27
"""Size of the frames of one execution above which they are not compared."""


@dataclass(frozen=True, slots=True)
class Execution:
    """One of the two executions."""

    fork: str
    result: CallResult | None
    """None if the fork does not allow the transaction."""
    rejection: str | None
    """geth's text if the fork does not allow it."""
    top: CallFrame | None
    """The outermost frame. None if it was not allowed, or its frames are too large."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first frame that differs, in the order of events."""

    path: tuple[int, ...]
    """The position of the frame among the calls of the frame above it, from the outermost
    frame on, which has an empty path."""
    members: tuple[str, ...]
    """What differs, by the names of callTracer. `calls` is the number of calls."""
    frames: tuple[CallFrame, CallFrame]


def observed(fork: str, execute: Callable[[Watcher], CallResult]) -> Execution:
    """Execute something, and return the outcome.

    execute: passes a watcher to the execution, and may raise CallRejected.
    """
    watcher = Watcher(MAX_FRAME_BYTES)
    try:
        result = execute(watcher)
    except CallRejected as error:
        return Execution(fork, None, error.text, None)
    return Execution(fork, result, None, None if watcher.is_overflown else watcher.top)


def first_difference(left: CallFrame, right: CallFrame) -> Difference | None:
    """Return the first frame that does something else, None if there is none.

    A frame's gas does not matter, because its prices may differ everywhere. A frame that
    ends differently because of a call inside of it comes after that call.
    """
    path: list[int] = []
    waiting = [(left, right)]
    while waiting:
        ours, theirs = waiting[-1]
        if len(path) < len(waiting):  # the beginning of the frame
            members = _begins(ours, theirs)
            if members:
                return Difference(tuple(path), members, (ours, theirs))
            path.append(-1)
        path[-1] += 1
        place = path[-1]
        if place < min(len(ours.calls), len(theirs.calls)):
            waiting.append((ours.calls[place], theirs.calls[place]))
            continue
        path.pop()
        members = _ends(ours, theirs)
        if members:
            return Difference(tuple(path), members, (ours, theirs))
        waiting.pop()
    return None


def _begins(ours: CallFrame, theirs: CallFrame) -> tuple[str, ...]:
    """Return the members in which frames differ before their code is executed."""
    pairs = (
        ("type", ours.type, theirs.type),
        ("from", ours.sender, theirs.sender),
        ("to", ours.to, theirs.to),
        ("value", ours.value, theirs.value),
        ("input", ours.input, theirs.input),
    )
    return tuple([name for name, one, other in pairs if one != other])


def _ends(ours: CallFrame, theirs: CallFrame) -> tuple[str, ...]:
    """Return the members in which frames differ afterwards."""
    pairs = (
        ("error", ours.error, theirs.error),
        ("output", ours.output, theirs.output),
        ("calls", len(ours.calls), len(theirs.calls)),
    )
    return tuple([name for name, one, other in pairs if one != other])
