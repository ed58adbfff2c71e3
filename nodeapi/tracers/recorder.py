"""Records of a block's transactions, made while the block is executed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nodeapi.evm.world import EMPTY_CODE_HASH
from nodeapi.tracers.call import recorded_call_json
from nodeapi.tracers.details import encode_details
from nodeapi.tracers.prestate import PrestateConfig, leave_out, prestate_json
from nodeapi.tracers.record import (
    RECORD_LIMIT_BYTES,
    TOO_LARGE,
    TransactionRecord,
    hold,
)
from nodeapi.tracers.touched import Touched, find_touched
from nodeapi.tracers.watching import Watcher

if TYPE_CHECKING:
    from eth_typing import Hash32

    from nodeapi.evm.transactions import Transaction
    from nodeapi.evm.world import World
    from nodeapi.tracers.frames import CallFrame
    from nodeapi.tracers.touched import TouchedAccount

ACCOUNT_BYTES, SLOT_BYTES = 256, 128
"""What an account and a slot count for in the same limit."""

WAITING_BYTES = 2**20
"""Of the same data, kept until records are made of it."""

_DEFAULT = PrestateConfig()


class Recorder(Watcher):
    """Watches one block, and makes a record of each transaction."""

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
        """One for each transaction so far, short ones not compressed yet."""
        self._make_records()
        return self._records

    def end(self, state: Any, transaction: Transaction, gas_used: int) -> None:
        """Keep what the transaction did."""
        super().end(state, transaction, gas_used)
        world: World = state._account_db
        top = None if self.is_overflown else self.top
        size = self._state_bytes()
        found = find_touched(self, world) if size <= self._limit_bytes else None
        self._waiting.append(_Executed(state.fork.name, world, top, found))
        self._waiting_bytes += self._bytes + size
        if self._waiting_bytes > WAITING_BYTES:
            self._make_records()

    def _make_records(self) -> None:
        """Make the records of what has been executed.

        Many at a time: the same few functions for each, out of the processor's cache,
        take half of what they take between two executions.
        """
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        self._records += [self._record(executed) for executed in waiting]

    def _record(self, executed: _Executed) -> TransactionRecord:
        calls, calls_size = TOO_LARGE, 0
        if executed.top is not None:
            text, calls_size = recorded_call_json(executed.top)
            calls = hold(text.encode())
        if executed.touched is None:
            return TransactionRecord(calls, TOO_LARGE, TOO_LARGE, calls_size, 0)
        accounts = executed.touched.accounts()
        digits = self._look_at_codes(accounts, executed.world)
        plain = prestate_json(accounts, _DEFAULT, leave_out).encode()
        details = encode_details(executed.fork_name, executed.top, accounts)
        size = len(plain) + digits
        return TransactionRecord(calls, hold(plain), hold(details), calls_size, size)

    def _look_at_codes(self, accounts: list[TouchedAccount], world: World) -> int:
        """Keep code that came; return what the code left out adds, its holes taken off.

        What came in the block may be gone at its end.
        """
        size = 0
        for account in accounts:
            before, after = account.before.code_hash, account.after.code_hash
            if before != EMPTY_CODE_HASH:
                size += 2 * len(world.code(before)) - 1
            if after != before:
                code = world.new_code(after)
                if code:
                    self.codes[after] = code
        return size

    def _state_bytes(self) -> int:
        slots = sum(map(len, self.slots.values()))
        return ACCOUNT_BYTES * len(self.accounts) + SLOT_BYTES * slots


@dataclass(slots=True)
class _Executed:
    """A transaction that waits for its record; None: it was too much."""

    fork_name: str
    world: World
    top: CallFrame | None
    touched: Touched | None
