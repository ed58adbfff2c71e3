"""The task of methods that return block access lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from evm.signatures import keccak
from nodeapi.chain.access_lists import compute_access_list, read_access_list
from nodeapi.chain.replay import NotTraceable
from nodeapi.documents.access_lists import access_list_document
from nodeapi.tracing.context import SERVER_ERROR, TaskResult, TransientFailure
from nodeapi.tracing.execution import snapshot

if TYPE_CHECKING:
    from nodeapi.tracing.context import Task, TaskContext

RAW, ACCOUNTS, DESCRIBED = "raw", "accounts", "described"
"""Forms of a result: RLP, the accounts, an object with the accounts and the hash."""


def block_access_list(context: TaskContext, arguments: Any) -> TaskResult:
    """Return the access list of the job's block, which is executed if none is stored.

    arguments: `form`.

    Raises: TransientFailure if the block or its parent is not stored.
    """
    connection, network_id = context.connection, context.network_id
    header = context.state.header
    gas_used = 0
    row = read_access_list(connection, network_id, context.block_hash)
    if row is None:
        gas_used = header.gas_used
        try:
            with snapshot(connection):
                row = compute_access_list(
                    connection, network_id, context.config, context.block_hash
                )
        except NotTraceable as error:
            raise TransientFailure(SERVER_ERROR, str(error)) from error
    form = arguments["form"]
    if form == RAW:
        return TaskResult(b'"0x%b"' % row.list.hex().encode(), gas_used)
    accounts = access_list_document(row.list)
    if form == ACCOUNTS:
        return TaskResult(accounts, gas_used)
    document = orjson.dumps(
        {
            "computed": header.block_access_list_hash is None,
            "list": orjson.Fragment(accounts),
            "hash": f"0x{keccak(row.list).hex()}",
        }
    )
    return TaskResult(document, gas_used)


TASKS: dict[str, Task] = {"block_access_list": block_access_list}
