"""Transactions that are executed on a small state in memory, with trace records."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from evm.blocks import Block
from evm.chain_config import LADDER, ChainConfig
from evm.changes import AccountValue, Changes
from evm.execution import BlockExecution
from evm.genesis import GenesisAccount
from evm.headers import ZERO_HASH, Header
from evm.receipts import Receipt
from evm.rules.fork import Fork
from evm.signatures import keccak
from evm.tracers.frames import CallFrame
from evm.tracers.record import TransactionRecord
from evm.tracers.recorder import Recorder
from evm.transactions import CREATE_ADDRESS, Authorization, Transaction
from evm.world import World
from nodeapi.chain.memory_state import MemoryState
from nodeapi.chain.replay import Origin, Replay
from nodeapi.documents.blocks import transaction_document

CHAIN_ID = 1
ETHER = 10**18
COINBASE = b"\xcc" * 20
SENDER = b"\x11" * 20
GAS_PRICE = 10

_numbers = itertools.count()


@dataclass(slots=True)
class Account:
    """An account of a state that a test begins with."""

    balance: int = 0
    nonce: int = 0
    code: bytes = b""
    storage: dict[int, int] = field(default_factory=dict)


def memory_state(
    accounts: Mapping[Any, Account | GenesisAccount],
) -> MemoryState:
    """Return a state that consists of these accounts, by address."""
    changes = Changes()
    for address, account in accounts.items():
        code_hash = keccak(account.code)
        changes.accounts[address] = AccountValue(
            account.nonce, account.balance, code_hash, None
        )
        if account.storage:
            changes.storage[address] = account.storage
        if account.code:
            changes.codes[code_hash] = account.code
    state = MemoryState()
    state.apply(changes)
    return state


def header_of(fork: Fork, **changes: Any) -> Header:
    """Return the header of a block with a fork's fields."""
    fields: dict[str, Any] = {
        "parent_hash": ZERO_HASH,
        "uncles_hash": ZERO_HASH,
        "coinbase": COINBASE,
        "state_root": ZERO_HASH,
        "transactions_root": ZERO_HASH,
        "receipts_root": ZERO_HASH,
        "logs_bloom": bytes(256),
        "difficulty": 0 if fork.is_merged else 131_072,
        "number": 100,
        "gas_limit": 10**9,
        "gas_used": 0,
        "timestamp": 1_700_000_000,
        "extra_data": b"",
        "mix_hash": ZERO_HASH,
        "nonce": bytes(8),
        "base_fee_per_gas": 7 if fork.has_base_fee else None,
        "withdrawals_root": ZERO_HASH if fork.has_withdrawals else None,
        "blob_gas_used": 0 if fork.has_blobs else None,
        "excess_blob_gas": 0 if fork.has_blobs else None,
        "parent_beacon_root": ZERO_HASH if fork.has_parent_beacon_root else None,
        "requests_hash": ZERO_HASH if fork.has_requests else None,
        "block_access_list_hash": ZERO_HASH if fork.has_block_access_list else None,
        "slot_number": 7 if fork.has_block_access_list else None,
    }
    return Header(**{**fields, **changes})


def transaction(
    nonce: int,
    to: bytes | None,
    data: bytes = b"",
    *,
    value: int = 0,
    gas: int = 1_000_000,
    sender: bytes = SENDER,
    authorizations: tuple[Authorization, ...] = (),
) -> Transaction:
    """Return a transaction as if it were signed; to: None creates a contract."""
    return Transaction(
        type=4 if authorizations else 0,
        chain_id=CHAIN_ID if authorizations else None,
        nonce=nonce,
        max_priority_fee_per_gas=GAS_PRICE,
        max_fee_per_gas=GAS_PRICE,
        gas=gas,
        to=CREATE_ADDRESS if to is None else to,
        value=value,
        data=data,
        v=27,
        y_parity=0,
        r=1,
        s=1,
        raw=b"number %d" % next(_numbers),
        authorization_list=authorizations,
        _sender=sender,
    )


class _Config:
    """The members of a chain config that the execution of transactions reads."""

    chain_id = CHAIN_ID

    def is_dao_fork(self, number: int) -> bool:
        return False


def replay_of(fork: str, accounts: Mapping[bytes, Account], one: Transaction) -> Replay:
    """Return a replay of a block with one transaction."""
    chosen, config = LADDER[fork], cast("ChainConfig", _Config())
    state = memory_state({SENDER: Account(1000 * ETHER), **accounts})
    block = Block(header_of(chosen), [one], [], None)
    return Replay(Origin(block, chosen, config, state, ()))


@dataclass(frozen=True, slots=True)
class StoredTransaction:
    """A transaction with its trace record, as the store returns it."""

    block_hash: bytes
    block_number: int
    index: int
    hash: bytes
    document: bytes
    calls: bytes
    prestate: bytes
    details: bytes


class Chain:
    """One block in execution, whose transactions are recorded."""

    def __init__(
        self,
        fork: Fork | str,
        accounts: Mapping[bytes, Account],
        recorder: Recorder | None = None,
    ) -> None:
        self.fork = LADDER[fork] if isinstance(fork, str) else fork
        self.header = header_of(self.fork)
        self.recorder = Recorder() if recorder is None else recorder
        funded = {SENDER: Account(1000 * ETHER), COINBASE: Account(1), **accounts}
        self.state = memory_state(funded)
        self.world = World(self.state)
        config: Any = _Config()
        self.execution = BlockExecution(
            self.header,
            self.fork,
            config,
            self.world,
            (),
            lambda: ZERO_HASH,
            self.recorder,
        )
        self.executed: list[Transaction] = []

    def apply(self, one: Transaction) -> Receipt:
        """Execute a transaction."""
        self.executed.append(one)
        return self.execution.apply_transaction(one)

    def run(self, to: bytes | None, data: bytes = b"", **options: Any) -> CallFrame:
        """Execute the sender's next transaction, and return its outermost frame."""
        self.apply(transaction(self.world.get_nonce(SENDER), to, data, **options))
        return self.recorder.top

    def record(self, index: int) -> TransactionRecord:
        """Return a transaction's record."""
        return self.recorder.records[index]

    def stored(self, index: int) -> StoredTransaction:
        """Return a transaction as the store returns it."""
        one, record = self.executed[index], self.record(index)
        return StoredTransaction(
            self.header.hash,
            self.header.number,
            index,
            one.hash,
            transaction_document(one, self.header, index),
            record.calls,
            record.prestate,
            record.details,
        )

    def codes(self) -> dict[bytes, bytes]:
        """Return all code by its hash."""
        return dict(self.state.codes) | dict(self.world._codes)
