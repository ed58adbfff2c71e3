"""Records of a block's transactions, made while the block is executed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodeapi.evm.world import EMPTY_CODE_HASH
from nodeapi.tracers.call import recorded_call_json
from nodeapi.tracers.details import encode_details
from nodeapi.tracers.prestate import PrestateConfig, leave_out, prestate_json
from nodeapi.tracers.record import TOO_LARGE, TransactionRecord, pack
from nodeapi.tracers.touched import touched_accounts
from nodeapi.tracers.watching import Watcher

if TYPE_CHECKING:
    from eth_typing import Hash32

    from nodeapi.evm.transactions import Transaction
    from nodeapi.evm.world import World
    from nodeapi.tracers.touched import TouchedAccount

RECORD_LIMIT_BYTES = 64 * 2**20
"""Of the data of one transaction's frames; a block whose transaction calls 200 000
times with a megabyte of input must not take the importer's memory."""
ACCOUNT_BYTES, SLOT_BYTES = 256, 128
"""What an account and a slot count for in the same limit."""

_DEFAULT = PrestateConfig()


class Recorder(Watcher):
    """Watches one block, and makes a record of each transaction."""

    def __init__(self, limit_bytes: int = RECORD_LIMIT_BYTES) -> None:
        """Begin a block; limit_bytes: see `RECORD_LIMIT_BYTES`."""
        super().__init__(limit_bytes)
        self.records: list[TransactionRecord] = []
        self.codes: dict[Hash32, bytes] = {}
        """Code that was set in this block, and that records name, by hash."""

    def end(self, state: Any, transaction: Transaction, gas_used: int) -> None:
        """Record what the transaction did."""
        super().end(state, transaction, gas_used)
        world: World = state._account_db
        calls, calls_size = TOO_LARGE, 0
        if not self.is_overflown:
            text, calls_size = recorded_call_json(self.top)
            calls = pack(text.encode())
        prestate, details, prestate_size = TOO_LARGE, TOO_LARGE, 0
        if self._state_bytes() <= self._limit_bytes:
            touched = touched_accounts(self, world)
            plain = prestate_json(touched, _DEFAULT, leave_out).encode()
            prestate = pack(plain)
            details = pack(encode_details(state.fork.name, self.top, touched))
            prestate_size = len(plain) + self._code_digits(touched, world)
        self.records.append(
            TransactionRecord(calls, prestate, details, calls_size, prestate_size)
        )

    def _state_bytes(self) -> int:
        slots = sum(map(len, self.slots.values()))
        return ACCOUNT_BYTES * len(self.accounts) + SLOT_BYTES * slots

    def _code_digits(self, touched: list[TouchedAccount], world: World) -> int:
        """Return what the code that was left out adds, holes taken off."""
        added = 0
        for account in touched:
            before, after = account.before.code_hash, account.after.code_hash
            if before != EMPTY_CODE_HASH:
                added += 2 * len(world.code(before)) - 1
                self._keep(before, world)
            if after != before:
                self._keep(after, world)
        return added

    def _keep(self, code_hash: Hash32, world: World) -> None:
        """Remember code that the block brought, and that may be gone at its end."""
        code = world.new_code(code_hash)
        if code:
            self.codes[code_hash] = code
