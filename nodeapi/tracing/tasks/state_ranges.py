"""Tasks of `debug_` methods that read parts of a state, or execute a block for it.

Source: go-ethereum eth/api_debug.go; eth/tracers/api.go, IntermediateRoots
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, LiteralString

import orjson
from eth_typing import Address

from evm.execution import BlockExecution
from evm.headers import ZERO_HASH
from evm.signatures import keccak
from evm.state_roots import StateRoots
from evm.state_trie import slot_key
from evm.world import World
from nodeapi.chain.branches import Branches
from nodeapi.chain.listed_state import replay_before
from nodeapi.chain.replay import IsGenesis, NotTraceable, Origin, Replay, find_origin
from nodeapi.chain.state_reader import CachedState
from nodeapi.chain.trie_at import TooManyChanges, trie_at
from nodeapi.errors.blocks import HistoryPruned
from nodeapi.proofs.unknown import UnknownNodes
from nodeapi.tracing.context import (
    SERVER_ERROR,
    TaskFailed,
    TaskResult,
    TransientFailure,
)
from nodeapi.tracing.execution import snapshot
from nodeapi.tracing.proved_tries import keys_of, proved_tries
from nodeapi.tracing.tasks.proofs import MAX_CHANGES, WINDOW_EXCEEDED

if TYPE_CHECKING:
    from nodeapi.tracing.context import Task, TaskContext

_MODIFIED: LiteralString = """
    WITH later AS (
        SELECT DISTINCT ON (address) address, nonce, balance, code_hash, storage_root
        FROM nodeapi_accountversion
        WHERE network_id = %(network)b AND block_number > %(first)b
            AND block_number <= %(last)b
        ORDER BY address, block_number DESC
    )
    SELECT later.address FROM later LEFT JOIN LATERAL (
        SELECT nonce, balance, code_hash, storage_root
        FROM nodeapi_accountversion AS version
        WHERE network_id = %(network)b AND version.address = later.address
            AND block_number <= %(first)b
        ORDER BY block_number DESC LIMIT 1
    ) AS earlier ON true
    WHERE later.nonce IS NOT NULL AND (
        later.nonce, later.balance, later.code_hash, later.storage_root
    ) IS DISTINCT FROM (
        earlier.nonce, earlier.balance, earlier.code_hash, earlier.storage_root
    )
