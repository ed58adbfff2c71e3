"""The state during the execution of a block: account and slot values with a journal.

Every change is a write into a dictionary, and the journal keeps the previous value.
Reverting a call frame restores these values in reverse order. `World.changes` returns the changes of the whole block at its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import sha3
from eth_typing import Address, Hash32

from evm.changes import AccountValue, Changes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Iterator

EMPTY_CODE_HASH = Hash32(sha3.keccak_256(b"").digest())

_ABSENT: Any = object()
"""The previous value of a key that did not exist, in the journal."""

Journal = list[tuple[dict[Any, Any], Any, Any]]
"""Dictionary, key and previous value, for each write."""
Originals = dict[tuple[Address, int], int]
"""Storage that a transaction wrote, as it was when the transaction began."""


class StateReader(Protocol):
    """Reader of the state after a block."""

    def account(self, address: Address) -> AccountValue | None:
        """Return an account, or None if it does not exist."""

    def storage(self, address: Address, slot: int) -> int:
        """Return the value of a storage slot, zero if it was never written."""

    def live_slots(self, address: Address) -> Iterable[int]:
        """Return the slots of an account that are not zero."""

    def code(self, code_hash: Hash32) -> bytes:
        """Return the contract code with this hash, which must exist."""


class Account(NamedTuple):
    """An account without its storage."""

    nonce: int
    balance: int
    code_hash: Hash32


NO_ACCOUNT = Account(0, 0, EMPTY_CODE_HASH)
"""The values of an account that does not exist, or is empty."""

ReplacedAccounts = dict[Address, Account | None]
"""Accounts that a transaction wrote, as they were when the transaction began."""


class World:
    """The state of a block during its execution.

    Each slot has a present value and an original value, the one at the start of the
    transaction, which gas rules need (EIP-1283, EIP-2200). `lock_changes` makes the
    present values the original ones.
    """

    def __init__(self, reader: StateReader) -> None:
        self._reader = reader
        self._accounts: dict[Address, Account | None] = {}
        self._storage: dict[Address, dict[int, int]] = {}
        self._wiped: dict[Address, bool] = {}
        self._codes: dict[Hash32, bytes] = {}
        self._written: set[tuple[Address, int]] = set()
        self._cleared_slots: dict[Address, set[int]] = {}
        """Slots that were loaded before their contract was destroyed."""
        self.on_changes: Callable[[ReplacedAccounts, Originals], None] | None = None
        """Is called with the values that each transaction has replaced."""
        self.always_warm: Container[bytes] = ()
        """Accounts whose first access costs no more: the precompiled contracts."""
        # State of one transaction:
        self._original: Originals = {}
        self._warm: dict[Any, bool] = {}
        self._transient: dict[tuple[Address, int], int] = {}
        self._journal: Journal = []

    # Journal

    def record(self) -> int:
        """Return a checkpoint to which `discard` can go back."""
        return len(self._journal)

    def discard(self, checkpoint: int) -> None:
        """Undo every change since the checkpoint."""
        journal = self._journal
        while len(journal) > checkpoint:
            target, key, previous = journal.pop()
            if previous is _ABSENT:
                del target[key]
            else:
                target[key] = previous

    def lock_changes(self) -> None:
        """Begin a transaction. Earlier changes can't be undone any more."""
        if self.on_changes is not None:
            self.take_originals()
        self._journal.clear()
        self._original.clear()
        self._warm.clear()
        self._transient.clear()

    def take_originals(self) -> tuple[ReplacedAccounts, Originals]:
        """Return the values that the transaction has replaced. Called at its end.

        The transaction can't be reverted afterwards.
        """
        accounts = self._accounts
        # Reversed: the oldest entry of a key overwrites later ones.
        replaced = {
            key: previous
            for target, key, previous in reversed(self._journal)
            if target is accounts
        }
        originals, self._original = self._original, {}
        self._journal.clear()
        if self.on_changes is not None:
            self.on_changes(replaced, originals)
        return replaced, originals

    # Accounts

    def _account(self, address: Address) -> Account | None:
        try:
            return self._accounts[address]
        except KeyError:
            stored = self._reader.account(address)
            account = None if stored is None else Account(*stored[:3])
            self._accounts[address] = account
            return account

    def _set_account(self, address: Address, account: Account | None) -> None:
        self._journal.append((self._accounts, address, self._account(address)))
        self._accounts[address] = account

    def account(self, address: Address) -> Account | None:
        """Return an account, or None if it does not exist.

        It is for observers: the account does not count as read by the block.
        """
        if address in self._accounts:
            return self._accounts[address]
        stored = self._reader.account(address)
        return None if stored is None else Account(*stored[:3])

    def account_exists(self, address: Address) -> bool:
        """Return whether the account exists, even if it is empty."""
        return self._account(address) is not None

    def account_is_empty(self, address: Address) -> bool:
        """Return whether the account is absent, or empty in the sense of EIP-161."""
        account = self._account(address)
        return account is None or account == NO_ACCOUNT

    def is_occupied(self, address: Address, *, by_storage: bool) -> bool:
        """Return whether the address is occupied, so that a creation there fails.

        by_storage: whether storage alone occupies an address. Only init code before
            EIP-161 could leave an account with storage but without nonce and code.

        Source: https://eips.ethereum.org/EIPS/eip-684 · eip-7610
        """
        account = self._account(address)
        if account is None:
            return False
        if account.nonce != 0 or account.code_hash != EMPTY_CODE_HASH:
            return True
        if not by_storage:
            return False
        stored = None if address in self._wiped else self._reader.account(address)
        return stored is not None and stored.storage_root is not None

    def touch_account(self, address: Address) -> None:
        """Create an empty account if it does not exist."""
        if self._account(address) is None:
            self._set_account(address, NO_ACCOUNT)

    def delete_account(self, address: Address) -> None:
        """Remove the account, its code and its storage."""
        if self._account(address) is not None:
            self._set_account(address, None)
        self.delete_storage(address)

    def get_balance(self, address: Address) -> int:
        """Return the balance in wei."""
        account = self._account(address)
        return 0 if account is None else account.balance

    def set_balance(self, address: Address, balance: int) -> None:
        """Set the balance in wei. Create the account if it does not exist.

        Raises: ValueError unless 0 ≤ balance < 2**256.
        """
        if not 0 <= balance < 2**256:
            raise ValueError(f"balance {balance} of 0x{address.hex()} is no uint256")
        account = self._account(address) or NO_ACCOUNT
        self._set_account(address, Account(account.nonce, balance, account.code_hash))

    def get_nonce(self, address: Address) -> int:
        """Return the nonce of an account, 0 if it does not exist."""
        account = self._account(address)
        return 0 if account is None else account.nonce

    def set_nonce(self, address: Address, nonce: int) -> None:
        """Set the nonce. Create the account if it does not exist."""
        account = self._account(address) or NO_ACCOUNT
        self._set_account(address, Account(nonce, account.balance, account.code_hash))

    def increment_nonce(self, address: Address) -> None:
        """Increment the nonce of an account."""
        self.set_nonce(address, self.get_nonce(address) + 1)

    # Code

    def get_code_hash(self, address: Address) -> Hash32:
        """Return the code's hash.

        For an absent account: the hash of the empty string.
        """
        account = self._account(address)
        return EMPTY_CODE_HASH if account is None else account.code_hash

    def get_code(self, address: Address) -> bytes:
        """Return the code, or b"" without code."""
        return self.code(self.get_code_hash(address))

    def code(self, code_hash: Hash32) -> bytes:
        """Return the code with this hash, which is or was an account's code hash."""
        if code_hash == EMPTY_CODE_HASH:
            return b""
        code = self._codes.get(code_hash)
        return self._reader.code(code_hash) if code is None else code

    def new_code(self, code_hash: Hash32) -> bytes | None:
        """Return the code with this hash if it was set in this block, else None."""
        return self._codes.get(code_hash)

    def set_code(self, address: Address, code: bytes) -> None:
        """Set the code. Create the account if it does not exist."""
        code_hash = Hash32(sha3.keccak_256(code).digest())
        self._codes[code_hash] = code
        account = self._account(address) or NO_ACCOUNT
        self._set_account(address, Account(account.nonce, account.balance, code_hash))

    def delete_code(self, address: Address) -> None:
        """Set the code to nothing."""
        self.set_code(address, b"")

    # Storage

    def original_storage(self, address: Address, slot: int) -> int:
        """Return the value that a slot had when the transaction began."""
        original = self._original.get((address, slot))
        return self.get_storage(address, slot) if original is None else original

    def get_storage(self, address: Address, slot: int) -> int:
        """Return a slot's present value."""
        values = self._storage.get(address)
        if values is None:
            values = self._storage[address] = {}
        value = values.get(slot)
        if value is None:
            # No journal entry, because reverting later writes restores this value.
            value = 0 if address in self._wiped else self._reader.storage(address, slot)
            values[slot] = value
        return value

    def set_storage(self, address: Address, slot: int, value: int) -> None:
        """Set a storage value."""
        previous = self.get_storage(address, slot)
        if previous == value:
            return
        key = (address, slot)
        self._original.setdefault(key, previous)
        self._written.add(key)
        values = self._storage[address]
        self._journal.append((values, slot, previous))
        values[slot] = value

    def delete_storage(self, address: Address) -> None:
        """Set every slot of the account to zero."""
        values = self._storage.setdefault(address, {})
        for slot, value in values.items():
            if value:
                self._original.setdefault((address, slot), value)
        if values:
            self._cleared_slots.setdefault(address, set()).update(values)
        self._journal.append((self._storage, address, values))
        self._storage[address] = {}
        if address not in self._wiped:
            self._journal.append((self._wiped, address, _ABSENT))
            self._wiped[address] = True

    def get_transient_storage(self, address: Address, slot: int) -> int:
        """Return a transient value, 0 if it was not set (EIP-1153)."""
        return self._transient.get((address, slot), 0)

    def set_transient_storage(self, address: Address, slot: int, value: int) -> None:
        """Set a transient value, which lasts for the transaction (EIP-1153)."""
        key = (address, slot)
        self._journal.append((self._transient, key, self._transient.get(key, _ABSENT)))
        self._transient[key] = value

    # Access lists (EIP-2929)

    def is_address_warm(self, address: Address) -> bool:
        """Return whether an access to the account costs no surcharge (EIP-2929)."""
        return address in self._warm or address in self.always_warm

    def mark_address_warm(self, address: Address) -> None:
        """Add the account to the accessed addresses (EIP-2929)."""
        if address not in self._warm:
            self._journal.append((self._warm, address, _ABSENT))
            self._warm[address] = True

    def is_storage_warm(self, address: Address, slot: int) -> bool:
        """Return whether the transaction has accessed the slot (EIP-2929)."""
        return (address, slot) in self._warm

    def mark_storage_warm(self, address: Address, slot: int) -> None:
        """Add the slot to the accessed storage keys (EIP-2929)."""
        key = (address, slot)
        if key not in self._warm:
            self._journal.append((self._warm, key, _ABSENT))
            self._warm[key] = True

    # The outcome

    def loaded(self) -> Iterator[tuple[Address, Collection[int]]]:
        """Yield each account that was read or changed, with its slots."""
        for address in self._accounts:
            slots: Collection[int] = self._storage.get(address, ())
            cleared = self._cleared_slots.get(address)
            yield address, slots if cleared is None else cleared.union(slots)

    def changes(self, *, clears_empty_accounts: bool) -> Changes:
        """Return the difference from the state before the block.

        clears_empty_accounts: whether EIP-161 is active. If it is, a new empty account
            is not a change.
        """
        changes = Changes()
        reader = self._reader
        for address in self._wiped:
            stored = reader.account(address)
            if stored is not None and stored.storage_root is not None:
                values = self._storage[address]
                changes.storage[address] = {
                    slot: values.get(slot, 0) for slot in reader.live_slots(address)
                }
        for address, slot in self._written:
            value = self._storage[address].get(slot, 0)
            if value != reader.storage(address, slot):
                changes.storage.setdefault(address, {})[slot] = value
        for address in changes.storage:
            self._account(address)
        for address, account in self._accounts.items():
            stored = reader.account(address)
            if account is None:
                if stored is not None:
                    changes.accounts[address] = None
                continue
            if stored is None and clears_empty_accounts and account == NO_ACCOUNT:
                continue
            if stored is None or stored[:3] != account or address in changes.storage:
                root = None if stored is None else stored.storage_root
                changes.accounts[address] = AccountValue(*account, root)
                code = self._codes.get(account.code_hash)
                if code:
                    changes.codes[account.code_hash] = code
        return changes
