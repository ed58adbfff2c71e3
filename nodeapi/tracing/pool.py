"""The pool of worker processes: who may have what executed, and for how long."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, replace
from pathlib import Path

from jsonrpc.errors import InternalError, RpcError, ServiceUnavailable
from jsonrpc.stream import Stream
from nodeapi.tracing import wire
from nodeapi.tracing.errors import (
    SLICE_ADVICE,
    ExecutionTimedOut,
    TooManyConcurrent,
    TraceFailed,
    TraceResultTooLarge,
)
from nodeapi.tracing.jobs import TraceJob
from nodeapi.tracing.process import WorkerDied, WorkerProcess
from nodeapi.tracing.spool import Spool, SpoolCount
from nodeapi.tracing.wire import LENGTH, WorkerSettings

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLimits:
    """What the traces of a serving process may take."""

    workers: int = 2
    """Processes at once."""
    waiting: int = 64
    """Jobs that wait for one, before others are turned away."""
    per_owner: int = 2
    """Traces of one key in execution, or waiting for it."""
    seconds: float = 60.0
    """For a whole job, whatever time-out a transaction has."""
    memory_bytes: int = 2**30
    """For each process, beyond what it takes when idle."""
    result_bytes: int = 2**29
    """Of one answer."""
    spool_bytes: int = 2**32
    """Of all answers that wait in files, finished ones and those made of records."""
    spool_folder: Path | None = None
    """Where they wait; None: the system's folder for such files."""


class _Run:
    """A job in execution, and how many wait for it."""

    def __init__(self, task: asyncio.Task[Spool]) -> None:
        self.task = task
        self.waiters = 0


class TracePool:
    """Executes trace jobs. It is used from one event loop, which it never holds up."""

    def __init__(
        self, conninfo: str, limits: PoolLimits, spooled: SpoolCount | None = None
    ) -> None:
        """Start nothing: the first job starts the first worker.

        conninfo: of the database, in libpq's form.
        spooled: counts answers that wait, where others have some, too.
        """
        self._limits = limits
        self._settings = WorkerSettings(
            conninfo, limits.memory_bytes, limits.result_bytes
        )
        self._free = asyncio.Semaphore(limits.workers)
        self._idle: list[WorkerProcess] = []
        self._workers: set[WorkerProcess] = set()
        self._runs: dict[bytes, _Run] = {}
        self._owners: Counter[Hashable] = Counter()
        self._spooled = spooled or SpoolCount(limits.spool_bytes)

    @property
    def pids(self) -> list[int]:
        """The numbers of the worker processes."""
        return [worker.pid for worker in self._workers if worker.pid is not None]

    async def trace(self, job: TraceJob, owner: Hashable) -> Stream:
        """Execute a job, and return its answer when all of it is there.

        owner: who is counted for it. A job that is in execution already is not
        executed twice; one that nobody waits for any more is ended.
        Raises: RpcError, see `nodeapi.tracing.errors`.
        """
        if self._owners[owner] >= self._limits.per_owner:
            raise TooManyConcurrent(self._limits.per_owner)
        self._owners[owner] += 1
        try:
            spool = await self._join(job)
        finally:
            self._owners[owner] -= 1
            if not self._owners[owner]:
                del self._owners[owner]
        return spool.stream(SLICE_ADVICE)

    async def close(self) -> None:
        """End all workers."""
        tasks = [run.task for run in self._runs.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._idle.clear()
        for worker in list(self._workers):
            await self._end(worker)

    async def _join(self, job: TraceJob) -> Spool:
        timeout = min(max(job.timeout, 0.0), self._limits.seconds)
        job = replace(job, timeout=timeout)
        name = job.encode()
        run = self._runs.get(name)
        if run is None:
            if len(self._runs) >= self._limits.workers + self._limits.waiting:
                raise ServiceUnavailable
            if self._spooled.is_full:
                raise ServiceUnavailable
            task = asyncio.create_task(self._run(name, timeout))
            run = self._runs[name] = _Run(task)
            task.add_done_callback(lambda done: self._forget(name, done))
        run.waiters += 1
        try:
            return await asyncio.shield(run.task)
        finally:
            run.waiters -= 1
            if not run.waiters and not run.task.done():
                self._forget(name, run.task)
                run.task.cancel()

    def _forget(self, name: bytes, task: asyncio.Task[Spool]) -> None:
        """Join nobody to a task any more; there may be a newer one of the same name."""
        if name in self._runs and self._runs[name].task is task:
            del self._runs[name]

    async def _run(self, job: bytes, timeout: float) -> Spool:
        async with self._free:
            # Before there is a worker that a full disk would have nobody give back.
            spool = Spool(self._limits.spool_folder)
            worker = await self._worker()
            is_well = False
            try:
                async with asyncio.timeout(self._limits.seconds):
                    kind, rest = await worker.execute(job, spool.descriptor, timeout)
                is_well = kind != wire.CRASHED
            except (TimeoutError, WorkerDied) as error:
                reason = type(error).__name__  # the error itself holds the spool
                logger.warning("trace worker %s: %s, killed", worker.pid, reason)
                raise ExecutionTimedOut from None
            finally:
                if is_well:
                    self._idle.append(worker)
                else:
                    await self._end(worker)
        if kind != wire.DONE:
            raise self._failure(kind, rest)
        (spool.size,) = LENGTH.unpack(rest)
        self._spooled.add(spool, spool.size)
        return spool

    async def _worker(self) -> WorkerProcess:
        """Return a worker that is well and has nothing to do."""
        while self._idle:
            worker = self._idle.pop()
            if worker.is_alive:
                return worker
            await self._end(worker)
        worker = WorkerProcess(self._settings)
        self._workers.add(worker)
        try:
            await worker.start()
        except BaseException as error:
            await self._end(worker)
            if isinstance(error, WorkerDied | TimeoutError | OSError):
                logger.error("a trace worker did not start: %r", error)
                raise ServiceUnavailable from error
            raise
        return worker

    async def _end(self, worker: WorkerProcess) -> None:
        self._workers.discard(worker)
        await worker.kill()

    def _failure(self, kind: bytes, rest: bytes) -> RpcError:
        if kind == wire.FAILED:
            text = rest.decode()
            is_timeout = text == ExecutionTimedOut.text
            return ExecutionTimedOut() if is_timeout else TraceFailed(text)
        if kind == wire.TOO_LARGE:
            return TraceResultTooLarge(self._limits.result_bytes)
        if kind == wire.UNAVAILABLE:
            return ServiceUnavailable()
        return InternalError()
