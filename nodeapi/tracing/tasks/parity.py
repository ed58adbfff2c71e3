"""Tasks of Parity's methods that read trace records of many blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jsonrpc.errors import RpcError
from nodeapi.tracing.context import TaskContext, TransientFailure
from nodeapi.tracing.execution import snapshot
from nodeapi.tracing.trace_filter import TraceFilter, TraceSearch

if TYPE_CHECKING:
    from nodeapi.tracing.context import Task

INLINE_BYTES = 2**18
"""Largest result that is returned in one message. Longer ones are written to a file."""


class _Output:
    """Collects a result, and writes it to a file if it is long."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._parts: list[bytes] = []
        self._size = 0
        self._is_long = False

    def add(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)
        if self._size > INLINE_BYTES:
            self._is_long = True
            self._flush()

    def end(self) -> bytes:
        """Return the result, or b"" if it was written to the file."""
        if not self._is_long:
            return b"".join(self._parts)
        self._flush()
        return b""

    def _flush(self) -> None:
        self._write(b"".join(self._parts))
        self._parts.clear()
        self._size = 0


def trace_filter(context: TaskContext, arguments: Any) -> bytes:
    """Return the flat traces that a `TraceFilter` admits.

    The job's block is the last one of the filter. Raises: TransientFailure.
    """
    wanted = TraceFilter.from_json(arguments)
    output = _Output(context.write)
    connection = context.connection
    search = TraceSearch(connection, context.network_id, context.block_hash, wanted)
    try:
        with snapshot(connection):
            search.run(output.add)
    except RpcError as error:
        raise TransientFailure(error.code, error.message, error.data) from error
    return output.end()


TASKS: dict[str, Task] = {"trace_filter": trace_filter}