"""


def storage_range(context: TaskContext, arguments: Any) -> TaskResult:
    """Return the slots of an account before a transaction of the job's block.

    arguments: `index` of the transaction, `address`, `start`, `count`; see
    debug_storageRangeAt.

    Raises: TaskFailed.
    """
    address = Address(bytes.fromhex(arguments["address"]))
    with snapshot(context.connection):
        origin = _origin(context, "no transaction in genesis")
        count, index = len(origin.block.transactions), arguments["index"]
        if not 0 <= index < max(count, 1):
            raise TaskFailed(
                SERVER_ERROR,
                f"transaction index {index} out of range for block "
                f"0x{context.block_hash.hex()}",
            )
        replay = replay_before(context.connection, context.network_id, origin, index)
        values = _storage(replay, address)
    start = bytes.fromhex(arguments["start"])
    result = _range(values, start, max(arguments["count"], 0))
    return TaskResult(result, replay.gas_used)


def intermediate_roots(context: TaskContext, arguments: Any) -> TaskResult:
    """Return the state root after each transaction of the job's block.

    arguments: `nodes`, see `proved_tries`.

    Raises: TaskFailed, UnknownNodes.
    """
    connection = context.connection
    with snapshot(connection):
        origin = _origin(context, "genesis is not traceable")
        parent_hash = origin.block.header.parent_hash
        try:
            parent = context.state_after(parent_hash)
            tries = proved_tries(
                context, parent, arguments, max_changes=MAX_CHANGES
            ) or trie_at(
                connection, context.network_id, parent_hash, max_changes=MAX_CHANGES
            )
        except TooManyChanges as error:
            raise TransientFailure(*WINDOW_EXCEEDED) from error
        world, execution = _begun(origin)
        roots = StateRoots(
            world,
            origin.state,
            tries,
            clears_empty_accounts=origin.fork.clears_empty_accounts,
        )
        found = []
        for transaction in origin.block.transactions:
            execution.apply_transaction(transaction)
            try:
                found.append(f"0x{roots().hex()}")
            except UnknownNodes as error:
                raise _all_nodes(error, origin, execution, world) from None
    return TaskResult(orjson.dumps(found or None), execution.gas_used)


def _all_nodes(
    error: UnknownNodes, origin: Origin, execution: BlockExecution, world: World
) -> UnknownNodes:
    """Return the error with the accounts and slots of all transactions of a block."""
    for transaction in origin.block.transactions[len(execution.receipts) :]:
        execution.apply_transaction(transaction)
    changes = world.changes(clears_empty_accounts=origin.fork.clears_empty_accounts)
    keys = keys_of(changes)
    keys.update(error.keys)
    return UnknownNodes(keys)


def modified_accounts(context: TaskContext, arguments: Any) -> bytes:
    """Return the accounts that differ after two blocks and exist after the later one.

    The job's block is the later one. arguments: `start`, hash of the earlier one.

    Raises: TransientFailure if one of them is not canonical; HistoryPruned if one is
        below the checkpoint.
    """
    with snapshot(context.connection):
        branches = Branches(context.connection, context.network_id)
        start = branches.find(bytes.fromhex(arguments["start"]))
        end = branches.find(context.block_hash)
        if start is None or end is None:
            raise TransientFailure(SERVER_ERROR, "header for hash not found")
        if not start.is_canonical or not end.is_canonical:
            raise TransientFailure(SERVER_ERROR, "hash is not currently canonical")
        checkpoint = context.checkpoint
        if checkpoint is not None and start.header.number < checkpoint:
            raise HistoryPruned(
                checkpoint
            )  # rows of the checkpoint's block are no changes
        rows = context.connection.execute(
            _MODIFIED,
            {
                "network": context.network_id,
                "first": start.header.number,
                "last": end.header.number,
            },
            binary=True,
        ).fetchall()
    addresses = sorted((address for (address,) in rows), key=keccak)
    return orjson.dumps([f"0x{address.hex()}" for address in addresses] or None)


def _origin(context: TaskContext, genesis: str) -> Origin:
    """Return the job's block for its execution. genesis: the error text for block 0."""
    try:
        return find_origin(
            context.connection, context.network_id, context.config, context.block_hash
        )
    except IsGenesis as error:
        raise TransientFailure(SERVER_ERROR, genesis) from error
    except NotTraceable as error:
        raise TransientFailure(SERVER_ERROR, str(error)) from error


def _begun(origin: Origin) -> tuple[World, BlockExecution]:
    """Begin the execution of a block, up to its first transaction."""
    world = World(origin.state)
    execution = BlockExecution(
        origin.block.header,
        origin.fork,
        origin.config,
        world,
        origin.ancestor_hashes,
        lambda: ZERO_HASH,  # only receipts contain it, which are not used here
    )
    execution.begin()
    return world, execution


def _storage(replay: Replay, address: Address) -> dict[int, int]:
    """Return the slots of an account that are not zero, with their values."""
    state, parent, fork = replay.state_below, replay.origin.state, replay.origin.fork
    slots = list(state.live_slots(address))
    if isinstance(parent, CachedState):
        parent.fetch((), [(address, slot) for slot in slots])
    values = {slot: state.storage(address, slot) for slot in slots}
    changes = replay.world.changes(clears_empty_accounts=fork.clears_empty_accounts)
    values.update(changes.storage.get(address, {}))
    return {slot: value for slot, value in values.items() if value}


def _range(values: dict[int, int], start: bytes, count: int) -> bytes:
    """Return slots in the order of their hashes, as JSON.

    start: least hash, or its beginning. count: maximum number of slots.
    """
    if not values:
        return b'{"storage":null,"nextKey":null}'
    found = sorted((slot_key(slot), slot) for slot in values)
    found = [(key, slot) for key, slot in found if key >= start]
    storage = {
        f"0x{key.hex()}": {
            "key": f"0x{slot:064x}",
            "value": f"0x{values[slot]:064x}",
        }
        for key, slot in found[:count]
    }
    following = f"0x{found[count][0].hex()}" if count < len(found) else None
    return orjson.dumps({"storage": storage, "nextKey": following})


TASKS: dict[str, Task] = {
    "storage_range": storage_range,
    "intermediate_roots": intermediate_roots,
    "modified_accounts": modified_accounts,
}
