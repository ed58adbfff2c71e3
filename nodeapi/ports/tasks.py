"""The execution of blocks and calls on demand, and the cache of its outcomes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from jsonrpc.later import Later
from jsonrpc.stream import Stream
from nodeapi.tracing.answers import TaskAnswer
from nodeapi.tracing.jobs import TaskJob, TraceJob


class Tracing(Protocol):
    """Executes blocks again for tracers, and calls; see `nodeapi.tracing`.

    `nodeapi.tracing.pool.TracePool` implements it with worker processes. Another
    implementation, such as a task queue, has to follow this contract.
    """

    async def trace(
        self,
        job: TraceJob,
        key: Hashable,
        *,
        owner: Hashable = None,
        request: Hashable = None,
    ) -> Stream:
        """Return the complete result of a job.

        key: its number of concurrent traces is limited.
        owner: the key's account, whose unread bytes are limited. If None, the key's are.
        request: calls of the same request count as one trace. If None, the job counts as
            a separate request.

        Raises: RpcError, see `nodeapi.tracing.errors`.
        """

    def run(
        self,
        job: TaskJob,
        key: Hashable,
        *,
        owner: Hashable = None,
        request: Hashable = None,
    ) -> Later[TaskAnswer]:
        """Return the result of a task, a stream if it is long.

        Equal tasks share one execution. Keys take turns.

        key, owner, request: as in `trace`. Short tasks are limited in number for the key
            only.

        Fails with an RpcError, see `nodeapi.tracing.errors`.
        """

    async def close(self) -> None:
        """Cancel all jobs."""


TaskName = tuple[str, bytes, bytes]
"""Task, block hash, and a digest of the arguments. Equal names have equal outcomes."""


class TaskOutcomes(Protocol):
    """Caches the outcomes of tasks."""

    def task_outcome(self, network_id: int, name: TaskName) -> bytes | None:
        """Return the cached outcome of a task, or None."""

    def keep_task_outcome(
        self, network_id: int, name: TaskName, outcome: bytes
    ) -> None:
        """Cache the outcome of a task."""
