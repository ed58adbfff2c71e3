"""What was recorded of a transaction, laid out for its page.

A record may unpack to gigabytes. Pages unpack what fits into memory several times over,
a few at a time; what is longer is for programs, which get it as a stream.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import BoundedSemaphore, Lock

from nodeapi.explore import words
from nodeapi.explore.calls import MAX_CALLS, CallLine, call_lines, in_order
from nodeapi.explore.changes import Change, change_lines
from nodeapi.explore.flame import Flame, flame
from nodeapi.ports import RecordedTransaction
from nodeapi.tracers.derived import call_tree, touched_accounts
from nodeapi.tracers.record import RecordTooLarge, unpack_pieces

MAX_UNPACKED_BYTES = 16 * 2**20
"""Of a record: some 40 000 calls, or 100 000 slots; a hundred megabytes in the end."""

_AT_ONCE = 2
"""Pages whose records are in memory at the same time, in each process."""
_WAIT_SECONDS = 10.0

_room = BoundedSemaphore(_AT_ONCE)

_counting = Lock()
_uncollected = 0


class Busy(Exception):
    """Raised when others have looked at long records for too long."""


class TooLong(Exception):
    """Raised for a record that is too long for a page."""


@dataclass(frozen=True, slots=True)
class Calls:
    """A transaction's calls. `absence` says why there are none, if so."""

    lines: list[CallLine] = field(default_factory=list)
    flame: Flame = field(default_factory=Flame)
    hidden: list[str] = field(default_factory=list)
    """How many calls and logs are not shown, if there are any."""
    absence: str = ""


@dataclass(frozen=True, slots=True)
class Changes:
    """What a transaction changed. `absence` says why that is not known, if so."""

    lines: list[Change] = field(default_factory=list)
    hidden: str = ""
    """How many lines are not shown, if there are any."""
    absence: str = ""


@contextmanager
def room() -> Iterator[None]:
    """Wait until there is memory for one more page. Raises: Busy."""
    if not _room.acquire(timeout=_WAIT_SECONDS):
        raise Busy
    try:
        yield
    finally:
        _room.release()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Put the search for cyclic garbage off while many calls are in memory.

    It would look at all of them, and hold every other thread up meanwhile, the event
    loop's too: 15 ms with 20 000 calls. They form no cycles.
    """
    global _uncollected
    with _counting:
        _uncollected += 1
        gc.disable()
    try:
        yield
    finally:
        with _counting:
            _uncollected -= 1
            if not _uncollected:
                gc.enable()


@_uninterrupted()
def shown_calls(recorded: RecordedTransaction, size: int) -> Calls:
    """Return a transaction's calls; size: of callTracer's answer."""
    try:
        if size > MAX_UNPACKED_BYTES:
            raise TooLong
        _check(recorded.details)
        top, _ = call_tree(recorded)
    except (RecordTooLarge, TooLong) as reason:
        return Calls(absence=_absence(reason))
    frames = list(in_order(top))
    lines = call_lines(frames[:MAX_CALLS])
    hidden = {
        "call": len(frames) - len(lines),
        "log": sum([len(frame.logs) for frame in frames])
        - sum([len(line.logs) for line in lines]),
    }
    return Calls(
        lines,
        flame(frames, len(lines)),
        [words.count(many, f"more {what}") for what, many in hidden.items() if many],
    )


@_uninterrupted()
def shown_changes(recorded: RecordedTransaction) -> Changes:
    """Return what a transaction changed in the state."""
    try:
        _check(recorded.details)
        _check(recorded.prestate)
        lines, hidden = change_lines(touched_accounts(recorded))
    except (RecordTooLarge, TooLong) as reason:
        return Changes(absence=_absence(reason))
    return Changes(lines, words.count(hidden, "more line") if hidden else "")


def _check(packed: bytes) -> None:
    """See that a record fits into memory. Raises: TooLong, RecordTooLarge."""
    size = 0
    for piece in unpack_pieces([packed]):
        size += len(piece)
        if size > MAX_UNPACKED_BYTES:
            raise TooLong


def _absence(reason: Exception) -> str:
    if isinstance(reason, TooLong):
        return "This is too long for a page; debug_traceTransaction has all of it."
    return "The transaction did too much to be recorded."
