"""The journaled world, compared with a model that copies everything at checkpoints."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from eth_typing import Address, Hash32
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from sha3 import keccak_256

from evm.changes import AccountValue, Changes, decode_changes, encode_changes
from evm.world import EMPTY_CODE_HASH, World

ADDRESSES = [Address(bytes([n]) * 20) for n in range(1, 5)]
SLOTS = range(4)
ROOT = Hash32(b"\x01" * 32)
CODES = {
    Hash32(keccak_256(code).digest()): code for code in (b"", b"\x00", b"\x01\x02")
}

addresses = st.sampled_from(ADDRESSES)
slots = st.sampled_from(SLOTS)
values = st.integers(0, 3)


class Below:
    """The state of the parent: two accounts, one with storage."""

    accounts = {
        ADDRESSES[0]: AccountValue(1, 100, EMPTY_CODE_HASH, None),
        ADDRESSES[1]: AccountValue(1, 5, list(CODES)[1], ROOT),
        ADDRESSES[2]: AccountValue(0, 0, EMPTY_CODE_HASH, None),
    }
    slots = {(ADDRESSES[1], 0): 7, (ADDRESSES[1], 2): 9}

    def account(self, address: Address) -> AccountValue | None:
        return self.accounts.get(address)

    def storage(self, address: Address, slot: int) -> int:
        return self.slots.get((address, slot), 0)

    def live_slots(self, address: Address) -> Iterable[int]:
        return [slot for owner, slot in self.slots if owner == address]

    def code(self, code_hash: Hash32) -> bytes:
        return CODES[code_hash]


class Model:
    """The same state as plain dictionaries, which are copied at each checkpoint."""

    def __init__(self) -> None:
        self.accounts: dict[Address, list[Any]] = {
            address: list(account[:3]) for address, account in Below.accounts.items()
        }
        self.slots = dict(Below.slots)
        self.warm: set[Any] = set()
        self.transient: dict[Any, int] = {}

    def account(self, address: Address) -> list[Any]:
        return self.accounts.setdefault(address, [0, 0, EMPTY_CODE_HASH])


class WorldMachine(RuleBasedStateMachine):
    """Applies the same operations to the world and the model, and compares all reads."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(Below())
        self.model = Model()
        self.originals = dict(self.model.slots)
        self.checkpoints: list[tuple[int, Model]] = []

    @rule(address=addresses, balance=st.integers(0, 200))
    def set_balance(self, address: Address, balance: int) -> None:
        self.world.set_balance(address, balance)
        self.model.account(address)[1] = balance

    @rule(address=addresses)
    def increment_nonce(self, address: Address) -> None:
        self.world.increment_nonce(address)
        self.model.account(address)[0] += 1

    @rule(address=addresses, code=st.sampled_from(list(CODES.values())))
    def set_code(self, address: Address, code: bytes) -> None:
        self.world.set_code(address, code)
        self.model.account(address)[2] = Hash32(keccak_256(code).digest())

    @rule(address=addresses, slot=slots, value=values)
    def set_storage(self, address: Address, slot: int, value: int) -> None:
        self.world.touch_account(address)
        self.model.account(address)
        self.world.set_storage(address, slot, value)
        self.model.slots[(address, slot)] = value

    @rule(address=addresses)
    def touch(self, address: Address) -> None:
        self.world.touch_account(address)
        self.model.account(address)

    @rule(address=addresses)
    def delete_account(self, address: Address) -> None:
        self.world.delete_account(address)
        self.model.accounts.pop(address, None)
        for slot in SLOTS:
            self.model.slots.pop((address, slot), None)

    @rule(address=addresses, slot=slots, value=values)
    def warm_and_transient(self, address: Address, slot: int, value: int) -> None:
        self.world.mark_address_warm(address)
        self.world.mark_storage_warm(address, slot)
        self.world.set_transient_storage(address, slot, value)
        self.model.warm |= {address, (address, slot)}
        self.model.transient[(address, slot)] = value

    @rule()
    def record(self) -> None:
        self.checkpoints.append((self.world.record(), copy.deepcopy(self.model)))

    @rule()
    def discard(self) -> None:
        if self.checkpoints:
            checkpoint, self.model = self.checkpoints.pop()
            self.world.discard(checkpoint)

    @rule()
    def commit(self) -> None:
        if self.checkpoints:
            self.checkpoints.pop()

    @rule()
    def next_transaction(self) -> None:
        self.world.lock_changes()
        self.checkpoints.clear()
        self.model.warm.clear()
        self.model.transient.clear()
        self.originals = dict(self.model.slots)

    @invariant()
    def all_reads_agree(self) -> None:
        world, model = self.world, self.model
        for address in ADDRESSES:
            account = model.accounts.get(address)
            nonce, balance, code_hash = account or [0, 0, EMPTY_CODE_HASH]
            assert world.account_exists(address) == (account is not None)
            assert world.get_nonce(address) == nonce
            assert world.get_balance(address) == balance
            assert world.get_code_hash(address) == code_hash
            assert world.get_code(address) == CODES[code_hash]
            assert world.is_address_warm(address) == (address in model.warm)
            for slot in SLOTS:
                key = (address, slot)
                assert world.get_storage(address, slot) == model.slots.get(key, 0)
                assert world.is_storage_warm(address, slot) == (key in model.warm)
                transient = world.get_transient_storage(address, slot)
                assert transient == model.transient.get(key, 0)

    @invariant()
    def originals_are_those_of_the_transaction_s_start(self) -> None:
        for (address, slot), value in self.originals.items():
            if (address, slot) in self.model.slots:
                assert self.world.original_storage(address, slot) == value

    @invariant()
    def changes_are_what_differs(self) -> None:
        changes = self.world.changes(clears_empty_accounts=False)
        for address in ADDRESSES:
            account = self.model.accounts.get(address)
            below = Below.accounts.get(address)
            slots = {
                slot: self.model.slots.get((address, slot), 0)
                for slot in SLOTS
                if self.model.slots.get((address, slot), 0)
                != Below.slots.get((address, slot), 0)
            }
            # A slot that was destroyed and written again may be listed although it is unchanged.
            found = changes.storage.get(address, {})
            assert {**found, **slots} == found
            for slot in found.keys() - slots.keys():
                assert found[slot] == Below.slots.get((address, slot), 0)
            if account is None:
                assert (address in changes.accounts) == (below is not None)
                assert changes.accounts.get(address) is None
            elif below is None or list(below[:3]) != account:
                value = changes.accounts[address]
                assert value is not None
                assert list(value[:3]) == account


WorldMachine.TestCase.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None
)
TestWorld = WorldMachine.TestCase


def test_an_empty_account_that_was_only_looked_at_is_no_change() -> None:
    world = World(Below())
    world.touch_account(ADDRESSES[3])
    assert world.changes(clears_empty_accounts=True).accounts == {}
    assert ADDRESSES[3] in world.changes(clears_empty_accounts=False).accounts


def test_changes_survive_their_encoding() -> None:
    changes = Changes(
        accounts={
            ADDRESSES[0]: None,
            ADDRESSES[1]: AccountValue(3, 2**200, EMPTY_CODE_HASH, None),
            ADDRESSES[2]: AccountValue(0, 0, list(CODES)[1], ROOT),
        },
        storage={ADDRESSES[2]: {0: 0, 2**256 - 1: 1}},
    )
    assert decode_changes(encode_changes(changes)) == changes
