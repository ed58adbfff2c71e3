"""What a block changed in the state: values after it, of what differs from before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from eth_typing import Address, Hash32

from nodeapi.evm import rlp


class AccountValue(NamedTuple):
    """An account as it is kept: its storage is named by the root of its trie."""

    nonce: int
    balance: int
    """Wei."""
    code_hash: Hash32
    """keccak of the code, of nothing when there is none."""
    storage_root: Hash32 | None
    """Root of the storage trie, None when it is empty."""


@dataclass(slots=True)
class Changes:
    """A difference between two states, in values of the later one."""

    accounts: dict[Address, AccountValue | None] = field(default_factory=dict)
    """Accounts after the change, None: removed. Holds every account whose storage
    changed; until the trie has been updated with their old storage root."""
    storage: dict[Address, dict[int, int]] = field(default_factory=dict)
    """Slots after the change, 0: cleared. Every slot that an account loses with its
    destruction stands here as well, so that nothing else needs to know of it."""
    codes: dict[Hash32, bytes] = field(default_factory=dict)
    """Code that the change brought, by its hash; others may hold the same."""

    def apply(self, later: Changes) -> None:
        """Make this the difference that has `later` on top."""
        self.accounts.update(later.accounts)
        for address, values in later.storage.items():
            self.storage.setdefault(address, {}).update(values)
        self.codes.update(later.codes)


def encode_changes(changes: Changes) -> bytes:
    """Return the bytes that `decode_changes` reads: RLP, for side blocks' rows."""
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
    """Return the changes that `encode_changes` wrote.

    Code is not among them: it stands in its own table as soon as a block, side or
    not, has brought it.
    """
    accounts, storage = rlp.decode(data)
    changes = Changes()
    for address, *fields in accounts:
        changes.accounts[address] = (
            AccountValue(
                int.from_bytes(fields[0], "big"),
                int.from_bytes(fields[1], "big"),
                fields[2],
                fields[3] or None,
            )
            if fields
            else None
        )
    for address, values in storage:
        changes.storage[address] = {
            int.from_bytes(slot, "big"): int.from_bytes(value, "big")
            for slot, value in values
        }
    return changes
