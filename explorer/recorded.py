"""The trace records of a transaction, prepared for its page.

Decompressed records may have gigabytes. Pages decompress limited sizes, a few at a
time; programs get longer results as a stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from threading import BoundedSemaphore

from abi.addresses import checksummed
from evm.tracers.derived import RecordedTransaction, call_tree, touched_accounts
from evm.tracers.record import RecordTooLarge, unpack_pieces
from evm.tracers.touched import EMPTY, TouchedAccount
from evm.world import EMPTY_CODE_HASH
from explorer.abis import Abis
from explorer.calls import (
    MAX_CALLS,
    CallLine,
    call_lines,
    in_order,
    keys_of,
)
from explorer.flame import Flame, flame
from legible import words

MAX_CHANGES = 500
"""Lines that a page shows."""

CODE_HASH, STORAGE = "code hash", "storage"


@dataclass(frozen=True, slots=True)
class Change:
    """One value of an account, before and after."""

    address: str
    """Empty if it is that of the line above."""
    what: str
    slot: str
    """Empty except for a storage slot."""
    before: str
    after: str
    difference: str = ""

    @property
    def is_hexadecimal(self) -> bool:
        """Whether the values are 32-byte words and not amounts or numbers."""
        return self.what in (CODE_HASH, STORAGE)


def change_lines(touched: Iterable[TouchedAccount]) -> tuple[list[Change], int]:
    """Return the first MAX_CHANGES lines, and the number of further ones."""
    changes = _all(touched)
    return list(islice(changes, MAX_CHANGES)), sum(1 for _ in changes)


def _all(touched: Iterable[TouchedAccount]) -> Iterator[Change]:
    for account in touched:
        address = checksummed(account.address)
        for change in _of_account(account):
            yield Change(address, *change)
            address = ""


def _of_account(account: TouchedAccount) -> Iterator[tuple[str, ...]]:
    """Yield the members of `Change` after the address."""
    before, after = account.before, account.after
    if before != after and EMPTY in (before, after):
        was_there = before != EMPTY
        yield "account", "", _is_there(was_there), _is_there(not was_there)
    if before.balance != after.balance:
        gain = after.balance - before.balance
        amounts = words.ether(before.balance), words.ether(after.balance)
        yield "balance", "", *amounts, f"{'+' if gain > 0 else ''}{words.ether(gain)}"
    if before.nonce != after.nonce:
        yield "nonce", "", words.number(before.nonce), words.number(after.nonce)
    if before.code_hash != after.code_hash:
        yield CODE_HASH, "", _code(before.code_hash), _code(after.code_hash)
    for slot, old, new in account.slots:
        if old != new:
            yield STORAGE, f"{slot:#x}", f"{old:#x}", f"{new:#x}"


def _is_there(there: bool) -> str:
    return "exists" if there else "does not exist"


def _code(code_hash: bytes) -> str:
    return "no code" if code_hash == EMPTY_CODE_HASH else "0x" + code_hash.hex()


MAX_UNPACKED_BYTES = 16 * 2**20
"""Limit of a decompressed record: about 40 000 calls or 100 000 slots, which take about
100 MB as objects."""

NOT_EXECUTED = (
    "The network has started at a later block. This one was proved, not executed, so that "
    "it has no trace."
)

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


def shown_calls(
    recorded: RecordedTransaction, size: int, abis: Abis, *, is_executed: bool = True
) -> Calls:
    """Return a transaction's calls for the page.

    size: bytes of callTracer's result. abis: the uploaded definitions, which are read.
    is_executed: False for a block up to the checkpoint.
    """
    if not is_executed:
        return Calls(absence=NOT_EXECUTED)
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


def shown_changes(
    recorded: RecordedTransaction, *, is_executed: bool = True
) -> Changes:
    """Return a transaction's state changes. is_executed: as in `shown_calls`."""
    if not is_executed:
        return Changes(absence=NOT_EXECUTED)
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
