"""A sparse state: some accounts and slots are known, all others are unknown.

A network that starts at a checkpoint knows only the values that were proved. An unknown
value is not zero, and no reader returns a default for it: it raises `UnknownValues`, so
that the caller fetches the value with its proof.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from eth_typing import Address, Hash32

from evm.state_trie import address_key, decode_account_leaf, decode_slot_leaf, slot_key
from evm.world import EMPTY_CODE_HASH

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evm.changes import AccountValue
    from evm.proof_nodes import ProofNodes
    from evm.trie_proofs import KeyProof

Slot: TypeAlias = tuple[Address, int]
"""An account's address and the number of a slot."""


@dataclass(slots=True)
class Keys:
    """Accounts and slots of a state. A known account's code is known as well."""

    accounts: set[Address] = field(default_factory=set)
    slots: set[Slot] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.accounts) + len(self.slots)

    def update(self, other: Keys) -> None:
        """Add the keys of another set."""
        self.accounts |= other.accounts
        self.slots |= other.slots


class UnknownValues(Exception):
    """Raised by the reader of a sparse state for values that it does not know."""

    def __init__(self, keys: Keys) -> None:
        super().__init__(keys)
        self.keys = keys

    def __str__(self) -> str:
        return f"{len(self.keys)} values of the state are unknown"


class NotEnumerable(Exception):
    """Raised for the slots of an account, which proofs can't enumerate."""

    def __init__(self) -> None:
        super().__init__("the slots of a sparse state can't be enumerated")


@dataclass(slots=True)
class ProvedValues:
    """Values of a state that were proved. None: there is no such account."""

    accounts: dict[Address, AccountValue | None] = field(default_factory=dict)
    slots: dict[Slot, int] = field(default_factory=dict)
    codes: dict[Hash32, bytes] = field(default_factory=dict)
    """By hash: the code of each of the accounts."""

    def update(self, other: ProvedValues) -> None:
        """Add the values of another set."""
        self.accounts |= other.accounts
        self.slots |= other.slots
        self.codes |= other.codes

    def missing(self, keys: Keys) -> Keys:
        """Return those of `keys` that have no value here."""
        return Keys(
            {key for key in keys.accounts if key not in self.accounts},
            {key for key in keys.slots if key not in self.slots},
        )


class ProvedState:
    """The part of a state that nodes and codes of untrusted origin prove.

    It is an `evm.world.StateReader`. Unknown values raise `UnknownValues`.
    """

    def __init__(
        self, root: Hash32, nodes: ProofNodes, codes: Mapping[Hash32, bytes]
    ) -> None:
        """Set the trusted state root. codes: by hash, which has to be verified."""
        self._root = root
        self._nodes = nodes
        self._codes = codes
        self._accounts: dict[Address, AccountValue | None] = {}
        self._owners: dict[Hash32, Address] = {}
        """Hash of a code → an account that has it."""

    def account(self, address: Address) -> AccountValue | None:
        """Return an account, or None if it is proved that it does not exist."""
        if address in self._accounts:
            return self._accounts[address]
        proof = self._nodes.prove(self._root, address_key(address))
        leaf = _value(proof, Keys(accounts={address}))
        account = self._accounts[address] = decode_account_leaf(leaf) if leaf else None
        if account is not None:
            self._owners.setdefault(account.code_hash, address)
        return account

    def storage(self, address: Address, slot: int) -> int:
        """Return the value of a slot, zero if it is proved that there is none."""
        account = self.account(address)
        if account is None or account.storage_root is None:
            return 0
        proof = self._nodes.prove(account.storage_root, slot_key(slot))
        return decode_slot_leaf(_value(proof, Keys(slots={(address, slot)})))

    def values(self, keys: Keys) -> tuple[ProvedValues, Keys]:
        """Return the values that are known among those of `keys`, and the other keys.

        An account whose code is unknown is unknown.
        """
        values, unknown = ProvedValues(), Keys()
        for address in keys.accounts:
            try:
                account = self.account(address)
                if account is not None and account.code_hash != EMPTY_CODE_HASH:
                    values.codes[account.code_hash] = self._codes[account.code_hash]
            except (UnknownValues, KeyError):
                unknown.accounts.add(address)
            else:
                values.accounts[address] = account
        for slot in keys.slots:
            try:
                values.slots[slot] = self.storage(*slot)
            except UnknownValues:
                unknown.slots.add(slot)
        return values, unknown

    def live_slots(self, address: Address) -> Iterable[int]:
        """Raise NotEnumerable. Nothing asks for the slots since EIP-6780 (Cancun)."""
        raise NotEnumerable

    def code(self, code_hash: Hash32) -> bytes:
        """Return the contract code with this hash, of an account that has been read.

        Raises: UnknownValues with the account if its code is unknown. Its own proof may not
            have been sent: a leaf is also part of the proof that another key is absent.
        """
        code = self._codes.get(code_hash)
        if code is None:
            raise UnknownValues(Keys(accounts={self._owners[code_hash]}))
        return code


def _value(proof: KeyProof, keys: Keys) -> bytes:
    """Return a proved value, b"" if it is absent. Raises: UnknownValues for `keys`."""
    if proof.reference is not None:
        raise UnknownValues(keys)
    return proof.value
