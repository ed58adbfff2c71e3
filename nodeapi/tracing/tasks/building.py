"""The task that builds a block from transactions, without importing it.

Source: go-ethereum v1.17.2, eth/catalyst/api_testing.go, miner/worker.go,
beacon/engine/types.go
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import orjson
from eth_typing import Address, Hash32
from eth_utils.exceptions import ValidationError

from evm.blocks import Withdrawal
from evm.building import (
    Attributes,
    BlockBuilding,
    Built,
    InvalidAttributes,
    TransactionRefused,
    draft_header,
)
from evm.chain_config import InvalidChainConfig
from evm.errors import InvalidBlock
from evm.intrinsic import TRANSACTION_GAS
from evm.state_roots import StateRoots
from evm.transactions import BLOB, Transaction, decode_transaction
from evm.world import World
from nodeapi.chain.trie_at import TooManyChanges, trie_at
from nodeapi.mempool.alive import alive
from nodeapi.sending.decoding import decode_submission
from nodeapi.sending.rules import InvalidTransaction, check_signature
from nodeapi.tracing.context import SERVER_ERROR, TaskFailed, TaskResult
from nodeapi.tracing.execution import snapshot

if TYPE_CHECKING:
    from nodeapi.tracing.context import Task, TaskContext

MIN_TIP = 1_000_000
"""Wei per gas that a pooled transaction has to pay the fee recipient: geth's default."""

_PENDING = f"""
    SELECT sender, raw FROM ({alive("%(network)s")}) t
    WHERE is_pending AND type <> {BLOB} ORDER BY at, id
"""


def build_block(context: TaskContext, arguments: dict[str, Any]) -> TaskResult:
    """Build a block on the job's block, and return it as the engine API does.

    arguments: `timestamp`, `fee_recipient`, `mix_hash`, `withdrawals` (null, or lists of
        index, validator, address and Gwei), `beacon_root` (null or data), `extra_data`,
        and `transactions` (raw ones, or null for those of the local pool).

    Raises: TaskFailed.
    """
    try:
        with snapshot(context.connection):
            building = _begin(context, _attributes(arguments))
            _fill(context, building, arguments["transactions"])
            built = building.finish()
    except (InvalidAttributes, InvalidChainConfig, TransactionRefused) as error:
        raise TaskFailed(SERVER_ERROR, str(error)) from error
    except InvalidBlock as error:
        raise TaskFailed(SERVER_ERROR, error.summary) from error
    except TooManyChanges:
        raise TaskFailed(SERVER_ERROR, "missing trie node") from None
    return TaskResult(orjson.dumps(envelope(built)), built.outcome.gas_used)


def _begin(context: TaskContext, attributes: Attributes) -> BlockBuilding:
    parent = context.state
    fork = parent.child_fork(parent.header.number + 1, attributes.timestamp)
    header = draft_header(parent.header, fork, attributes)
    world = World(parent.state)
    trie = trie_at(context.connection, context.network_id, context.block_hash)
    roots = StateRoots(
        world,
        parent.state,
        trie,
        clears_empty_accounts=fork.clears_empty_accounts,
    )
    ancestors = (parent.header.hash, *parent.ancestor_hashes)[:256]
    return BlockBuilding(
        header, fork, context.config, world, ancestors, roots, attributes.withdrawals
    )


def _fill(
    context: TaskContext, building: BlockBuilding, given: list[str] | None
) -> None:
    """Add the given transactions, all of which have to be valid, or pooled ones."""
    if given is None:
        _fill_from_pool(context, building)
        return
    chain_id = context.config.chain_id
    for transaction in list(_decoded(given)):
        if transaction.type == BLOB:
            raise TransactionRefused("blob transactions are not built into blocks")
        try:
            check_signature(transaction, chain_id)
        except InvalidTransaction as error:
            text = str(error).removeprefix("invalid sender: ")
            raise TransactionRefused(text) from error
        building.add(transaction)


def _decoded(given: Iterable[str]) -> Iterator[Transaction]:
    for index, text in enumerate(given):
        try:
            yield decode_submission(bytes.fromhex(text[2:])).transaction
        except (ValueError, ValidationError) as error:
            raise TransactionRefused(f"invalid transaction {index}: {error}") from error


