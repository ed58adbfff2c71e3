"""Cases in the format of go-ethereum's tracer tests, and their execution.

A case is a JSON file: `genesis` (with the state right before the transaction as
`alloc`, and the forks as `config`), `context` (of the block), `input` (the transaction),
`result`, and perhaps `tracerConfig`. The folder's name says which tracer it is.
Source: go-ethereum, eth/tracers/internal/tracetest
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eth_typing import Hash32

from evm import rlp
from evm.chain_config import BLOCK_FORKS, LADDER, TIME_FORKS
from evm.execution import BlockExecution
from evm.genesis import genesis_accounts
from evm.headers import ZERO_HASH, Header
from evm.rules.fork import BlobParameters, Fork
from evm.rules.forks import BLOB_PARAMETER_FORKS
from evm.signatures import keccak
from evm.tracers.recorder import Recorder
from evm.transactions import Transaction, decode_transaction
from evm.world import World
from nodeapi.chain.memory_state import MemoryState
from nodeapi.documents.blocks import transaction_document
from tests.support import execution_apis
from tests.support.executed import memory_state

ANCESTORS = 256
"""Number of ancestors whose hashes BLOCKHASH returns."""


def folder() -> Path:
    """Return the folder of the recorded cases, if it exists."""
    return execution_apis.data() / "geth-tracers"


@dataclass(frozen=True, slots=True)
class Case:
    """One case, ready to be executed."""

    transaction: Transaction
    header: Header
    fork: Fork
    chain_id: int
    state: MemoryState
    tracer_config: Mapping[str, Any]
    result: Any

    def execution(self, world: World, watcher: Any) -> BlockExecution:
        """Return the execution of a block, in the state before the transaction."""
        config: Any = _Config(self.chain_id)
        return BlockExecution(
            self.header,
            self.fork,
            config,
            world,
            self.ancestor_hashes(),
            lambda: ZERO_HASH,
            watcher,
        )

    def ancestor_hashes(self) -> list[Hash32]:
        """Return invented results of BLOCKHASH, because a case has no chain."""
        numbers = range(self.header.number - 1, -1, -1)[:ANCESTORS]
        return [keccak(str(number).encode()) for number in numbers]


@dataclass(frozen=True, slots=True)
class _Config:
    """The members of a chain config that the execution of transactions reads."""

    chain_id: int

    def is_dao_fork(self, number: int) -> bool:
        """Return False, because the state is that before the transaction."""
        return False


@dataclass(frozen=True, slots=True)
class RecordedCase:
    """A transaction with its trace record, as the store returns it."""

    block_hash: bytes
    block_number: int
    index: int
    hash: bytes
    document: bytes
    calls: bytes
    prestate: bytes
    details: bytes
    calls_size: int
    prestate_size: int


def read_case(path: Path) -> Case:
    """Read a case."""
    return case_of(json.loads(path.read_text()))


def case_of(data: Mapping[str, Any]) -> Case:
    """Return the case that a JSON object describes."""
    genesis, context = data["genesis"], data["context"]
    config = {key.lower(): value for key, value in genesis["config"].items()}
    fork = _fork(config, context)
    return Case(
        decode_transaction(_transaction(_data(data["input"]))),
        _header(genesis, context, fork),
        fork,
        _number(config.get("chainid")),
        memory_state(genesis_accounts(genesis)),
        data.get("tracerConfig") or {},
        data["result"],
    )


def record(case: Case) -> tuple[RecordedCase, dict[bytes, bytes]]:
    """Execute a case. Return its trace record, and all code by hash."""
    world, recorder = World(case.state), Recorder()
    execution = case.execution(world, recorder)
    # The block's gas limit does not restrict the transaction.
    used = case.header.gas_limit - case.transaction.gas
    execution.execution_gas = execution.state_gas = used
    execution.apply_transaction(case.transaction)
    (kept,) = recorder.records
    codes = dict(case.state.codes) | recorder.codes
    recorded = RecordedCase(
        case.header.hash,
        case.header.number,
        0,
        case.transaction.hash,
        transaction_document(case.transaction, case.header, 0),
        kept.calls,
        kept.prestate,
        kept.details,
        kept.calls_size,
        kept.prestate_size,
    )
    return recorded, codes


def _number(value: Any) -> int:
    if isinstance(value, str):
        return int(value, 16) if value[:2].lower() == "0x" else int(value)
    return int(value or 0)


def _data(text: str) -> bytes:
    digits = text.removeprefix("0x")
    return bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2))


def _transaction(raw: bytes) -> bytes:
    """Return a transaction as EIP-2718 has it; within RLP it would be a string."""
    if 0x80 <= raw[0] < 0xC0:
        item = rlp.decode(raw)
        assert isinstance(item, bytes)
        return item
    return raw


def _fork(config: Mapping[str, Any], context: Mapping[str, Any]) -> Fork:
    """Return the fork of a block by geth's rule: each key stands for itself.

    config: with its keys in lower case, because Go reads them so.
    """
    number, time = _number(context["number"]), _number(context["timestamp"])
    fork = LADDER["frontier"]
    for key, name in BLOCK_FORKS.items():
        start = config.get(key.lower())
        if start is not None and _number(start) <= number:
            fork = LADDER[name]
    if fork.name == "constantinople" and config.get("petersburgblock") is None:
        fork = LADDER["petersburg"]
    total_difficulty = config.get("terminaltotaldifficulty")
    if total_difficulty is None or _number(total_difficulty) != 0:
        return fork
    fork = LADDER["paris"]
    keys = TIME_FORKS | {f"{name}Time": name for name in BLOB_PARAMETER_FORKS}
    for key, name in keys.items():
        start = config.get(key.lower())
        if start is not None and _number(start) <= time:
            fork = _with_blobs(name, config.get("blobschedule") or {})
    return fork


def _with_blobs(name: str, schedules: Mapping[str, Any]) -> Fork:
    fork = LADDER.get(name) or replace(LADDER["osaka"], name=name)
    if name in BLOB_PARAMETER_FORKS:
        fork = replace(fork, blob_parameters=BLOB_PARAMETER_FORKS[name])
    schedule = schedules.get(name)
    if schedule is None:
        return fork
    keys = ("target", "max", "baseFeeUpdateFraction")
    parameters = BlobParameters(*(_number(schedule[key]) for key in keys))
    return replace(fork, blob_parameters=parameters)


def _header(
    genesis: Mapping[str, Any], context: Mapping[str, Any], fork: Fork
) -> Header:
    mix_hash = genesis["mixHash"] if fork.is_merged else None
    base_fee = _number(context.get("baseFeePerGas")) if fork.has_base_fee else None
    has_blobs = fork.has_blobs
    return Header(
        parent_hash=ZERO_HASH,
        uncles_hash=ZERO_HASH,
        coinbase=_data(context["miner"]),
        state_root=ZERO_HASH,
        transactions_root=ZERO_HASH,
        receipts_root=ZERO_HASH,
        logs_bloom=bytes(256),
        difficulty=_number(context["difficulty"]),
        number=_number(context["number"]),
        gas_limit=_number(context["gasLimit"]),
        gas_used=0,
        timestamp=_number(context["timestamp"]),
        extra_data=b"",
        mix_hash=_data(mix_hash) if mix_hash else ZERO_HASH,
        nonce=bytes(8),
        base_fee_per_gas=base_fee,
        withdrawals_root=ZERO_HASH if fork.has_withdrawals else None,
        blob_gas_used=0 if has_blobs else None,
        excess_blob_gas=_number(genesis.get("excessBlobGas")) if has_blobs else None,
        parent_beacon_root=ZERO_HASH if fork.has_parent_beacon_root else None,
        requests_hash=ZERO_HASH if fork.has_requests else None,
        block_access_list_hash=ZERO_HASH if fork.has_block_access_list else None,
        slot_number=0 if fork.has_block_access_list else None,
    )
