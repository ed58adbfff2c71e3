"""Fixtures with one transaction: GeneralStateTests and EEST's `state_test`.

Every entry of `post` is a test of its own: a fork, and one choice each of the
transaction's data, gas limits and values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eth_typing import Address, Hash32
from eth_utils.exceptions import ValidationError

from evm import rlp
from evm.chain_config import ChainConfig
from evm.changes import Changes
from evm.errors import InvalidBlock
from evm.execution import BlockExecution
from evm.headers import EMPTY_TRIE_ROOT, EMPTY_UNCLES_HASH, ZERO_NONCE, Header
from evm.receipts import Log
from evm.rlp import RlpError
from evm.rules.fork import Fork
from evm.signatures import keccak
from evm.signing import TransactionFields, sign_transaction
from evm.transactions import (
    ACCESS_LIST,
    BLOB,
    DYNAMIC_FEE,
    LEGACY,
    SET_CODE,
    Authorization,
    Transaction,
    decode_transaction,
)
from evm.trie import EMPTY_ROOT
from evm.world import World
from nodeapi.chain.genesis import genesis_state
from nodeapi.chain.memory_state import MemoryState
from tests.consensus.accounts import compare_accounts
from tests.consensus.networks import chain_config
from tests.consensus.values import data, number
from tests.consensus.verdict import Mismatch, UnknownFormat, expect

DEFAULT_BASE_FEE = 10
"""Wei, from London on, where the environment has none; geth's runner does the same."""

BLOCK_HASHES = 256
"""Ancestors that BLOCKHASH knows."""


