"""The task of methods that return block access lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from evm.signatures import keccak
from nodeapi.chain.access_lists import (
    compute_access_list,
    execute_for_list,
    read_access_list,
)
from nodeapi.chain.replay import NotTraceable
from nodeapi.documents.access_lists import access_list_document
from nodeapi.tracing.context import SERVER_ERROR, TaskResult, TransientFailure
from nodeapi.tracing.execution import snapshot
from nodeapi.tracing.tasks.block_traces import stored_origin

if TYPE_CHECKING:
    from evm.headers import Header
    from nodeapi.tracing.context import Task, TaskContext

RAW, ACCOUNTS, DESCRIBED = "raw", "accounts", "described"
"""Forms of a result: RLP, the accounts, an object with the accounts and the hash."""


def block_access_list(context: TaskContext, arguments: Any) -> TaskResult:
    """Return the access list of the job's block, which is executed if none is stored.

    arguments: `form`; `list`, its RLP as hexadecimal digits, if it is known.

    Raises: TransientFailure if the block or its parent is not stored; UnknownPast.
    """
    connection, network_id = context.connection, context.network_id
    header = context.state.header
    gas_used = 0
    row = read_access_list(connection, network_id, context.block_hash)
    if row is not None:
        found = row.list
    elif "list" in arguments:
        found = bytes.fromhex(arguments["list"])
    else:
        gas_used, found = header.gas_used, _computed(context, header)
    form = arguments["form"]
    if form == RAW:
        return TaskResult(b'"0x%b"' % found.hex().encode(), gas_used)
    accounts = access_list_document(found)
    if form == ACCOUNTS:
        return TaskResult(accounts, gas_used)
    document = orjson.dumps(
        {
            "computed": header.block_access_list_hash is None,
            "list": orjson.Fragment(accounts),
            "hash": f"0x{keccak(found).hex()}",
        }
    )
    return TaskResult(document, gas_used)


def _computed(context: TaskContext, header: Header) -> bytes:
    """Return the list of the job's block by executing it. Raises: as the task."""
    if 0 < header.number <= (context.checkpoint or 0):
        return execute_for_list(stored_origin(context)).list
    connection, network_id = context.connection, context.network_id
    try:
        with snapshot(connection):
            return compute_access_list(
                connection, network_id, context.config, context.block_hash
            ).list
    except NotTraceable as error:
        raise TransientFailure(SERVER_ERROR, str(error)) from error


TASKS: dict[str, Task] = {"block_access_list": block_access_list}
