"""The contents of random blocks of Amsterdam.

The transactions call, create, store, clear, destroy, delegate and run out of gas. The
state lives on from block to block.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, NamedTuple

from eth_typing import Address, Hash32

from evm import rlp
from evm.blocks import Withdrawal
from evm.hexadecimal import to_hex
from evm.intrinsic import floor_gas, intrinsic_gas
from evm.requests import BUILDER_QUEUES, QUEUES
from evm.rules.forks import AMSTERDAM, OSAKA
from evm.signing import TransactionFields
from evm.transactions import (
    ACCESS_LIST,
    BLOB,
    CELLS_PER_BLOB,
    CREATE_ADDRESS,
    DYNAMIC_FEE,
    LEGACY,
    SET_CODE,
    Authorization,
    Transaction,
)
from samples.schedules import (
    GENESIS_TIME,
    SECONDS_PER_BLOCK,
    from_genesis,
    make_genesis,
)
from samples.signers import Signer, create_address
from tests.support.executed import ETHER, SENDER
from tests.support.random_arguments import word
from tests.support.random_calls import (
    CONTRACTS,
    DELEGATING,
    OTHERS,
    PRECOMPILES,
    RandomCode,
    push,
    random_accounts,
)

CHAIN_ID = 8037
GAS_LIMIT = 200_000_000
FIRST_OF_AMSTERDAM = 3
TRANSACTIONS = 12
"""Of a block, at most."""
PLACES = 12
"""Created contracts that are called; older ones are forgotten."""

_PROGRAMS = [Address(bytes([0xB0 + n]) * 20) for n in range(16)]
"""Random contracts of the genesis block, besides those of `random_accounts`."""
_SENDERS = [Signer(f"sender {n}") for n in range(4)]
"""Their nonces grow with their transactions alone."""
_AUTHORITIES = [Signer(f"authority {n}") for n in range(5)]
"""They delegate, and send transactions as well."""
_AUTHORITY_ADDRESSES = [each.address for each in _AUTHORITIES]
_REQUESTS = dict(
    zip((*QUEUES.values(), *BUILDER_QUEUES.values()), (56, 96, 184, 48), strict=True)
)
"""Contracts of requests, and the bytes that each expects."""
_TOP_EXECUTION = 2**24
_MOST_FEE = 10**12

_INFINITY = b"\xc0" + bytes(47)
"""The point at infinity: commitment to a blob of zeros, and each of its proofs."""
_BLOB_HASH = Hash32(b"\x01" + sha256(_INFINITY).digest()[1:])


def network_form(transaction: Transaction) -> bytes:
    """Return the form with a sidecar of version 1, if there are blobs (EIP-7594)."""
    count = len(transaction.blob_versioned_hashes)
    if not count:
        return transaction.raw
    parts: list[rlp.Item] = [b"\x01", [bytes(2**17)] * count, [_INFINITY] * count]
    proofs: list[rlp.Item] = [_INFINITY] * (CELLS_PER_BLOB * count)
    payload = rlp.decode(transaction.raw[1:])
    return transaction.raw[:1] + rlp.encode([payload, *parts, proofs])


class Attributes(NamedTuple):
    """What a block contains besides its transactions."""

    timestamp: int
    coinbase: Address
    mix_hash: Hash32
    withdrawals: list[Withdrawal]
    parent_beacon_root: Hash32


class RandomBlocks:
    """Makes transactions and attributes of blocks.

    nonce: returns an account's nonce after the newest block.
    """

    def __init__(self, seed: int, nonce: Callable[[Address], int]) -> None:
        self._choose = random.Random(seed)
        self._nonce = nonce
        self._fork = OSAKA
        self._places: list[Address] = []
        self._nonces: dict[Address, int] = {}
        self.refused = 0
        """Blocks of which geth refused a transaction."""

    @staticmethod
    def genesis(seed: int) -> dict[str, Any]:
        """Return genesis.json, in which Amsterdam begins after a few blocks."""
        choose = random.Random(seed)
        alloc = {
            to_hex(address): {
                "balance": hex(account.balance),
                "nonce": hex(account.nonce),
                "code": to_hex(account.code),
                "storage": {word(k): word(v) for k, v in account.storage.items()},
            }
            for address, account in random_accounts(choose, AMSTERDAM).items()
        }
        writer = RandomCode(choose, AMSTERDAM, [*_PROGRAMS, *_AUTHORITY_ADDRESSES])
        for address in _PROGRAMS:
            code = writer.code(choose.randrange(6, 16))
            alloc[to_hex(address)] = {"balance": hex(ETHER), "code": to_hex(code)}
        for signer in (*_SENDERS, *_AUTHORITIES):
            alloc[to_hex(signer.address)] = {"balance": hex(10**9 * ETHER)}
        first_blocks = {**from_genesis("bpo2"), "amsterdam": FIRST_OF_AMSTERDAM}
        made = make_genesis(chain_id=CHAIN_ID, first_blocks=first_blocks, alloc=alloc)
        return {**made, "gasLimit": hex(GAS_LIMIT), "difficulty": "0x0"}

    def attributes(self, number: int) -> Attributes:
        """Return what else block `number` contains."""
        choose = self._choose
        return Attributes(
            GENESIS_TIME + SECONDS_PER_BLOCK * number,
            self._place(),
            Hash32(choose.randbytes(32)),
            [
                Withdrawal(n, 1, self._place(), choose.choice([0, 1, 10**9]))
                for n in range(choose.choice([0, 0, 1, 3]))
            ],
            Hash32(choose.randbytes(32)),
        )

    def transactions(self, number: int) -> list[Transaction]:
        """Return the transactions of block `number`. Their gas limits fit into it."""
        choose = self._choose
        self._fork = AMSTERDAM if number >= FIRST_OF_AMSTERDAM else OSAKA
        self._nonces.clear()
        made: list[Transaction] = []
        # An authority's nonce is certain only before any other transaction.
        if choose.random() < 0.5:
            made.append(self._transaction(choose.choice(_AUTHORITIES)))
        count = choose.randrange(TRANSACTIONS + 1)
        while len(made) < count:
            made.append(self._transaction(choose.choice(_SENDERS)))
            if sum(each.gas for each in made) > GAS_LIMIT:
                made.pop()
                break
        for each in made:
            if each.to == CREATE_ADDRESS:
                self._places.append(create_address(each.sender, each.nonce))
        del self._places[:-PLACES]
        return made

    def _next_nonce(self, address: Address) -> int:
        nonce = self._nonces.get(address)
        if nonce is None:
            nonce = self._nonce(address)
        self._nonces[address] = nonce + 1
        return nonce

    def _place(self) -> Address:
        """Return the address of an account of any kind, which may not exist."""
        choose = self._choose
        kind = choose.random()
        if kind < 0.4:
            return Address(choose.choice([*CONTRACTS, *_PROGRAMS]))
        if kind < 0.6 and self._places:
            return choose.choice(self._places)
        if kind < 0.75:
            return choose.choice([*_AUTHORITIES, *_SENDERS]).address
        if kind < 0.95:
            known = [DELEGATING, SENDER, *PRECOMPILES, *OTHERS, *_REQUESTS]
            return Address(choose.choice(known))
        return Address(choose.randbytes(20))

    def _code(self, length: int) -> bytes:
        places = [*self._places, *_PROGRAMS, *_AUTHORITY_ADDRESSES]
        return RandomCode(self._choose, AMSTERDAM, places).code(length)

    def _init_code(self) -> bytes:
        """Return code that runs at once, or that deploys random code."""
        choose = self._choose
        code = self._code(choose.randrange(2, 12))
        if choose.random() < 0.4:
            return code + push(choose.choice([0, 32, 5000, 24_577])) + b"\x5f\xf3"
        # PUSH2 size, DUP1, PUSH1 offset, PUSH0, CODECOPY, PUSH0, RETURN
        return b"\x61" + len(code).to_bytes(2) + b"\x80\x60\x0a\x5f\x39\x5f\xf3" + code

    def _transaction(self, sender: Signer) -> Transaction:
        choose = self._choose
        fields = TransactionFields(
            type=choose.choice([LEGACY, ACCESS_LIST, DYNAMIC_FEE, DYNAMIC_FEE]),
            chain_id=CHAIN_ID,
            nonce=self._next_nonce(sender.address),
            to=self._place(),
            data=choose.randbytes(choose.choice([0, 4, 40, 700])),
            value=choose.choice([0, 0, 1, ETHER]),
            gas=0,
        )
        kind = choose.random()
        if kind < 0.2:
            fields |= {"to": CREATE_ADDRESS, "data": self._init_code()}
        elif kind < 0.3:
            to, size = choose.choice(list(_REQUESTS.items()))
            data = choose.randbytes(choose.choice([size, size, size, 0, 1]))
            fields |= {"to": to, "data": data, "value": choose.choice([0, 1, ETHER])}
        elif kind < 0.45:
            fields |= {
                "type": SET_CODE,
                "authorization_list": self._authorizations(sender),
            }
        elif kind < 0.48:
            count = choose.choice([1, 2])
            fields |= {"type": BLOB, "blob_versioned_hashes": [_BLOB_HASH] * count}
            fields["max_fee_per_blob_gas"] = _MOST_FEE
        if fields["type"] in (LEGACY, ACCESS_LIST):
            fields["gas_price"] = _MOST_FEE
        else:
            fields["max_fee_per_gas"] = _MOST_FEE
            fields["max_priority_fee_per_gas"] = choose.choice([0, 1, 10**9])
        if fields["type"] != LEGACY and choose.random() < 0.4:
            fields["access_list"] = [
                (self._place(), [choose.randrange(4) for _ in range(slots)])
                for slots in (0, 2, 3)[: choose.randrange(4)]
            ]
        draft = sender.sign(fields)
        least = max(intrinsic_gas(draft, self._fork), floor_gas(draft, self._fork))
        gas = min(self._gas(least), self._fork.max_transaction_gas or GAS_LIMIT)
        return sender.sign({**fields, "gas": gas})

    def _gas(self, least: int) -> int:
        choose = self._choose
        kind = choose.random()
        if kind < 0.15:
            return least + choose.randrange(6000)
        if kind < 0.4:
            return least + choose.randrange(400_000)
        if kind < 0.7:
            return least + choose.randrange(3_000_000)
        if kind < 0.73:
            return _TOP_EXECUTION + choose.randrange(-3, 4)
        # Beyond this limit, gas is a reservoir for state gas alone.
        return _TOP_EXECUTION + choose.randrange(choose.choice([10**6, 3 * 10**7]))

    def _authorizations(self, sender: Signer) -> Sequence[Authorization]:
        """Return delegations, most of them valid."""
        choose = self._choose
        made = []
        for _ in range(choose.randrange(1, 5)):
            authority = choose.choice(_AUTHORITIES)
            nonce = self._nonce(authority.address) + (authority is sender)
            nonce += choose.choice([0, 0, 0, 1])
            target = choose.choice([self._place(), self._place(), Address(bytes(20))])
            chain_id = choose.choice([CHAIN_ID, CHAIN_ID, CHAIN_ID, 0, 1])
            signed = authority.authorize(chain_id, target, nonce)
            made.append(replace(signed, r=1) if choose.random() < 0.05 else signed)
        return made
