"""What a block's transactions touched, written down for their records.

One half is prestateTracer's usual answer, as `nodeapi.tracers.prestate` gives it, with
holes for code; the other tells what became of it (`nodeapi.tracers.details`). Both come
of one pass over what a transaction left, without an object for each account between.

geth's prestate tracer takes a value when it is first touched. Nothing changes before
it is touched, so that this is the value at the transaction's start.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

from nodeapi.evm.world import EMPTY_CODE_HASH
from nodeapi.tracers.details import (
    encode_account,
    encode_value,
)
from nodeapi.tracers.record import CODE
from nodeapi.tracers.touched import EMPTY

if TYPE_CHECKING:
    from eth_typing import Address, Hash32

    from nodeapi.evm.world import Account, Originals, ReplacedAccounts, World
    from nodeapi.tracers.touched import Slot

_CODE = f',"code":"0x{CODE.decode()}","codeHash":"0x'


class Trail(NamedTuple):
    """What a transaction left of what it touched: all that has to be kept at its end."""

    accounts: Collection[bytes]
    """Whatever it changed is among them."""
    slots: Mapping[bytes, Collection[int]]
    """By contract."""
    destroyed: Container[bytes]
    replaced: ReplacedAccounts
    originals: Originals


class Rewind:
    """Goes back through the transactions of a block, the last one first.

    What a transaction made of an account is what the next one found there, which its
    own trail has; so nothing need be looked up while transactions are executed.
    """

    def __init__(self, world: World, codes: dict[Hash32, bytes]) -> None:
        """Begin where the world stands: right after the last transaction's end.

        codes: gets the code that came in the block; it may be gone at its end.
        """
        self._world = world
        self._new_codes = codes
        self._accounts: dict[Address, Account] = {}
        self._slots: Originals = {}
        self._contracts: dict[Address, tuple[Account, str, int]] = {}

    def undo(self, trail: Trail) -> None:
        """Go back to before a transaction."""
        for address, account in trail.replaced.items():
            self._accounts[address] = account or EMPTY
        self._slots.update(trail.originals)

    def write(self, trail: Trail, details: bytearray) -> tuple[str, int]:
        """Do the same, and return `prestate`, not packed yet, and what its holes hide.

        That is the length of all code, the holes taken off. What became of the accounts
        is added to the details.
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
        """Return an account that no later transaction has changed."""
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
        """Return a contract without its storage, and what its hole hides.

        Most are what they were for the transaction before: that text is kept.
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
    """Return an account up to its storage, its brace open; code: its members."""
    nonce, balance, _ = account
    text = f'"0x{address.hex()}":{{"balance":"{hex(balance)}"{code}'
    return f'{text},"nonce":{nonce}' if nonce else text


def _storage(slots: Collection[Slot], details: bytearray) -> str:
    """Return an account's `storage`, and add what became of it to the details."""
    members = []
    for slot, old, new in slots:
        # Numbers with a format code take twice as long.
        name, word = slot.to_bytes(32, "big"), old.to_bytes(32, "big")
        members.append(f'"0x{name.hex()}":"0x{word.hex()}"')
        encode_value(details, old, new)
    return f',"storage":{{{",".join(members)}}}'
