"""Changes of the state by a block: the new values of accounts, slots and code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from eth_typing import Address, Hash32

from evm import rlp
from evm.rlp import decode_int, decode_list, decode_string


class AccountValue(NamedTuple):
    """An account as stored, with the root of its storage trie."""

    nonce: int
    balance: int
    """Wei."""
    code_hash: Hash32
    """Keccak-256 of the code. Without code, it is the hash of the empty string."""
    storage_root: Hash32 | None
    """Root of the storage trie, or None if it is empty."""


@dataclass(slots=True)
class Changes:
    """The difference between two states, in values of the later state."""

    accounts: dict[Address, AccountValue | None] = field(default_factory=dict)
    """Accounts after the change, None for deleted ones. Every account whose storage changed is
    included, with its old storage root until the trie is updated."""
    storage: dict[Address, dict[int, int]] = field(default_factory=dict)
    """Slots after the change; 0: cleared. Includes every slot that is cleared by the
    destruction of its account."""
    codes: dict[Hash32, bytes] = field(default_factory=dict)
    """New contract code by hash. It may be equal to code of other contracts."""

    def apply(self, later: Changes) -> None:
        """Add later changes. Their values replace those of this object."""
        self.accounts.update(later.accounts)
        for address, values in later.storage.items():
            self.storage.setdefault(address, {}).update(values)
        self.codes.update(later.codes)


def encode_changes(changes: Changes) -> bytes:
    """Encode changes as RLP, for the rows of side blocks.

    Inverse of `decode_changes`.
    """
    accounts: list[rlp.Item] = [
        [address]
        if value is None
        else [
            address,
            rlp.encode_int(value.nonce),
            rlp.encode_int(value.balance),
            value.code_hash,
            value.storage_root or b"",
        ]
        for address, value in changes.accounts.items()
    ]
    storage: list[rlp.Item] = [
        [
            address,
            [
                [rlp.encode_int(slot), rlp.encode_int(value)]
                for slot, value in values.items()
            ],
        ]
        for address, values in changes.storage.items()
    ]
    return rlp.encode([accounts, storage])


def decode_changes(data: bytes) -> Changes:
    """Decode the result of `encode_changes`, without code.

    Code is stored in its own table as soon as any block contains it.
    """
    accounts, storage = map(decode_list, decode_list(rlp.decode(data)))
    changes = Changes()
    for account in accounts:
        address, *fields = map(decode_string, decode_list(account))
        changes.accounts[Address(address)] = (
            AccountValue(
                decode_int(fields[0]),
                decode_int(fields[1]),
                Hash32(fields[2]),
                Hash32(fields[3]) if fields[3] else None,
            )
            if fields
            else None
        )
    for entry in storage:
        owner, values = decode_list(entry)
        changes.storage[Address(decode_string(owner))] = {
            decode_int(slot): decode_int(value)
            for slot, value in map(decode_list, decode_list(values))
        }
    return changes
