"""The access list of a block: what its execution read and changed in the state.

World keeps every account and slot that was loaded, so the list only has to add, for each
index, what changed. Index 0 stands for what precedes the transactions, n for the n-th
transaction, and the last one for withdrawals, requests and rewards.

Source: https://eips.ethereum.org/EIPS/eip-7928
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from eth_typing import Address, Hash32
from sha3 import keccak_256

from evm import rlp
from evm.world import NO_ACCOUNT

if TYPE_CHECKING:
    from evm.world import Originals, ReplacedAccounts, World


@dataclass(slots=True)
class AccountChanges:
    """The changes of one account: index → value after it."""

    balances: dict[int, int] = field(default_factory=dict)
    nonces: dict[int, int] = field(default_factory=dict)
    codes: dict[int, bytes] = field(default_factory=dict)
    slots: dict[int, dict[int, int]] = field(default_factory=dict)
    """By slot."""


GAS_PER_LIST_ITEM = 2000
"""Gas of a block's limit for each account or slot in its list."""


class EncodedAccessList(NamedTuple):
    """An access list as RLP."""

    raw: bytes
    items: int
    """Number of accounts and of their slots, which the block's gas limit bounds."""

    @property
    def hash(self) -> Hash32:
        """The header's `blockAccessListHash`."""
        return Hash32(keccak_256(self.raw).digest())


class BlockAccessList:
    """The changes of a block in execution, by account."""

    def __init__(self, world: World) -> None:
        """world: before the block's first change."""
        self._world = world
        self.index = 0
        """Of the part of the block that is being executed."""
        self._changes: defaultdict[Address, AccountChanges] = defaultdict(
            AccountChanges
        )

    def add(self, replaced: ReplacedAccounts, originals: Originals) -> None:
        """Add the changes of the present index, which are in the world.

        replaced, originals: the values before them.
        """
        index, world = self.index, self._world
        for address, before in replaced.items():
            after = world.account(address)
            if before == after:
                continue
            old, new = before or NO_ACCOUNT, after or NO_ACCOUNT
            if old.balance != new.balance:
                self._changes[address].balances[index] = new.balance
            if old.nonce != new.nonce:
                self._changes[address].nonces[index] = new.nonce
            if old.code_hash != new.code_hash:
                code = world.code(new.code_hash)
                self._changes[address].codes[index] = code
        for (address, slot), original in originals.items():
            value = world.get_storage(address, slot)
            if value != original:
                slots = self._changes[address].slots
                slots.setdefault(slot, {})[index] = value

    def encode(self) -> EncodedAccessList:
        """Return the list of the whole block, at its end."""
        accounts: list[rlp.Item] = []
        count = 0
        for address, slots in sorted(self._world.loaded()):
            changes = self._changes.get(address)
            if changes is None:
                reads: list[rlp.Item] = [rlp.encode_int(slot) for slot in sorted(slots)]
                accounts.append([address, [], reads, [], [], []])
                count += 1 + len(reads)
                continue
            written = changes.slots
            accounts.append(
                [
                    address,
                    [
                        [rlp.encode_int(slot), _numbers(written[slot])]
                        for slot in sorted(written)
                    ],
                    [
                        rlp.encode_int(slot)
                        for slot in sorted(slots)
                        if slot not in written
                    ],
                    _numbers(changes.balances),
                    _numbers(changes.nonces),
                    [
                        [rlp.encode_int(index), code]
                        for index, code in changes.codes.items()
                    ],
                ]
            )
            count += 1 + len(slots)
        return EncodedAccessList(rlp.encode(accounts), count)


def _numbers(changes: dict[int, int]) -> rlp.Item:
    """Return changes as RLP items. Their indices are in ascending order."""
    return [
        [rlp.encode_int(index), rlp.encode_int(value)]
        for index, value in changes.items()
    ]
