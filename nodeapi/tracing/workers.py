"""The worker processes of the pool."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from jsonrpc.errors import InternalError, RpcError, ServiceUnavailable
from nodeapi.chain.replay_counts import ReplayCounts
from nodeapi.errors.execution import ExecutionTimedOut
from nodeapi.tracing import wire
from nodeapi.tracing.process import WorkerDied, WorkerProcess
from nodeapi.tracing.wire import WorkerSettings

logger = logging.getLogger(__name__)


class Workers:
    """Starts, keeps and ends worker processes.

    released: called when another worker may be taken instead of a released one.
    lost: number of workers that died during a job, except those killed here or at their
        memory limit.
    """

    def __init__(self, settings: WorkerSettings, released: Callable[[], None]) -> None:
        self.idle: list[WorkerProcess] = []
        self.lost = 0
        self._settings = settings
        self._released = released
        self._all: set[WorkerProcess] = set()
        self._replays_of_ended = ReplayCounts()
        self._retiring: set[asyncio.Task[None]] = set()

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers."""
        return [worker.pid for worker in self._all if worker.pid is not None]

    @property
    def executing(self) -> list[int]:
        """The process ids of the workers that execute a task at this moment."""
        return [
            worker.pid
            for worker in self._all
            if worker.pid is not None and worker.executing is not None
        ]

    @property
    def replays(self) -> ReplayCounts:
        """How many replays have begun within a block, in all workers so far."""
        found = self._replays_of_ended
        for worker in self._all:
            found += worker.replays
        return found

    async def take(self) -> WorkerProcess:
        """Return an idle worker, started if needed. Raises: ServiceUnavailable."""
        while self.idle:
            worker = self.idle.pop()
            if worker.is_alive:
                return worker
            await self._end(worker)
        worker = WorkerProcess(self._settings)
        self._all.add(worker)
        try:
            await worker.start()
        except BaseException as error:
            await self._end(worker)
            if isinstance(error, WorkerDied | TimeoutError | OSError):
                logger.error("a trace worker did not start: %r", error)
                raise ServiceUnavailable from error
            raise
        return worker

    async def warm(self) -> None:
        """Start a worker for the first job, if none is idle."""
        if not self.idle:
            with suppress(ServiceUnavailable):  # which is logged; the job tries again
                self.idle.append(await self.take())

    def release(self, worker: WorkerProcess | None, is_well: bool) -> None:
        """Make a worker available to the next job, or kill it.

        A worker that is killed keeps its place until it has exited. The request does
        not wait for that, because a low-priority process may take seconds to exit on a
        busy machine.
        worker: None if none could be taken.
        """
        if worker is not None and not is_well:
            task = asyncio.create_task(self._retire(worker))
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)
            return
        if worker is not None:
            self.idle.append(worker)
        self._released()

    async def error_of_dead(self, worker: WorkerProcess) -> RpcError:
        """Return the error of a request whose worker has exited during the job."""
        pid, status = worker.pid, await worker.kill()
        if status == wire.OUT_OF_MEMORY_STATUS:
            logger.warning("trace worker %s exceeded its memory limit", pid)
            return ExecutionTimedOut()
        self.lost += 1
        logger.error("trace worker %s died (status %s)", pid, status)
        return InternalError()

    async def close(self) -> None:
        """Kill all workers."""
        await asyncio.gather(*self._retiring, return_exceptions=True)
        self.idle.clear()
        for worker in list(self._all):
            await self._end(worker)

    async def _retire(self, worker: WorkerProcess) -> None:
        try:
            await self._end(worker)
        finally:
            self._released()

    async def _end(self, worker: WorkerProcess) -> None:
        if worker in self._all:
            self._all.discard(worker)
            self._replays_of_ended += worker.replays
        await worker.kill()