def _fill_from_pool(context: TaskContext, building: BlockBuilding) -> None:
    """Add pooled transactions, those with the highest tips first.

    A sender's transactions are in the order of their nonces. If one of them is rejected,
    the later ones are left out.
    """
    senders: dict[bytes, list[Transaction]] = {}
    rows = context.connection.execute(_PENDING, {"network": context.network_id})
    for sender, raw in rows:
        senders.setdefault(sender, []).append(decode_transaction(raw))
    heads: list[tuple[int, int, list[Transaction]]] = []
    for order, own in enumerate(senders.values()):
        own.sort(key=lambda transaction: -transaction.nonce)
        _push(building, heads, order, own)
    while heads and building.gas_left >= TRANSACTION_GAS:
        _, order, own = heapq.heappop(heads)
        transaction = own.pop()
        if transaction.gas > building.gas_left:
            continue
        try:
            building.add(transaction)
        except TransactionRefused as error:
            if not error.is_outdated:
                continue
        _push(building, heads, order, own)


def _push(
    building: BlockBuilding,
    heads: list[tuple[int, int, list[Transaction]]],
    order: int,
    own: list[Transaction],
) -> None:
    """Add a sender's transactions to the heap, if the first one pays enough.

    own: by nonce, the lowest one last.
    """
    if own and (tip := building.tip_of(own[-1])) >= MIN_TIP:
        heapq.heappush(heads, (-tip, order, own))


# JSON


def _attributes(arguments: dict[str, Any]) -> Attributes:
    beacon_root, withdrawals = arguments["beacon_root"], arguments["withdrawals"]
    return Attributes(
        timestamp=arguments["timestamp"],
        fee_recipient=Address(_bytes(arguments["fee_recipient"])),
        mix_hash=Hash32(_bytes(arguments["mix_hash"])),
        withdrawals=None
        if withdrawals is None
        else [
            Withdrawal(index, validator, Address(_bytes(address)), amount)
            for index, validator, address, amount in withdrawals
        ],
        beacon_root=None if beacon_root is None else Hash32(_bytes(beacon_root)),
        extra_data=_bytes(arguments["extra_data"]),
    )


def envelope(built: Built) -> dict[str, Any]:
    """Return a block as the engine API's payload, with its value and requests."""
    header, block = built.block.header, built.block
    withdrawals = block.withdrawals
    payload = {
        "parentHash": _data(header.parent_hash),
        "feeRecipient": _data(header.coinbase),
        "stateRoot": _data(header.state_root),
        "receiptsRoot": _data(header.receipts_root),
        "logsBloom": _data(header.logs_bloom),
        "prevRandao": _data(header.mix_hash),
        "blockNumber": hex(header.number),
        "gasLimit": hex(header.gas_limit),
        "gasUsed": hex(header.gas_used),
        "timestamp": hex(header.timestamp),
        "extraData": _data(header.extra_data),
        "baseFeePerGas": _quantity(header.base_fee_per_gas),
        "blockHash": _data(header.hash),
        "transactions": [_data(each.raw) for each in block.transactions],
        "withdrawals": None
        if withdrawals is None
        else [_withdrawal(each) for each in withdrawals],
        "blobGasUsed": _quantity(header.blob_gas_used),
        "excessBlobGas": _quantity(header.excess_blob_gas),
    }
    requests = built.outcome.requests
    return {
        "executionPayload": payload,
        "blockValue": hex(built.fees),
        "blobsBundle": {"commitments": [], "proofs": [], "blobs": []},
        "executionRequests": None if requests is None else list(map(_data, requests)),
        "shouldOverrideBuilder": False,
    }


def _withdrawal(withdrawal: Withdrawal) -> dict[str, str]:
    return {
        "index": hex(withdrawal.index),
        "validatorIndex": hex(withdrawal.validator_index),
        "address": _data(withdrawal.address),
        "amount": hex(withdrawal.amount_gwei),
    }


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def _data(value: bytes) -> str:
    return "0x" + value.hex()


def _quantity(value: int | None) -> str | None:
    return None if value is None else hex(value)


TASKS: dict[str, Task] = {"build_block": build_block}
