"""Tasks that need the tries of a block: proofs and execution witnesses.

Source: go-ethereum core/stateless/encoding.go, core/types/gen_header_json.go; reth
crates/rpc/rpc/src/debug.rs `ExecutionWitness`
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import orjson
from eth_typing import Address

from evm.headers import Header
from evm.hexadecimal import quantity_or_none, to_hex, to_hex_or_none
from evm.trie import NodeCache
from nodeapi.chain.branches import Branches
from nodeapi.chain.replay import NotTraceable, find_origin
from nodeapi.chain.trie_at import NODES_CACHED, Rewinding, TooManyChanges, rewind
from nodeapi.chain.witness import Witness, build_witness
from nodeapi.results.proofs import MAX_CHANGES as MAX_CHANGES
from nodeapi.results.proofs import proof_document
from nodeapi.schemas.state import OBJECT_HEADERS, RLP_HEADERS
from nodeapi.tracing.context import SERVER_ERROR, TaskResult, TransientFailure
from nodeapi.tracing.execution import snapshot
from nodeapi.tracing.proved_tries import proved_tries

if TYPE_CHECKING:
    import psycopg

    from nodeapi.tracing.context import Task, TaskContext


_NODES_KEPT = 100_000
"""Maximum number of nodes of former blocks that a process keeps, 60 MB."""

WINDOW_EXCEEDED = -32602, "distance to target block exceeds maximum proof window"
"""Code and text of `nodeapi.errors.arguments.ProofWindowExceeded`."""


class RecentTries:
    """The tries of the blocks that were used last, valid while the head stays the same.

    Many proofs of one block are usual: bridges prove their accounts and slots at the
    block that the other chain knows.
    """

    def __init__(self) -> None:
        self._cache = NodeCache(NODES_CACHED)
        self._found: OrderedDict[tuple[Any, ...], Rewinding] = OrderedDict()

    def find(
        self, connection: psycopg.Connection[Any], network_id: int, block_hash: bytes
    ) -> Rewinding:
        """Return the trie nodes after a block, like `nodeapi.chain.trie_at.rewind`."""
        head = Branches(connection, network_id).head().header.hash
        key = (id(connection), network_id, block_hash, head)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = rewind(
                connection,
                network_id,
                block_hash,
                cache=self._cache,
                max_changes=MAX_CHANGES,
            )
        self._found.move_to_end(key)
        self._evict()
        return found

    def _evict(self) -> None:
        self._cache.age()
        while len(self._found) > 1 and self._size() > _NODES_KEPT:
            self._found.popitem(last=False)

    def _size(self) -> int:
        return sum(each.size for each in self._found.values())


_recent = RecentTries()


def prove(context: TaskContext, arguments: Any) -> bytes:
    """Return the result of eth_getProof.

    arguments: `address`, and `keys`, the names of the slots' keys.

    Raises: TransientFailure if too many accounts or slots have changed since the block.
    """
    address = Address(bytes.fromhex(arguments["address"][2:]))
    names = arguments["keys"]
    connection = context.connection
    with snapshot(connection):
        try:
            tries = _recent.find(
                connection, context.network_id, context.block_hash
            ).open()
            (account,) = tries.prove_accounts([address])
            slots = tries.prove_slots(address, [int(name, 16) for name in names])
        except TooManyChanges as error:
            raise TransientFailure(*WINDOW_EXCEEDED) from error
    return proof_document(address, account, names, slots)


def witness(context: TaskContext, arguments: Any) -> TaskResult:
    """Return the result of debug_executionWitness for the job's block.

    arguments: `headers`, the form of headers; `nodes`, see `proved_tries`.

    Raises: UnknownNodes; TransientFailure if the block or its parent is not stored, or if too many
        accounts or slots have changed since.
    """
    connection, network_id = context.connection, context.network_id
    with snapshot(connection):
        try:
            origin = find_origin(
                connection, network_id, context.config, context.block_hash
            )
            parent_hash = origin.block.header.parent_hash
            nodes = proved_tries(
                context,
                context.state_after(parent_hash),
                arguments,
                max_changes=MAX_CHANGES,
            ) or _recent.find(connection, network_id, parent_hash)
            found = build_witness(connection, network_id, origin, nodes)
        except NotTraceable as error:
            raise TransientFailure(SERVER_ERROR, str(error)) from error
        except TooManyChanges as error:
            raise TransientFailure(*WINDOW_EXCEEDED) from error
    document = witness_document(found, arguments["headers"])
    return TaskResult(document, origin.block.header.gas_used)


TASKS: dict[str, Task] = {"proof": prove, "witness": witness}


def witness_document(found: Witness, headers: str = OBJECT_HEADERS) -> bytes:
    """Return the result of debug_executionWitness.

    headers: the form of headers. With `RLP_HEADERS`, keys are listed as well, as by reth
        and others. geth has null.

    All lists but that of headers are sorted. geth's `codes` and `state` are sorted, too.
    """
    is_rlp = headers == RLP_HEADERS
    return orjson.dumps(
        {
            "headers": [
                to_hex(header.encode()) if is_rlp else _header(header)
                for header in found.headers
            ],
            "codes": list(map(to_hex, sorted(found.codes))),
            "state": list(map(to_hex, sorted(found.nodes))),
            "keys": list(map(to_hex, sorted(found.keys))) if is_rlp else None,
        }
    )


def _header(header: Header) -> dict[str, Any]:
    """Return a header as geth's types.Header. Fields of later forks are null."""
    return {
        "parentHash": to_hex_or_none(header.parent_hash),
        "sha3Uncles": to_hex_or_none(header.uncles_hash),
        "miner": to_hex_or_none(header.coinbase),
        "stateRoot": to_hex_or_none(header.state_root),
        "transactionsRoot": to_hex_or_none(header.transactions_root),
        "receiptsRoot": to_hex_or_none(header.receipts_root),
        "logsBloom": to_hex_or_none(header.logs_bloom),
        "difficulty": hex(header.difficulty),
        "number": hex(header.number),
        "gasLimit": hex(header.gas_limit),
        "gasUsed": hex(header.gas_used),
        "timestamp": hex(header.timestamp),
        "extraData": to_hex_or_none(header.extra_data),
        "mixHash": to_hex_or_none(header.mix_hash),
        "nonce": to_hex_or_none(header.nonce),
        "baseFeePerGas": quantity_or_none(header.base_fee_per_gas),
        "withdrawalsRoot": to_hex_or_none(header.withdrawals_root),
        "blobGasUsed": quantity_or_none(header.blob_gas_used),
        "excessBlobGas": quantity_or_none(header.excess_blob_gas),
        "parentBeaconBlockRoot": to_hex_or_none(header.parent_beacon_root),
        "requestsHash": to_hex_or_none(header.requests_hash),
        "blockAccessListHash": to_hex_or_none(header.block_access_list_hash),
        "slotNumber": quantity_or_none(header.slot_number),
        "hash": to_hex_or_none(header.hash),
    }