def state_subtests(fixture: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Yield label, fork and index of each entry of `post`."""
    for fork, entries in fixture["post"].items():
        for index, entry in enumerate(entries):
            choice = entry["indexes"]
            label = f"[{fork} d{choice['data']} g{choice['gas']} v{choice['value']}]"
            yield label, fork, index


def run_state_test(fixture: Mapping[str, Any], network: str, index: int) -> None:
    """Execute the transaction of one entry of `post`, and compare state and logs.

    Raises: Mismatch, UnknownNetwork, UnknownFormat.
    """
    config = chain_config(network, fixture.get("config"))
    expected = fixture["post"][network][index]
    state = MemoryState()
    state.adopt(*genesis_state({"alloc": fixture["pre"]}))
    header, fork = _block(fixture["env"], config)
    try:
        transaction = _transaction(fixture["transaction"], expected)
        changes, logs = _execute(transaction, header, fork, config, state)
    except (InvalidBlock, RlpError, ValidationError) as error:
        if not expected.get("expectException"):
            raise Mismatch(f"the transaction was rejected: {error}") from error
        changes, logs = Changes(), []
    else:
        if expected.get("expectException"):
            exception = expected["expectException"]
            raise Mismatch(f"the transaction was accepted; expected {exception}")
    state.apply(changes)
    if expected.get("state"):
        compare_accounts(expected["state"], state)
    expect("post-state root", data(expected["hash"]), state.root or EMPTY_ROOT)
    expect("logs hash", data(expected["logs"]), _logs_hash(logs))


def _block(env: Mapping[str, Any], config: ChainConfig) -> tuple[Header, Fork]:
    """Return the header that the transaction is executed under, and its fork."""
    place, time = number(env["currentNumber"]), number(env["currentTimestamp"])
    fork = config.fork_at(place, time, config.is_merged(0))
    difficulty = number(env.get("currentDifficulty") or 0)
    base_fee = None
    if fork.has_base_fee:
        base_fee = number(env.get("currentBaseFee") or DEFAULT_BASE_FEE)
    random = env.get("currentRandom")
    # Older fixtures state what the opcode 0x44 returns as a difficulty in every fork.
    mix = difficulty if random is None else number(random)
    empty = Hash32(bytes(32))
    header = Header(
        parent_hash=empty,
        uncles_hash=EMPTY_UNCLES_HASH,
        coinbase=Address(data(env["currentCoinbase"])),
        state_root=empty,
        transactions_root=EMPTY_TRIE_ROOT,
        receipts_root=EMPTY_TRIE_ROOT,
        logs_bloom=bytes(256),
        difficulty=0 if fork.is_merged else difficulty,
        number=place,
        gas_limit=number(env["currentGasLimit"]),
        gas_used=0,
        timestamp=time,
        extra_data=b"",
        mix_hash=Hash32(mix.to_bytes(32, "big")),
        nonce=ZERO_NONCE,
        base_fee_per_gas=base_fee,
        withdrawals_root=EMPTY_TRIE_ROOT if fork.has_blobs else None,
        blob_gas_used=0 if fork.has_blobs else None,
        excess_blob_gas=number(env.get("currentExcessBlobGas") or 0)
        if fork.has_blobs
        else None,
    )
    return header, fork


def _execute(
    transaction: Transaction,
    header: Header,
    fork: Fork,
    config: ChainConfig,
    state: MemoryState,
) -> tuple[Changes, list[Log]]:
    """Execute a transaction as the only one of a block without system calls.

    Raises: InvalidBlock.
    """
    blobs = fork.blob_parameters
    if blobs is not None and transaction.blob_gas > blobs.max_gas:
        # In a block it is the header's blob gas that exceeds the limit.
        reason = f"{transaction.blob_gas} exceeds {blobs.max_gas}"
        raise InvalidBlock(header, "blob gas used", reason)
    world = World(state)
    execution = BlockExecution(
        header, fork, config, world, _block_hashes(header.number), lambda: EMPTY_ROOT
    )
    receipt = execution.apply_transaction(transaction)
    changes = world.changes(clears_empty_accounts=fork.clears_empty_accounts)
    return changes, receipt.logs


def _block_hashes(block_number: int) -> list[Hash32]:
    """Return the ancestors' hashes that state tests assume: keccak of the number's digits.

    Source: ethereum/tests, `previousHash` of the environment; geth's `vmTestBlockHash`
    """
    first = max(0, block_number - BLOCK_HASHES)
    numbers = range(block_number - 1, first - 1, -1)
    return [Hash32(keccak(str(place).encode())) for place in numbers]


def _logs_hash(logs: list[Log]) -> bytes:
    return keccak(
        rlp.encode([[log.address, list(log.topics), log.data] for log in logs])
    )


# The transaction


def _transaction(fields: Mapping[str, Any], post: Mapping[str, Any]) -> Transaction:
    """Return the transaction of an entry: its `txbytes`, or signed here.

    Raises: RlpError, UnknownFormat.
    """
    if post.get("txbytes"):
        return decode_transaction(data(post["txbytes"]))
    if not fields.get("secretKey"):
        raise UnknownFormat("state test with neither txbytes nor secretKey")
    return sign_transaction(
        _fields(fields, post["indexes"]), data(fields["secretKey"]).rjust(32, b"\0")
    )


def _fields(fields: Mapping[str, Any], choice: Mapping[str, int]) -> TransactionFields:
    accesses = (fields.get("accessLists") or [None] * (choice["data"] + 1))[
        choice["data"]
    ]
    chosen: TransactionFields = {
        "type": LEGACY,
        "nonce": number(fields["nonce"]),
        "gas": number(fields["gasLimit"][choice["gas"]]),
        "to": Address(data(fields.get("to") or "")),
        "value": number(fields["value"][choice["value"]]),
        "data": data(fields["data"][choice["data"]]),
    }
    if accesses is not None:
        chosen["type"] = ACCESS_LIST
        chosen["access_list"] = [
            (
                Address(data(entry["address"])),
                [number(slot) for slot in entry["storageKeys"]],
            )
            for entry in accesses
        ]
    if fields.get("maxFeePerGas") is None:
        chosen["gas_price"] = number(fields["gasPrice"])
    else:
        chosen["type"] = DYNAMIC_FEE
        chosen["max_fee_per_gas"] = number(fields["maxFeePerGas"])
        chosen["max_priority_fee_per_gas"] = number(fields["maxPriorityFeePerGas"])
    if fields.get("maxFeePerBlobGas") is not None:
        chosen["type"] = BLOB
        chosen["max_fee_per_blob_gas"] = number(fields["maxFeePerBlobGas"])
        chosen["blob_versioned_hashes"] = [
            Hash32(data(name)) for name in fields.get("blobVersionedHashes") or ()
        ]
    if fields.get("authorizationList") is not None:
        chosen["type"] = SET_CODE
        chosen["authorization_list"] = list(
            map(_authorization, fields["authorizationList"])
        )
    if chosen["type"] != LEGACY:
        chosen["chain_id"] = number(fields.get("chainId") or 1)
    return chosen


def _authorization(entry: Mapping[str, Any]) -> Authorization:
    return Authorization(
        chain_id=number(entry["chainId"]),
        address=Address(data(entry["address"])),
        nonce=number(entry["nonce"]),
        y_parity=number(entry["yParity"] if "yParity" in entry else entry["v"]),
        r=number(entry["r"]),
        s=number(entry["s"]),
    )
