"""The pool of trace workers, with its queue and its limits."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
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
from nodeapi.tracing.spool import Hold, Spool, SpoolCount
from nodeapi.tracing.wire import LENGTH, WorkerSettings

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLimits:
    """Limits of the traces of a serving process."""

    workers: int = 2
    """Worker processes."""
    waiting: int = 64
    """Jobs that may wait for a worker; further ones are rejected."""
    per_key: int = 2
    """Requests of one key whose traces are queued, executed or being read."""
    seconds: float = 60.0
    """Time limit of a job, whatever the timeout of a transaction."""
    memory_bytes: int = 2**30
    """Memory of each process, beyond what it takes when idle."""
    result_bytes: int = 2**29
    """Size limit of one result."""
    spool_bytes: int = 2**32
    """Size limit of all unread results in files, of jobs and of records."""
    owner_bytes: int | None = None
    """Size limit of one owner's unread results. If None, a quarter of `spool_bytes`."""
    spool_folder: Path | None = None
    """The folder of the files. If None, the system's temporary folder."""

    def spool_count(self) -> SpoolCount:
        """Return a counter with the limits of the spool."""
        share = self.spool_bytes // 4 if self.owner_bytes is None else self.owner_bytes
        return SpoolCount(self.spool_bytes, share)


class _Run:
    """A job in execution, and the number of requests that wait for it."""

    def __init__(self, task: asyncio.Task[Spool]) -> None:
        self.task = task
        self.waiters = 0


class TracePool:
    """Executes trace jobs. Used from one event loop, which it never blocks."""

    def __init__(
        self, conninfo: str, limits: PoolLimits, spooled: SpoolCount | None = None
    ) -> None:
        """Create an idle pool; the first job starts the first worker.

        conninfo: of the database, in libpq's form.
        spooled: counts unread results, if other parts have some as well.
        """
        self._limits = limits
        self._settings = WorkerSettings(
            conninfo, limits.memory_bytes, limits.result_bytes
        )
        self._free = asyncio.Semaphore(limits.workers)
        self.idle: list[WorkerProcess] = []
        self._workers: set[WorkerProcess] = set()
        self._runs: dict[bytes, _Run] = {}
        self._retiring: set[asyncio.Task[None]] = set()
        self.requests: dict[Hashable, Counter[Hashable]] = defaultdict(Counter)
        self.spooled = spooled or limits.spool_count()
        self.lost_workers = 0
        """Workers that died during a job, except those killed here or at their memory
        limit."""

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers."""
        return [worker.pid for worker in self._workers if worker.pid is not None]

    async def trace(
        self,
        job: TraceJob,
        key: Hashable,
        *,
        owner: Hashable = None,
        request: Hashable = None,
    ) -> Stream:
        """Execute a job, and return its result when it is complete.

        Equal jobs share one execution. A job whose requests were all cancelled is
        cancelled.

        key: the key for which the trace is counted until its result is read or dropped.
        owner: the key's account, for which the result's bytes are counted. If None, they
            are counted for the key.
        request: the request, whose calls count as one trace. If None, the job counts as
            a separate request.
        Raises: RpcError, see `nodeapi.tracing.errors`.
        """
        owner = key if owner is None else owner
        self.spooled.check(owner)
        place = self._take_place(key, object() if request is None else request)
        try:
            spool = await self._join(job)
            # Results of concurrent requests of the owner may have filled the share.
            self.spooled.check_share(owner)
        except BaseException:
            place.release()
            raise
        return spool.stream(SLICE_ADVICE, place, self.spooled.add_reader(spool, owner))

    def _take_place(self, key: Hashable, request: Hashable) -> Hold:
        """Count a trace of a key. Raises: TooManyConcurrent."""
        requests = self.requests[key]
        if request not in requests and len(requests) >= self._limits.per_key:
            raise TooManyConcurrent(self._limits.per_key)
        requests[request] += 1

        def undo() -> None:
            requests[request] -= 1
            if not requests[request]:
                del requests[request]
            if not requests:
                self.requests.pop(key, None)

        return Hold(undo)

    async def close(self) -> None:
        """Cancel all jobs and kill all workers."""
        tasks = [run.task for run in self._runs.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*self._retiring, return_exceptions=True)
        self.idle.clear()
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
        """Accept no more requests for a task; a newer task may have the same name."""
        if name in self._runs and self._runs[name].task is task:
            del self._runs[name]

    async def _run(self, job: bytes, timeout: float) -> Spool:
        await self._free.acquire()
        worker: WorkerProcess | None = None
        is_well = False
        try:
            # Opened before a worker is taken, so that a full disk loses no worker.
            spool = Spool(self._limits.spool_folder)
            worker = await self._worker()
            async with asyncio.timeout(self._limits.seconds):
                kind, rest = await worker.execute(job, spool.descriptor, timeout)
            is_well = kind != wire.CRASHED
        except TimeoutError:
            pid = None if worker is None else worker.pid
            logger.warning("trace worker %s exceeded its time limit, killed", pid)
            raise ExecutionTimedOut from None
        except WorkerDied:
            assert worker is not None
            raise await self._error_of_dead_worker(worker) from None
        finally:
            self._release_worker(worker, is_well)
        if kind != wire.DONE:
            raise self._failure(kind, rest)
        (spool.size,) = LENGTH.unpack(rest)
        self.spooled.add(spool, spool.size)
        return spool

    async def _error_of_dead_worker(self, worker: WorkerProcess) -> RpcError:
        """Return the error of a request whose worker has exited during the job."""
        pid, status = worker.pid, await worker.kill()
        if status == wire.OUT_OF_MEMORY_STATUS:
            logger.warning("trace worker %s exceeded its memory limit", pid)
            return ExecutionTimedOut()
        self.lost_workers += 1
        logger.error("trace worker %s died (status %s)", pid, status)
        return InternalError()

    def _release_worker(self, worker: WorkerProcess | None, is_well: bool) -> None:
        """Make a worker available to the next job, or kill it.

        A worker that is killed keeps its place until it has exited. The request does
        not wait for that, because a low-priority process may take seconds to exit on a
        busy machine.
        """
        if worker is not None and not is_well:
            task = asyncio.create_task(self._retire(worker))
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)
            return
        if worker is not None:
            self.idle.append(worker)
        self._free.release()

    async def _retire(self, worker: WorkerProcess) -> None:
        try:
            await self._end(worker)
        finally:
            self._free.release()

    async def _worker(self) -> WorkerProcess:
        """Return an idle worker, started if needed."""
        while self.idle:
            worker = self.idle.pop()
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
