"""Records of a block's transactions, made while the block is executed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodeapi.tracers.call import recorded_call_json
from nodeapi.tracers.details import encode_logs
from nodeapi.tracers.frames import CREATIONS
from nodeapi.tracers.record import (
    RECORD_LIMIT_BYTES,
    TOO_LARGE,
    TransactionRecord,
    hold,
)
from nodeapi.tracers.state_record import Rewind, Trail
from nodeapi.tracers.watching import Watcher

if TYPE_CHECKING:
    from eth_typing import Hash32

    from nodeapi.evm.transactions import Transaction
    from nodeapi.evm.world import World
    from nodeapi.tracers.frames import CallFrame

ACCOUNT_BYTES, SLOT_BYTES = 256, 128
"""What an account and a slot count for in the same limit."""

WAITING_BYTES = 2**18
"""Of the same data, kept until records are made of it: mostly a block's.

Little enough that it is still in the processor's cache when they are made.
"""

_Outcome = tuple[int, int, int, int | None, bytes, str | None]
"""All that the calls of a transaction say that made no further ones: gas limit, gas
used, length of the input, value, output, error."""
_Calls = tuple[bytes, int]
"""`calls` and `calls_size` of a record."""
_Executed = tuple["CallFrame | None", "Trail", bool]
"""A transaction that waits for its record: its calls unless they were too much, and
what it touched, with whether that is little enough."""


class Recorder(Watcher):
    """Watches one block, and makes a record of each transaction."""

    _world: World
    _fork_name: str

    def __init__(self, limit_bytes: int = RECORD_LIMIT_BYTES) -> None:
        """Begin a block; limit_bytes: see `RECORD_LIMIT_BYTES`."""
        super().__init__(limit_bytes)
        self.codes: dict[Hash32, bytes] = {}
        """Code that was set in this block, and that records name, by hash."""
        self._records: list[TransactionRecord] = []
        self._waiting: list[_Executed] = []
        self._waiting_bytes = 0

    @property
    def records(self) -> list[TransactionRecord]:
        """One for each transaction so far, short ones not compressed yet.

        To be asked for before anything but transactions changes the world.
        """
        self._make_records()
        return self._records

    def end(self, state: Any, transaction: Transaction, gas_used: int) -> None:
        """Keep what the transaction left, to be looked into with the others."""
        top: CallFrame | None = self.top
        self.top.gas_used = gas_used
        if self.is_overflown:
            top = None
        # Not the state itself, which knows its watcher: a cycle would keep the block's
        # world until the garbage collector comes, and new memory is slow memory.
        self._world, self._fork_name = state._account_db, state.fork.name
        replaced, originals = self._world.hand_over_originals()
        trail = Trail(
            self.accounts, self.slots, self.destroyed or (), replaced, originals
        )
        size = ACCOUNT_BYTES * len(self.accounts)
        for used in self.slots.values():
            size += SLOT_BYTES * len(used)
        self._waiting.append((top, trail, size <= self._limit_bytes))
        # Storage that was deleted is among the originals alone.
        self._waiting_bytes += self._bytes + size + SLOT_BYTES * len(originals)
        if self._waiting_bytes > WAITING_BYTES:
            self._make_records()

    def _make_records(self) -> None:
        """Make the records of what has been executed.

        Many at a time: the same few functions for each, out of the processor's cache,
        take half of what they take between two executions.
        """
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if not waiting:
            return
        rewind, records = Rewind(self._world, self.codes), []
        known: dict[_Outcome, _Calls] = {}
        while waiting:
            top, trail, is_small = waiting.pop()
            calls, calls_size = _packed_calls(top, known)
            if not is_small:
                rewind.undo(trail)
                records.append(
                    TransactionRecord(calls, TOO_LARGE, TOO_LARGE, calls_size, 0)
                )
                continue
            details = encode_logs(self._fork_name, top)
            text, hidden = rewind.write(trail, details)
            plain = text.encode()
            size = len(plain) + hidden
            records.append(
                TransactionRecord(
                    calls, hold(plain), hold(bytes(details)), calls_size, size
                )
            )
        records.reverse()
        self._records += records


def _packed_calls(top: CallFrame | None, known: dict[_Outcome, _Calls]) -> _Calls:
    """Return the calls of a transaction, packed; known: those that were before.

    Transfers leave the same few.
    """
    if top is None:
        return TOO_LARGE, 0
    if top.calls or top.type in CREATIONS:
        return _pack_calls(top)
    size = len(top.input)
    outcome = top.gas, top.gas_used, size, top.value, top.output, top.error
    calls = known.get(outcome)
    if calls is None:
        calls = known[outcome] = _pack_calls(top)
    return calls


def _pack_calls(top: CallFrame) -> _Calls:
    text, size = recorded_call_json(top)
    return hold(text.encode()), size
