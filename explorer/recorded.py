"""The trace records of a transaction, prepared for its page.

Decompressed records may have gigabytes. Pages decompress limited sizes, a few at a
time; programs get longer results as a stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import BoundedSemaphore

from evm.tracers.derived import RecordedTransaction, call_tree, touched_accounts
from evm.tracers.record import RecordTooLarge, unpack_pieces
from explorer.abis import Abis
from explorer.calls import (
    MAX_CALLS,
    CallLine,
    call_lines,
    in_order,
    keys_of,
)
from explorer.changes import Change, change_lines
from explorer.flame import Flame, flame
from legible import words

MAX_UNPACKED_BYTES = 16 * 2**20
"""Limit of a decompressed record: about 40 000 calls or 100 000 slots, which take about
100 MB as objects."""

_MAX_PAGES = 2
"""Pages whose records are in memory at the same time, in each process."""
WAIT_SECONDS = 10.0

_room = BoundedSemaphore(_MAX_PAGES)


class Busy(Exception):
    """Raised when no memory became free in time because of other pages."""


class TooLong(Exception):
    """Raised for a record that is too long for a page."""


@dataclass(frozen=True, slots=True)
class Calls:
    """A transaction's calls. `absence`: the reason why there are none, else ""."""

    lines: list[CallLine] = field(default_factory=list)
    flame: Flame = field(default_factory=Flame)
    hidden: list[str] = field(default_factory=list)
    """The numbers of calls and logs that are not shown, as text."""
    absence: str = ""


@dataclass(frozen=True, slots=True)
class Changes:
    """A transaction's state changes. `absence`: the reason why there are none, else ""."""

    lines: list[Change] = field(default_factory=list)
    hidden: str = ""
    """The number of lines that are not shown, as text; "" for none."""
    absence: str = ""


@contextmanager
def room() -> Iterator[None]:
    """Wait for the memory of one page, and hold it. Raises: Busy."""
    if not _room.acquire(timeout=WAIT_SECONDS):
        raise Busy
    try:
        yield
    finally:
        _room.release()


def shown_calls(recorded: RecordedTransaction, size: int, abis: Abis) -> Calls:
    """Return a transaction's calls for the page.

    size: bytes of callTracer's result. abis: the uploaded definitions, which are read.
    """
    try:
        if size > MAX_UNPACKED_BYTES:
            raise TooLong
        _check(recorded.details)
        top, _ = call_tree(recorded)
    except (RecordTooLarge, TooLong) as reason:
        return Calls(absence=_absence(reason))
    frames = list(in_order(top))
    abis.read(keys_of(frames[:MAX_CALLS]))
    lines = call_lines(frames[:MAX_CALLS], abis)
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


def shown_changes(recorded: RecordedTransaction) -> Changes:
    """Return a transaction's state changes."""
    try:
        _check(recorded.details)
        _check(recorded.prestate)
        lines, hidden = change_lines(touched_accounts(recorded))
    except (RecordTooLarge, TooLong) as reason:
        return Changes(absence=_absence(reason))
    return Changes(lines, words.count(hidden, "more line") if hidden else "")


def _check(packed: bytes) -> None:
    """Check the decompressed size of a record. Raises: TooLong, RecordTooLarge."""
    size = 0
    for piece in unpack_pieces([packed]):
        size += len(piece)
        if size > MAX_UNPACKED_BYTES:
            raise TooLong


def _absence(reason: Exception) -> str:
    if isinstance(reason, TooLong):
        return (
            "The trace is too long to show here. debug_traceTransaction returns all of "
            "it."
        )
    return "The trace of this transaction is too large to be stored."
