"""Random contracts that call, create, destroy, store, log, fail and delegate."""

from __future__ import annotations

import random
from collections.abc import Sequence

from evm.delegations import DELEGATION_PREFIX
from evm.rules.fork import Fork
from evm.signing import sign_authorization
from evm.transactions import Authorization, Transaction
from tests.support.executed import CHAIN_ID, ETHER, SENDER, Account, transaction

CONTRACTS = [bytes([0xA0 + n]) * 20 for n in range(5)]
DELEGATING = b"\xd1" * 20
PRECOMPILES = [n.to_bytes(20, "big") for n in (2, 4)]
OTHERS = [b"\xee" * 20, b"\xef" * 20]
KEYS = [bytes([n]) * 32 for n in (1, 2)]

_STORE, _LOAD, _LOG, _LOOK, _CALL, _CREATE, _END, _NEW, _STATE = range(9)
_WEIGHTS = {_STORE: 5, _LOAD: 3, _LOG: 2, _LOOK: 2, _CALL: 5, _CREATE: 2, _END: 0.7}
_AMSTERDAM_WEIGHTS = {**_WEIGHTS, _NEW: 2, _STATE: 3}


def push(value: int) -> bytes:
    data = value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")
    return bytes([0x5F + len(data)]) + data


class RandomCode:
    """Creates code whose instructions mostly exist in a fork."""

    def __init__(
        self, choose: random.Random, fork: Fork, places: Sequence[bytes] = ()
    ) -> None:
        """places: further addresses that the code calls."""
        self._choose = choose
        self._fork = fork
        self._is_amsterdam = fork.has_block_access_list
        self._weights = _AMSTERDAM_WEIGHTS if self._is_amsterdam else _WEIGHTS
        self._places = places

    def code(self, length: int, depth: int = 0) -> bytes:
        """Return a random program.

        length: number of statements. depth: nesting depth of its creations.
        """
        kinds, weights = zip(*self._weights.items(), strict=True)
        parts = []
        for _ in range(length):
            kind = self._choose.choices(kinds, weights)[0]
            parts.append(self._statement(kind, depth))
        return b"".join(parts)

    def _statement(self, kind: int, depth: int) -> bytes:
        choose = self._choose
        slot = push(choose.randrange(8 if self._is_amsterdam else 4))
        if kind == _STORE:
            return push(choose.choice([0, 0, 1, 2, 2**255])) + slot + b"\x55"
        if kind == _LOAD:
            return slot + b"\x54\x50"
        if kind == _LOG:
            topics = choose.randrange(3)
            size = push(choose.choice([0, 1, 32, 40]))
            topic = push(choose.getrandbits(200)) * topics
            return topic + size + b"\x60\x00" + bytes([0xA0 + topics])
        if kind == _LOOK:
            looks = [b"\x31", b"\x3b"]
            if self._is_amsterdam:
                looks += [b"\x3f", b"\x5f\x5f\x5f\x83\x3c"]
            return self._address() + choose.choice(looks) + b"\x50"
        if kind == _CALL:
            return self._call()
        if kind == _CREATE:
            return self._create(depth)
        if kind == _NEW:
            return self._new_instruction() + slot + b"\x55"
        if kind == _STATE:
            return self._state_gas()
        ends = [b"\x00", b"\xfe", b"\x60\x20\x60\x00\xf3", b"\x01" * 9]
        if self._fork.has_status_receipts:
            ends += [b"\x60\x20\x60\x00\xfd", b"\x60\x00\x60\x00\xfd"]
        if self._is_amsterdam:
            ends.append(b"\x30\xff")
        return choose.choice([*ends, self._address() + b"\xff"])

    def _new_instruction(self) -> bytes:
        """Return SLOTNUM, DUPN, SWAPN or EXCHANGE, which may fail."""
        choose = self._choose
        opcode = choose.choice([0x4B, 0xE6, 0xE7, 0xE8])
        if opcode == 0x4B:
            return b"\x4b"
        # Immediate values from 128 on reach few stack items.
        operand = choose.choice([128, 130, 140, 142, 143, choose.randrange(256)])
        items = b"".join(push(choose.getrandbits(8)) for _ in range(32))
        return items + bytes([opcode, operand])

    def _state_gas(self) -> bytes:
        """Return code that pays for a new slot, account or contract.

        The slot and the account depend on the remaining gas.
        """
        choose = self._choose
        kind = choose.randrange(5)
        if kind == 0:
            return b"\x60\x01\x5a\x55"
        if kind == 4:  # the slot is cleared again
            return b"\x5a\x60\x01\x81\x55\x5f\x90\x55"
        if kind == 1:
            return b"\x5f\x5f\x5f\x5f\x60\x01\x5a\x5a\xf1\x50"
        if kind == 2:
            value, slot = push(choose.randrange(3)), push(choose.randrange(4))
            return value + slot + b"\x5d" + slot + b"\x5c" + slot + b"\x55"
        # `PUSH size, PUSH0, RETURN` creates a contract of zeros.
        size = choose.choice([0, 1, 33, 300, 3000, 24_577, 65_536, 65_537])
        init = push(size) + b"\x5f\xf3"
        start = push(32 - len(init))
        return push(int.from_bytes(init)) + (
            b"\x5f\x52" + push(len(init)) + start + b"\x5f\xf0\x50"
        )

    def _address(self) -> bytes:
        places = [*CONTRACTS, *CONTRACTS, DELEGATING, *PRECOMPILES, *OTHERS, SENDER]
        places += self._places
        return push(int.from_bytes(self._choose.choice(places), "big"))

    def _call(self) -> bytes:
        choose = self._choose
        kinds = [0xF1, 0xF1, 0xF2]
        if self._fork.name != "frontier":
            kinds.append(0xF4)
        if self._fork.has_status_receipts:
            kinds.append(0xFA)
        kind = choose.choice(kinds)
        limits = [0, 100, 5000, 50_000, 200_000]
        gas = push(choose.choice(limits))
        if self._is_amsterdam and choose.random() < 0.5:
            gas = choose.choice([b"\x5a", b"\x5a", push(2300), push(1_000_000)])
        value = push(choose.choice([0, 0, 0, 1, 10**30])) if kind < 0xF4 else b""
        size = push(choose.choice([0, 4, 40]))
        ranges = b"\x60\x20\x60\x00" + size + b"\x60\x00"
        return ranges + value + self._address() + gas + bytes([kind, 0x50])

    def _create(self, depth: int) -> bytes:
        """Return code that writes init code to memory, and creates a contract with it."""
        choose = self._choose
        init = b"\x00"
        if depth < 2:
            init = self.code(choose.randrange(4), depth + 1)
        init += choose.choice([b"", b"\x60\x20\x60\x00\xf3", b"\x60\xef\x60\x00\x53"])
        init = init[:96]
        code = b"".join(
            push(int.from_bytes(init[i : i + 32].ljust(32, b"\0"), "big"))
            + push(i)
            + b"\x52"
            for i in range(0, len(init), 32)
        )
        value = push(choose.choice([0, 0, 1, 10**30]))
        size = push(len(init)) + b"\x60\x00"
        is_salted = self._fork.has_status_receipts and self._fork.name != "byzantium"
        if is_salted and choose.random() < 0.5:
            return code + push(choose.randrange(2)) + size + value + b"\xf5\x50"
        return code + size + value + b"\xf0\x50"


