"""The state changes of a transaction, as lines of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from abi.addresses import checksummed
from evm.tracers.touched import EMPTY, TouchedAccount
from evm.world import EMPTY_CODE_HASH
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
