"""The access list of a block: what its execution read and changed in the state.

World keeps every account and slot that was loaded, so the list only has to add, for each
index, what changed. Index 0 stands for what precedes the transactions, n for the n-th
transaction, and the last one for withdrawals, requests and rewards.

Source: https://eips.ethereum.org/EIPS/eip-7928
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from eth_typing import Address, Hash32
from sha3 import keccak_256

from evm import rlp
from evm.world import NO_ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from evm.world import Account, Originals, ReplacedAccounts, World

GAS_PER_LIST_ITEM = 2000
"""Gas of a block's limit for each account or slot in its list."""

_NUMBERS = [rlp.encode(rlp.encode_int(number)) for number in range(256)]
_STRING_PREFIXES = [rlp.encode(b"\xff" * size)[:1] for size in range(33)]
"""Prefix of a string of two to 32 bytes by its size."""
_EMPTY_LIST = rlp.encode([])
_ONLY_READ = _EMPTY_LIST * 3
"""The balances, nonces and codes of an account that did not change."""
_PREFIXES = [rlp.wrap_list(bytes(size))[:1] for size in range(56)]
"""Prefix of a short list by the size of its items."""


class EncodedAccessList(NamedTuple):
    """An access list as RLP."""

    raw: bytes
    items: int
    """Number of accounts and of their slots, which the block's gas limit bounds."""

    @property
    def hash(self) -> Hash32:
        """The header's `blockAccessListHash`."""
        return Hash32(keccak_256(self.raw).digest())


NOTHING_ACCESSED = EncodedAccessList(_EMPTY_LIST, 0)
"""The list of a block that was not executed: the genesis."""


class ListedAccount(NamedTuple):
    """An account of a list. Changes are pairs of index and value after it, in order."""

    address: Address
    storage: dict[int, list[tuple[int, int]]]
    """Changes by slot, in ascending order."""
    reads: list[int]
    """Slots that no index has changed."""
    balances: list[tuple[int, int]]
    nonces: list[tuple[int, int]]
    codes: list[tuple[int, bytes]]


def decode_access_list(raw: bytes) -> Iterator[ListedAccount]:
    """Yield the accounts of an encoded list that was made or verified by us."""
    accounts: Any = rlp.decode(raw)  # of the form that `encode` gives them
    for address, changed, reads, balances, nonces, codes in accounts:
        yield ListedAccount(
            Address(address),
            {_int(slot): _pairs(changes) for slot, changes in changed},
            list(map(_int, reads)),
            _pairs(balances),
            _pairs(nonces),
            [(_int(index), code) for index, code in codes],
        )


def _pairs(changes: Iterable[tuple[bytes, bytes]]) -> list[tuple[int, int]]:
    return [(_int(index), _int(value)) for index, value in changes]


def _int(data: bytes) -> int:
    return int.from_bytes(data, "big")


class _AccountChanges(NamedTuple):
    """The changes of one account, as RLP of pairs of index and value, the last one first."""

    balances: list[bytes]
    nonces: list[bytes]
    codes: list[bytes]


class BlockAccessList:
    """Collects what each part of a block has replaced, and makes the list in the end."""

    def __init__(self) -> None:
        self.index = 0
        """Of the part of the block that is being executed."""
        self._replaced: list[tuple[int, ReplacedAccounts, Originals]] = []
        """Index and the values before it, with ascending indices."""

    def add(self, replaced: ReplacedAccounts, originals: Originals) -> None:
        """Add values that the present index has replaced. They are not changed later."""
        if not replaced and not originals:
            return
        if self._replaced and self._replaced[-1][0] == self.index:
            _, earlier, earlier_originals = self._replaced.pop()
            replaced = {**replaced, **earlier}
            originals = {**originals, **earlier_originals}
        self._replaced.append((self.index, replaced, originals))

    def encode(self, world: World) -> EncodedAccessList:
        """Return the list of the whole block. world: after the block.

        The value after an index is the one before the next index that replaced it. So the
        indices are visited in descending order, and execution need not look values up.
        """
        accounts: dict[Address, _AccountChanges] = {}
        storage: dict[Address, dict[int, list[bytes]]] = {}
        later: ReplacedAccounts = {}
        later_slots: Originals = {}
        for index, replaced, originals in reversed(self._replaced):
            at = _number(index)
            for address, before in replaced.items():
                after = later[address] if address in later else world.account(address)
                later[address] = before
                if before != after:
                    changes = accounts.get(address)
                    if changes is None:
                        changes = accounts[address] = _AccountChanges([], [], [])
                    _add_changes(changes, at, before, after, world)
            for key, original in originals.items():
                value = later_slots.get(key)
                if value is None:
                    value = world.get_storage(*key)
                later_slots[key] = original
                if value != original:
                    address, slot = key
                    slots = storage.get(address)
                    if slots is None:
                        slots = storage[address] = {}
                    slots.setdefault(slot, []).append(_pair(at, _number(value)))
        items, count = [], 0
        for address, used in sorted(world.loaded()):
            count += 1 + len(used)
            written = storage.get(address)
            changes = accounts.get(address)
            item = b"\x94%b%b%b" % (
                address,
                _slots(used, written) if used else _EMPTY_LIST * 2,
                _ONLY_READ if changes is None else b"".join(map(_in_order, changes)),
            )
            items.append(_wrapped(item))
        return EncodedAccessList(rlp.wrap_list(b"".join(items)), count)


def _add_changes(
    changes: _AccountChanges,
    at: bytes,
    before: Account | None,
    after: Account | None,
    world: World,
) -> None:
    """Add the fields of an account that an index has changed. at: its RLP."""
    old_nonce, old_balance, old_code = before or NO_ACCOUNT
    nonce, balance, code_hash = after or NO_ACCOUNT
    if old_balance != balance:
        changes.balances.append(_pair(at, _number(balance)))
    if old_nonce != nonce:
        changes.nonces.append(_pair(at, _number(nonce)))
    if old_code != code_hash:
        changes.codes.append(rlp.wrap_list(at + rlp.encode(world.code(code_hash))))


def _slots(used: Collection[int], written: dict[int, list[bytes]] | None) -> bytes:
    """Return the RLP of an account's slots: the changed ones, and those only read."""
    if not written:
        reads = b"".join(map(_number, sorted(used)))
        return _EMPTY_LIST + rlp.wrap_list(reads)
    changes = b"".join(
        _wrapped(_number(slot) + _in_order(written[slot])) for slot in sorted(written)
    )
    reads = b"".join(_number(slot) for slot in sorted(used) if slot not in written)
    return rlp.wrap_list(changes) + rlp.wrap_list(reads)


def _in_order(changes: list[bytes]) -> bytes:
    """Return the RLP of changes that are given with the last one first."""
    if not changes:
        return _EMPTY_LIST
    return _wrapped(changes[0] if len(changes) == 1 else b"".join(reversed(changes)))


def _pair(at: bytes, value: bytes) -> bytes:
    """Return the RLP of an index, encoded, with a number of at most 32 bytes."""
    return _PREFIXES[len(at) + len(value)] + at + value


def _wrapped(payload: bytes) -> bytes:
    size = len(payload)
    return _PREFIXES[size] + payload if size < 56 else rlp.wrap_list(payload)


def _number(value: int) -> bytes:
    """Return the RLP of a number of at most 32 bytes."""
    if value < 256:
        return _NUMBERS[value]
    size = (value.bit_length() + 7) >> 3
    return _STRING_PREFIXES[size] + value.to_bytes(size, "big")
