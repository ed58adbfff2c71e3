"""Records of a block's transactions, made while the block is executed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evm.tracers.call import recorded_call_json
from evm.tracers.details import encode_logs
from evm.tracers.frames import CREATIONS
from evm.tracers.record import (
    RECORD_LIMIT_BYTES,
    TOO_LARGE,
    TransactionRecord,
    hold,
)
from evm.tracers.state_record import Rewind, Trail
from evm.tracers.watching import Watcher

if TYPE_CHECKING:
    from eth_typing import Hash32

    from evm.intrinsic import Executable
    from evm.state import State
    from evm.tracers.frames import CallFrame
    from evm.world import World

ACCOUNT_BYTES, SLOT_BYTES = 256, 128
"""Sizes of an account and a slot, for the same limit."""

WAITING_BYTES = 2**18
"""Size of the executed transactions whose records are pending, mostly a whole block.
The data fits into the processor's cache."""

_Outcome = tuple[int, int, int, int | None, bytes, str | None]
"""The call of a transaction without further calls: gas limit, gas used, length of the
input, value, output, error."""
_Calls = tuple[bytes, int]
"""`calls` and `calls_size` of a record."""
_Executed = tuple["CallFrame | None", "Trail", bool]
"""A transaction whose record is pending: its calls, or None if they were too large; its
trail; whether the trail is within the limit."""


class Recorder(Watcher):
    """Observes one block, and makes a trace record of each transaction."""

    _world: World
    _fork_name: str

    def __init__(self, limit_bytes: int = RECORD_LIMIT_BYTES) -> None:
        """Start a block. limit_bytes: see `RECORD_LIMIT_BYTES`."""
        super().__init__(limit_bytes)
        self.codes: dict[Hash32, bytes] = {}
        """Code that was set in this block and that records name, by hash."""
        self._records: list[TransactionRecord] = []
        self._waiting: list[_Executed] = []
        self._waiting_bytes = 0

    @property
    def records(self) -> list[TransactionRecord]:
        """One record for each transaction so far. Short ones are not compressed yet.

        Has to be read before the world is changed by anything but transactions.
        """
        self._make_records()
        return self._records

    def end(self, state: State, transaction: Executable, gas_used: int) -> None:
        """Keep the calls and the touched accounts of a transaction until its record is made."""
        top: CallFrame | None = self.top
        self.top.gas_used = gas_used
        if self.is_overflown:
            top = None
        # Do not keep the state, because it refers to its watcher. Such a cycle would keep
        # the block's world in memory until the next garbage collection.
        self._world, self._fork_name = state.world, state.fork.name
        replaced, originals = self._world.take_originals()
        trail = Trail(
            self.accounts, self.slots, self.destroyed or (), replaced, originals
        )
        size = ACCOUNT_BYTES * len(self.accounts)
        for used in self.slots.values():
            size += SLOT_BYTES * len(used)
        self._waiting.append((top, trail, size <= self._limit_bytes))
        # Deleted storage is only in `originals`.
        self._waiting_bytes += self._bytes + size + SLOT_BYTES * len(originals)
        if self._waiting_bytes > WAITING_BYTES:
            self._make_records()

    def _make_records(self) -> None:
        """Make the records of the pending transactions.

        Making them together takes half of the time that making each after its
        transaction takes, because the functions' code and data stay in the processor's
        cache.
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
    """Return the packed calls of a transaction.

    known: packed calls by outcome. Most transfers have one of a few outcomes.
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
