"""Tasks for transactions in no block: building a block of them, and verifying proofs.

Source: go-ethereum v1.17.10, eth/catalyst/api_testing.go, miner/worker.go,
beacon/engine/types.go
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
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
from evm.hexadecimal import from_hex, quantity_or_none, to_hex
from evm.kzg import cell_proofs
from evm.state_roots import StateRoots
from evm.transactions import BLOB, Transaction, decode_transaction
from evm.world import World
from nodeapi.arguments.calls import encode_withdrawal
from nodeapi.chain.trie_at import TooManyChanges, trie_at
from nodeapi.mempool.alive import alive
from nodeapi.sending.decoding import Sidecar, Submission, decode_submission
from nodeapi.sending.proofs import verify_proofs
from nodeapi.sending.rules import InvalidTransaction
from nodeapi.tracing.context import SERVER_ERROR, TaskFailed, TaskResult
from nodeapi.tracing.execution import snapshot
from nodeapi.tracing.proved_tries import proved_tries

if TYPE_CHECKING:
    from nodeapi.tracing.context import Task, TaskContext


MIN_TIP = 1_000_000
"""Wei per gas that a pooled transaction has to pay the fee recipient: geth's default."""

_PENDING = f"""
    SELECT sender, raw FROM ({alive("%(network)s")}) t
    WHERE is_pending AND (type <> {BLOB} OR octet_length(network_form) > 0)
    ORDER BY at, id
"""
"""Former versions stored blob transactions without their sidecars. No block can have them."""
_NETWORK_FORM = """
    SELECT network_form FROM nodeapi_pooledtransaction
    WHERE network_id = %(network)s AND hash = %(hash)s
"""


_Head = tuple[int, bool, int, list[Transaction]]
"""A sender's next transaction: its tip times -1, whether it has blobs, the order of its
arrival, and the sender's transactions."""


def build_block(context: TaskContext, arguments: dict[str, Any]) -> TaskResult:
    """Build a block on the job's block, and return it as the engine API does.

    arguments: `timestamp`, `fee_recipient`, `mix_hash`, `withdrawals` (null, or lists of
        index, validator, address and Gwei), `beacon_root` (null or data), `slot_number`
        and `gas_limit` (null or numbers), `extra_data`, and `transactions` (raw ones, or
        null for those of the local pool).

        `nodes`, see `proved_tries`.

    Raises: TaskFailed, UnknownNodes.
    """
    try:
        with snapshot(context.connection):
            building = _begin(context, arguments)
            sidecars = _fill(context, building, arguments["transactions"])
            built = building.finish()
    except (InvalidAttributes, InvalidChainConfig, TransactionRefused) as error:
        raise TaskFailed(SERVER_ERROR, str(error)) from error
    except InvalidBlock as error:
        raise TaskFailed(SERVER_ERROR, error.reason) from error
    except TooManyChanges:
        raise TaskFailed(SERVER_ERROR, "missing trie node") from None
    return TaskResult(orjson.dumps(envelope(built, sidecars)), built.outcome.gas_used)


def _begin(context: TaskContext, arguments: dict[str, Any]) -> BlockBuilding:
    attributes, parent = _attributes(arguments), context.state
    fork = parent.child_fork(parent.header.number + 1, attributes.timestamp)
    header = draft_header(parent.header, fork, attributes)
    world = World(parent.state)
    trie = proved_tries(context, parent, arguments) or trie_at(
        context.connection, context.network_id, context.block_hash
    )
    roots = StateRoots(
        world,
        parent.state,
        trie,
        clears_empty_accounts=fork.clears_empty_accounts,
    )
    ancestors = (parent.header.hash, *islice(parent.ancestor_hashes, 255))
    return BlockBuilding(
        header, fork, context.config, world, ancestors, roots, attributes.withdrawals
    )


def _fill(
    context: TaskContext, building: BlockBuilding, given: list[str] | None
) -> list[Sidecar]:
    """Add the given transactions, all of which have to be valid, or pooled ones.

    Return the sidecars of the block's blob transactions.
    """
    if given is None:
        return _fill_from_pool(context, building)
    sidecars = []
    for submission in list(_decoded(given)):
        transaction = submission.transaction
        if submission.sidecar is not None:
            sidecars.append(submission.sidecar)
        elif transaction.type == BLOB:
            # geth crashes.
            raise TransactionRefused("missing sidecar in blob transaction")
        building.add(transaction)
    return sidecars


def _decoded(given: Iterable[str]) -> Iterator[Submission]:
    for index, text in enumerate(given):
        try:
            yield decode_submission(bytes.fromhex(text[2:]))
        except (ValueError, ValidationError) as error:
            raise TransactionRefused(f"invalid transaction {index}: {error}") from error