def random_accounts(choose: random.Random, fork: Fork) -> dict[bytes, Account]:
    """Return accounts with random contracts, and accounts that these may call."""
    writer = RandomCode(choose, fork)
    accounts = {
        address: Account(
            choose.choice([0, 5, ETHER]),
            1,
            writer.code(choose.randrange(3, 12)),
            {slot: choose.randrange(1, 9) for slot in range(choose.randrange(3))},
        )
        for address in CONTRACTS
    }
    accounts[OTHERS[0]] = Account(3)
    if fork.has_delegations:
        target = choose.choice(CONTRACTS)
        accounts[DELEGATING] = Account(ETHER, 1, DELEGATION_PREFIX + target)
        if choose.random() < 0.3:
            code = DELEGATION_PREFIX + target
            accounts[choose.choice(PRECOMPILES)] = Account(ETHER, 1, code)
    return accounts


def random_transaction(choose: random.Random, fork: Fork, nonce: int) -> Transaction:
    """Return a call, a creation, or (where there are any) one with authorisations."""
    authorizations: tuple[Authorization, ...] = ()
    if fork.has_delegations and choose.random() < 0.3:
        authorizations = tuple(
            sign_authorization(
                CHAIN_ID,
                choose.choice([*CONTRACTS, bytes(20)]),
                choose.randrange(3),
                choose.choice(KEYS),
            )
            for _ in range(choose.randrange(1, 3))
        )
    to = choose.choice([*CONTRACTS, *CONTRACTS, DELEGATING, *OTHERS, None])
    data = choose.randbytes(choose.choice([0, 4, 36]))
    if to is None:
        if authorizations:
            to = CONTRACTS[0]
        else:
            data = RandomCode(choose, fork).code(6)
    return transaction(
        nonce,
        to,
        data,
        value=choose.choice([0, 0, 1]),
        gas=choose.choice([120_000, 300_000, 2_000_000]),
        authorizations=authorizations,
    )
