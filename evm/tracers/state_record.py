"""The state part of trace records: accounts and slots that transactions touched.

One half is the default answer of prestateTracer (`evm.tracers.prestate`) with
placeholders for code. The other half encodes the changes (`evm.tracers.details`). Both
are written in one pass over a transaction's accounts, without an object for each.

geth's prestate tracer reads a value when it is first touched. No value changes before,
so this is the value at the transaction's start.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

from evm.tracers.details import (
    encode_account,
    encode_value,
)
from evm.tracers.record import CODE
from evm.tracers.touched import EMPTY
from evm.world import EMPTY_CODE_HASH

if TYPE_CHECKING:
    from eth_typing import Address, Hash32

    from evm.tracers.touched import Slot
    from evm.world import Account, Originals, ReplacedAccounts, World

_CODE = f',"code":"0x{CODE.decode()}","codeHash":"0x'


class Trail(NamedTuple):
    """The accounts and slots of a transaction, kept until its record is written."""

    accounts: Collection[bytes]
    """Touched accounts, including all changed ones."""
    slots: Mapping[bytes, Collection[int]]
    """Contract → its touched slots."""
    destroyed: Container[bytes]
    replaced: ReplacedAccounts
    originals: Originals


class Rewind:
    """Undoes a block's transactions, the last one first, and writes their records.

    The state after a transaction is the state before the next one. The values of the
    accounts and slots in a trail are therefore known when its transaction is undone, and
    the execution does not have to look them up.
    """

    def __init__(self, world: World, codes: dict[Hash32, bytes]) -> None:
        """Start with the world after the last transaction.

        codes: a dict to which the code that was set in the block is added, by hash.
        """
        self._world = world
        self._new_codes = codes
        self._accounts: dict[Address, Account] = {}
        self._slots: Originals = {}
        self._contracts: dict[Address, tuple[Account, str, int]] = {}

    def undo(self, trail: Trail) -> None:
        """Restore the values before a transaction, without writing its record."""
        for address, account in trail.replaced.items():
            self._accounts[address] = account or EMPTY
        self._slots.update(trail.originals)

    def write(self, trail: Trail, details: bytearray) -> tuple[str, int]:
        """Undo a transaction. Return its unpacked `prestate`, and the size of the code in it.

        The size is that of all code's hex digits, minus the placeholders. The changes
        of the accounts are appended to `details`.
        """
        touched, used, destroyed, replaced, originals = trail
        accounts, members, hidden = self._accounts, [], 0
        for address in cast("list[Address]", sorted(touched)):
            before = after = accounts.get(address) or self._look_up(address)
            if address in replaced:
                accounts[address] = before = replaced[address] or EMPTY
                if before.code_hash != after.code_hash:
                    self._keep_code(after.code_hash)
            slots = self._slots_of(address, trail) if used.get(address) else ()
            is_destroyed = address in destroyed
            if encode_account(details, address, before, after, slots, is_destroyed):
                continue
            if before.code_hash == EMPTY_CODE_HASH:
                text = _account(address, before, "")
            else:
                text, size = self._contract(address, before)
                hidden += size
            members.append(text + _storage(slots, details) if slots else text)
        self._slots.update(originals)
        return f"{{{'},'.join(members)}}}}}" if members else "{}", hidden

    def _look_up(self, address: Address) -> Account:
        """Return an account that no later transaction changed."""
        account = self._world.account(address) or EMPTY
        self._accounts[address] = account
        return account

    def _slots_of(self, address: Address, trail: Trail) -> list[Slot]:
        world, later, originals = self._world, self._slots, trail.originals
        slots = []
        for slot in sorted(trail.slots[address]):
            key = address, slot
            after = later.get(key)
            if after is None:
                after = world.get_storage(address, slot)
            slots.append((slot, originals.get(key, after), after))
        return slots

    def _contract(self, address: Address, before: Account) -> tuple[str, int]:
        """Return a contract without its storage, and the size of its code.

        The size is that of the hex digits, minus the placeholder. The text is cached,
        because most contracts do not change between two transactions.
        """
        known = self._contracts.get(address)
        if known is None or known[0] is not before:
            code_hash = before.code_hash
            size = 2 * len(self._world.code(code_hash)) - len(CODE)
            text = _account(address, before, f'{_CODE}{code_hash.hex()}"')
            self._contracts[address] = known = before, text, size
        _, text, size = known
        return text, size

    def _keep_code(self, code_hash: Hash32) -> None:
        code = self._world.new_code(code_hash)
        if code:
            self._new_codes[code_hash] = code


def _account(address: Address, account: Account, code: str) -> str:
    """Return an account as JSON up to its storage, without the closing brace.

    code: the code's members.
    """
    nonce, balance, _ = account
    text = f'"0x{address.hex()}":{{"balance":"{hex(balance)}"{code}'
    return f'{text},"nonce":{nonce}' if nonce else text


def _storage(slots: Collection[Slot], details: bytearray) -> str:
    """Return an account's `storage` as JSON, and encode its changes into the details."""
    members = []
    for slot, old, new in slots:
        # Formatting integers takes twice as long.
        name, word = slot.to_bytes(32, "big"), old.to_bytes(32, "big")
        members.append(f'"0x{name.hex()}":"0x{word.hex()}"')
        encode_value(details, old, new)
    return f',"storage":{{{",".join(members)}}}'