def _fill_from_pool(context: TaskContext, building: BlockBuilding) -> list[Sidecar]:
    """Add pooled transactions, those with the highest tips first.

    A sender's transactions are in the order of their nonces. If one of them is rejected,
    the later ones are left out. Return the sidecars of the blob transactions.
    """
    sidecars = []
    senders: dict[bytes, list[Transaction]] = {}
    rows = context.connection.execute(_PENDING, {"network": context.network_id})
    for sender, raw in rows:
        senders.setdefault(sender, []).append(decode_transaction(raw))
    heads: list[_Head] = []
    for order, own in enumerate(senders.values()):
        own.sort(key=lambda transaction: -transaction.nonce)
        _push(building, heads, order, own)
    while heads and building.gas_left >= building.fork.prices.transaction:
        *_, order, own = heapq.heappop(heads)
        transaction = own.pop()
        if transaction.gas > building.gas_left:
            continue
        try:
            building.add(transaction)
        except TransactionRefused as error:
            if not error.is_outdated:
                continue
        else:
            if transaction.type == BLOB:
                sidecars.append(_pooled_sidecar(context, building, transaction))
        _push(building, heads, order, own)
    return sidecars


def _pooled_sidecar(
    context: TaskContext, building: BlockBuilding, transaction: Transaction
) -> Sidecar:
    """Return the sidecar of a pooled transaction, in the version of the block's fork."""
    values = {"network": context.network_id, "hash": transaction.hash}
    rows = context.connection.execute(_NETWORK_FORM, values)
    ((network_form,),) = rows.fetchall()
    sidecar = decode_submission(network_form).sidecar
    assert sidecar is not None
    if sidecar.version == 0 and building.fork.has_cell_proofs:
        proofs = [proof for blob in sidecar.blobs for proof in cell_proofs(blob)]
        return replace(sidecar, version=1, proofs=proofs)
    return sidecar


def _push(
    building: BlockBuilding,
    heads: list[_Head],
    order: int,
    own: list[Transaction],
) -> None:
    """Add a sender's transactions to the heap, if the first one pays enough.

    own: by nonce, the lowest one last.
    """
    if own and (tip := building.tip_of(own[-1])) >= MIN_TIP:
        heapq.heappush(heads, (-tip, own[-1].type == BLOB, order, own))


# JSON


def _attributes(arguments: dict[str, Any]) -> Attributes:
    beacon_root, withdrawals = arguments["beacon_root"], arguments["withdrawals"]
    return Attributes(
        timestamp=arguments["timestamp"],
        fee_recipient=Address(from_hex(arguments["fee_recipient"])),
        mix_hash=Hash32(from_hex(arguments["mix_hash"])),
        withdrawals=None
        if withdrawals is None
        else [
            Withdrawal(index, validator, Address(from_hex(address)), amount)
            for index, validator, address, amount in withdrawals
        ],
        beacon_root=None if beacon_root is None else Hash32(from_hex(beacon_root)),
        slot_number=arguments["slot_number"],
        gas_limit=arguments["gas_limit"],
        extra_data=from_hex(arguments["extra_data"]),
    )


def envelope(built: Built, sidecars: Sequence[Sidecar]) -> dict[str, Any]:
    """Return a block as the engine API's payload, with its value, blobs and requests."""
    header, block = built.block.header, built.block
    withdrawals = block.withdrawals
    payload = {
        "parentHash": to_hex(header.parent_hash),
        "feeRecipient": to_hex(header.coinbase),
        "stateRoot": to_hex(header.state_root),
        "receiptsRoot": to_hex(header.receipts_root),
        "logsBloom": to_hex(header.logs_bloom),
        "prevRandao": to_hex(header.mix_hash),
        "blockNumber": hex(header.number),
        "gasLimit": hex(header.gas_limit),
        "gasUsed": hex(header.gas_used),
        "timestamp": hex(header.timestamp),
        "extraData": to_hex(header.extra_data),
        "baseFeePerGas": quantity_or_none(header.base_fee_per_gas),
        "blockHash": to_hex(header.hash),
        "transactions": [to_hex(each.raw) for each in block.transactions],
        "withdrawals": None
        if withdrawals is None
        else [encode_withdrawal(each) for each in withdrawals],
        "blobGasUsed": quantity_or_none(header.blob_gas_used),
        "excessBlobGas": quantity_or_none(header.excess_blob_gas),
    }
    if built.outcome.access_list is not None:
        payload["blockAccessList"] = to_hex(built.outcome.access_list.raw)
    if header.slot_number is not None:
        payload["slotNumber"] = hex(header.slot_number)
    requests = built.outcome.requests
    return {
        "executionPayload": payload,
        "blockValue": hex(built.fees),
        "blobsBundle": {
            "commitments": [to_hex(x) for each in sidecars for x in each.commitments],
            "proofs": [to_hex(x) for each in sidecars for x in each.proofs],
            "blobs": [to_hex(x) for each in sidecars for x in each.blobs],
        },
        "executionRequests": None if requests is None else list(map(to_hex, requests)),
        "shouldOverrideBuilder": False,
    }


def verify_sidecar(context: TaskContext, arguments: dict[str, Any]) -> bytes:
    """Verify the proofs of a blob transaction that follows all other rules.

    arguments: `raw`, the transaction in its network form; `has_cell_proofs`, see
        `nodeapi.sending.proofs`.

    Raises: TaskFailed with geth's text.
    """
    submission = decode_submission(bytes.fromhex(arguments["raw"][2:]))
    assert submission.sidecar is not None
    try:
        verify_proofs(submission.sidecar, has_cell_proofs=arguments["has_cell_proofs"])
    except InvalidTransaction as error:
        raise TaskFailed(SERVER_ERROR, str(error)) from None
    return b"null"


TASKS: dict[str, Task] = {"build_block": build_block, "verify_sidecar": verify_sidecar}
