"""Tasks of Parity's methods that read trace records of many blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jsonrpc.errors import RpcError
from nodeapi.tracing.context import TaskContext, TransientFailure
from nodeapi.tracing.execution import snapshot
from nodeapi.tracing.outputs import Output
from nodeapi.tracing.trace_filter import TraceFilter, TraceSearch

if TYPE_CHECKING:
    from nodeapi.tracing.context import Task


def trace_filter(context: TaskContext, arguments: Any) -> bytes:
    """Return the flat traces that a `TraceFilter` admits.

    The job's block is the last one of the filter. Raises: TransientFailure.
    """
    wanted = TraceFilter.from_json(arguments)
    output = Output(context.write)
    connection = context.connection
    search = TraceSearch(connection, context.network_id, context.block_hash, wanted)
    try:
        with snapshot(connection):
            search.run(output.write)
    except RpcError as error:
        raise TransientFailure(error.code, error.message, error.data) from error
    return output.result()


TASKS: dict[str, Task] = {"trace_filter": trace_filter}
