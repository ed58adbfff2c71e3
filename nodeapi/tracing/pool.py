"""The pool of worker processes, with its queue and its limits."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, defaultdict
from collections.abc import Coroutine, Hashable
from dataclasses import replace

import orjson

from evm.proved_state import UnknownValues
from jsonrpc.errors import InternalError, RpcError, ServiceUnavailable
from jsonrpc.later import Later
from jsonrpc.stream import Stream
from jsonrpc.turns import FairQueue, Shares, Use
from nodeapi.errors.execution import (
    SLICE_ADVICE,
    ExecutionFailed,
    ExecutionTimedOut,
    TaskTimeout,
    TooManyConcurrent,
    TooManyExecutions,
    TraceFailed,
    TraceResultTooLarge,
)
from nodeapi.results.spool import Hold, ResultFile, SpoolCount
from nodeapi.tracing import wire
from nodeapi.tracing.answers import (
    ATTEMPTS,
    SHORT_SECONDS,
    QueuedTask,
    Spent,
    TaskAnswer,
    failure_of,
    weight_of,
)
from nodeapi.tracing.jobs import TaskJob, TraceJob
from nodeapi.tracing.pool_limits import PoolLimits
from nodeapi.tracing.process import WorkerDied, WorkerProcess
from nodeapi.tracing.wire import LENGTH, WorkerSettings
from nodeapi.tracing.workers import Workers

logger = logging.getLogger(__name__)

IDLE_SECONDS = 1.0
"""Interval at which the pool looks whether a worker is idle."""


class _Run:
    """A job that is queued or executed, and the requests that wait for it.

    turn: completes when the job may have a worker, with the place. It is queued once for
        each customer who waits for the job.
    waiters: the number of these requests.
    spent: callbacks, which take the processor seconds after the execution.
    """

    def __init__(self) -> None:
        self.turn: asyncio.Future[Use] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[ResultFile]
        self.waiters = 0
        self.spent: list[Spent] = []


def _free(seconds: float) -> None:
    """Charge nothing for an execution."""


class TracePool:
    """Executes trace jobs and tasks. Used from one event loop, which it never blocks."""

    def __init__(
        self, conninfo: str, limits: PoolLimits, spooled: SpoolCount | None = None
    ) -> None:
        """Create an idle pool; `start` or the first job starts the first worker.

        conninfo: of the database, in libpq's form.
        spooled: counts unread results, if other parts have some as well.
        """
        self._limits = limits
        settings = WorkerSettings(
            conninfo,
            limits.memory_bytes,
            limits.result_bytes,
        )
        self.workers = Workers(settings, self._free_place)
        self._places = limits.workers
        """Workers that may be given a job."""
        self._queue: FairQueue[_Run | QueuedTask] = FairQueue()
        self._shares = Shares(limits.workers)
        self._is_dispatching = False
        self._runs: dict[bytes, _Run] = {}
        self._tasks: dict[tuple[Hashable, bytes], QueuedTask] = {}
        """Tasks without an answer, by customer and encoded job. A customer does not wait
        for the turn of another one, even for the same task."""
        self._weight = 0
        """Weight of all these tasks."""
        self._using: set[asyncio.Task[None]] = set()
        """Tasks of the event loop that use a worker, and are cancelled at the end."""
        self._short: Counter[Hashable] = Counter()
        """Weight of the short tasks for which each key's requests wait."""
        self.requests: dict[Hashable, Counter[Hashable]] = defaultdict(Counter)
        self.spooled = spooled or limits.spool_count()

    async def trace(
        self,
        job: TraceJob,
        key: Hashable,
        *,
        owner: Hashable = None,
        request: Hashable = None,
        spent: Spent = _free,
    ) -> Stream:
        """Execute a job, and return its result when it is complete.

        Equal jobs share one execution. A job whose requests were all cancelled is
        cancelled.

        key: the key for which the trace is counted until its result is read or dropped.
        owner: the customer. Customers take turns, and the bytes of unread results are
            limited for each of them. If None, each key is a customer.
        request: the request, whose calls count as one trace. If None, the job counts as
            a separate request.
        spent: is called after the execution, even if the request was cancelled.
        Raises: RpcError, see `nodeapi.errors.execution`; UnknownValues of a sparse state.
        """
        owner = key if owner is None else owner
        self.spooled.check(owner)
        place = self._take_place(key, object() if request is None else request)
        try:
            spool = await self._join(job, owner, spent)
            # Results of concurrent requests of the owner may have filled the share.
            self.spooled.check_share(owner)
        except BaseException:
            place.release()
            raise
        return spool.stream(SLICE_ADVICE, place, self.spooled.add_reader(spool, owner))

    def run(
        self,
        job: TaskJob,
        key: Hashable,
        *,
        owner: Hashable = None,
        request: Hashable = None,
        spent: Spent = _free,
    ) -> Later[TaskAnswer]:
        """Return the result of a task, a stream if it is long.

        Equal tasks of a customer share one execution. Customers take turns.

        key, owner, request, spent: as in `trace`. Short tasks are limited in number for the key
            only.

        Fails with an RpcError, see `nodeapi.errors.execution`, and with UnknownValues of a
        sparse state.
        """
        owner = key if owner is None else owner
        if job.timeout > self._limits.seconds:
            job = replace(job, timeout=self._limits.seconds)
        name = job.encode()
        place: Hold | None = None
        try:
            if job.timeout > SHORT_SECONDS:
                place = self._take_place(key, object() if request is None else request)
            else:
                self._check_short(key, weight_of(name))
            task = self._queued(name, job.timeout, owner)
        except RpcError as error:
            if place is not None:
                place.release()
            return Later.failed(error)
        if place is None:
            self._short[key] += task.weight
        return Later.from_future(task.add_waiter(key, place, spent))

    def _check_short(self, key: Hashable, weight: int) -> None:
        """Check that a key may have another short task. Raises: TooManyExecutions."""
        present, limit = self._short.get(key, 0), self._limits.tasks_per_key
        if present and present + weight > limit:
            raise TooManyExecutions(limit)

    def _queued(self, name: bytes, timeout: float, owner: Hashable) -> QueuedTask:
        """Return a task that is queued or executed. Raises: ServiceUnavailable."""
        task = self._tasks.get((owner, name))
        if task is None:
            if self._weight >= self._limits.waiting_tasks:
                raise ServiceUnavailable
            task = self._tasks[owner, name] = QueuedTask(name, timeout, owner)
            self._weight += task.weight
            self._push(owner, task)
        return task

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

    async def start(self) -> None:
        """Start a worker, so that the first job need not wait for it."""
        await self.workers.warm()

    async def close(self) -> None:
        """Cancel all jobs and kill all workers."""
        running = [*(run.task for run in self._runs.values()), *self._using]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for queued in list(self._tasks.values()):
            self._finish(queued, asyncio.CancelledError())
        await self.workers.close()

    async def _join(self, job: TraceJob, owner: Hashable, spent: Spent) -> ResultFile:
        timeout = min(max(job.timeout, 0.0), self._limits.seconds)
        job = replace(job, timeout=timeout)
        name = job.encode()
        run = self._runs.get(name)
        if run is None:
            if len(self._runs) >= self._limits.workers + self._limits.waiting:
                raise ServiceUnavailable
            run = self._runs[name] = _Run()
            task = run.task = asyncio.create_task(self._run(run, name, timeout))
            task.add_done_callback(lambda done: self._forget(name, done))
        if not run.turn.done():
            self._push(owner, run)
        run.spent.append(spent)
        run.waiters += 1
        try:
            return await asyncio.shield(run.task)
        finally:
            run.waiters -= 1
            if not run.waiters and not run.task.done():
                self._forget(name, run.task)
                run.task.cancel()

    def _forget(self, name: bytes, task: asyncio.Task[ResultFile]) -> None:
        """Accept no more requests for a task; a newer task may have the same name."""
        if name in self._runs and self._runs[name].task is task:
            del self._runs[name]

    async def _run(self, run: _Run, job: bytes, timeout: float) -> ResultFile:
        use = await self._turn(run)
        worker: WorkerProcess | None = None
        is_well = is_lost = False
        seconds = 0.0
        try:
            # Opened before a worker is taken, so that a full disk loses no worker.
            spool = ResultFile(self._limits.spool_folder)
            worker = await self._take_worker(use)
            async with asyncio.timeout(self._limits.seconds):
                kind, seconds, rest = await worker.execute(
                    job, spool.descriptor, timeout
                )
            is_well = kind != wire.CRASHED
        except TimeoutError:
            pid = None if worker is None else worker.pid
            logger.warning("trace worker %s exceeded its time limit, killed", pid)
            raise ExecutionTimedOut from None
        except WorkerDied:
            assert worker is not None
            error = await self.workers.error_of_dead(worker)
            is_lost = not isinstance(error, ExecutionTimedOut)  # then it costs nothing
            raise error from None
        finally:
            if worker is not None and not (is_well or is_lost):
                seconds = time.monotonic() - use.begun
            for spent in run.spent:
                spent(seconds)
            self._shares.end(use, time.monotonic())
            self.workers.release(worker, is_well)
        if kind != wire.DONE:
            raise self._failure(kind, rest)
        (spool.size,) = LENGTH.unpack(rest)
        self.spooled.add(spool, spool.size)
        return spool

    # The queue

    async def _turn(self, run: _Run) -> Use:
        """Wait for a place."""
        try:
            return await run.turn
        except asyncio.CancelledError:
            if not run.turn.cancelled():
                self._shares.end(run.turn.result(), time.monotonic())
                self._free_place()
            raise

    async def _take_worker(self, use: Use) -> WorkerProcess:
        """Return a worker for a place. Its start does not count for the customer."""
        worker = await self.workers.take()
        use.begun = time.monotonic()
        if not worker.is_prepared:
            worker.is_prepared = True
            self._start(self._prepare(worker))
        return worker

    async def _prepare(self, worker: WorkerProcess) -> None:
        """Load the setup of KZG in a worker while the worker is idle.

        If there are several workers, another one stays free meanwhile.
        """
        idle, enough = self.workers.idle, min(2, self._limits.workers)
        while worker not in idle or self._places < enough:
            await asyncio.sleep(IDLE_SECONDS)
            if not worker.is_alive:
                return
        idle.remove(worker)
        self._places -= 1
        is_well = False
        try:
            await worker.prepare()
            is_well = True
        except (WorkerDied, TimeoutError):
            logger.warning("trace worker %s died while it was idle", worker.pid)
        finally:
            self.workers.release(worker, is_well)

    def _start(self, coroutine: Coroutine[None, None, None]) -> None:
        """Run a coroutine that uses a worker."""
        task = asyncio.create_task(coroutine)
        self._using.add(task)
        task.add_done_callback(self._using.discard)

    def _push(self, owner: Hashable, item: _Run | QueuedTask) -> None:
        """Add a job to the queue of a customer."""
        self._shares.ask(owner, time.monotonic())
        self._queue.push(owner, item)
        self._plan()

    def _free_place(self) -> None:
        self._places += 1
        self._plan()

    def _plan(self) -> None:
        """Start queued jobs soon, those of all requests together that just arrived."""
        if self._places and not self._is_dispatching and len(self._queue):
            self._is_dispatching = True
            asyncio.get_running_loop().call_soon(self._dispatch)

    def _dispatch(self) -> None:
        """Start queued jobs while there are places."""
        self._is_dispatching = False
        while self._places and len(self._queue):
            try:
                owner, first = self._queue.pop(self._may_start)
            except IndexError:
                break
            if isinstance(first, _Run):
                if not first.turn.done():
                    self._places -= 1
                    first.turn.set_result(self._shares.begin(owner, time.monotonic()))
                continue
            tasks = self._array(owner, first)
            if tasks:
                self._places -= 1
                use = self._shares.begin(owner, time.monotonic())
                self._start(self._run_tasks(use, tasks))

    def _may_start(self, owner: Hashable) -> bool:
        """Return whether a customer may have a free worker."""
        return self._shares.may_begin(owner, self._places, time.monotonic())

    def _array(self, owner: Hashable, first: QueuedTask) -> list[QueuedTask]:
        """Return a share of a customer's tasks for one worker, beginning with this one.

        Those of other customers are in other messages, because a worker executes all
        tasks of a message before others, and one of them may take long.
        """
        tasks = [first]
        if first.may_share:
            waiting = self._queue.of(owner)
            share = -(-(1 + len(waiting)) // self._places)
            weight = first.weight
            for following in waiting:
                if isinstance(following, _Run) or not following.may_share:
                    break
                weight += following.weight
                if len(tasks) >= share or weight > wire.TASKS_AT_ONCE:
                    break
                self._queue.pop_of(owner)
                tasks.append(following)
        found = []
        for task in tasks:
            if task.is_wanted:
                found.append(task)
            else:
                self._finish(task, asyncio.CancelledError())
        return found

    # Tasks

    async def _run_tasks(self, use: Use, tasks: list[QueuedTask]) -> None:
        """Execute tasks in one worker, and queue those again that it has not executed."""
        worker: WorkerProcess | None = None
        is_well = False
        left = dict(enumerate(tasks))

        def take(
            place: int, kind: bytes, gas_used: int, seconds: float, rest: bytes
        ) -> None:
            assert worker is not None
            task = left.pop(place)
            task.charge(seconds)
            self._conclude(task, worker, kind, gas_used, rest)

        try:
            worker = await self._take_worker(use)
            descriptor = self._spare_spool(worker)
            names = [task.name for task in tasks]
            timeout = max(task.timeout for task in tasks)
            await worker.execute_tasks(names, descriptor, timeout, take)
            is_well = True
        except TimeoutError:
            assert worker is not None
            logger.warning(
                "trace worker %s exceeded its time limit, killed", worker.pid
            )
            tasks[worker.executing or 0].charge(time.monotonic() - use.begun)
            self._blame(worker, left, None)
        except WorkerDied:
            assert worker is not None
            executing = worker.executing
            seconds = time.monotonic() - use.begun
            error = await self.workers.error_of_dead(worker)
            is_timeout = isinstance(error, ExecutionTimedOut)
            if is_timeout:
                tasks[executing or 0].charge(seconds)
            self._blame(worker, left, None if is_timeout else error, executing)
        except Exception as error:
            for task in left.values():
                self._finish(task, error)
            left.clear()
        finally:
            self._shares.end(use, time.monotonic())
            self.workers.release(worker, is_well)
        for task in reversed(left.values()):
            self._queue.push_first(use.customer, task)
        self._plan()

    def _spare_spool(self, worker: WorkerProcess) -> int | None:
        """Return the descriptor of a file for a long result, if the worker has none."""
        if worker.spool is not None:
            return None
        worker.spool = ResultFile(self._limits.spool_folder)
        return worker.spool.descriptor

    def _conclude(
        self,
        task: QueuedTask,
        worker: WorkerProcess,
        kind: bytes,
        gas_used: int,
        rest: bytes,
    ) -> None:
        """Answer the requests of a task by its outcome."""
        if kind == wire.DONE:
            self._finish(task, TaskAnswer(rest, gas_used))
            return
        if kind == wire.SPOOLED:
            spool, worker.spool = worker.spool, None
            assert spool is not None
            (spool.size,) = LENGTH.unpack(rest)
            self.spooled.add(spool, spool.size)
            self._finish(task, TaskAnswer(b"", gas_used), spool)
            return
        limit = self._limits.result_bytes
        self._finish(task, failure_of(kind, rest, gas_used, task.timeout, limit))

    def _blame(
        self,
        worker: WorkerProcess,
        left: dict[int, QueuedTask],
        error: RpcError | None,
        executing: int | None = None,
    ) -> None:
        """Answer the task that a lost worker was executing, and keep the others.

        error: for its requests; None: its time was over.
        """
        place = worker.executing if executing is None else executing
        for index, task in list(left.items()):
            task.attempts += 1
            if index == place or task.attempts == ATTEMPTS:
                self._finish(left.pop(index), error or TaskTimeout(task.timeout))

    def _finish(
        self,
        task: QueuedTask,
        outcome: TaskAnswer | BaseException,
        spool: ResultFile | None = None,
    ) -> None:
        """Answer all requests of a task. spool: the file of a long result."""
        if self._tasks.pop((task.customer, task.name), None) is not None:
            self._weight -= task.weight
        for waiter in task.waiters:
            if waiter.place is None:
                self._short[waiter.key] -= task.weight
                if not self._short[waiter.key]:
                    del self._short[waiter.key]
            waiter.answer(outcome, task.customer, spool, self.spooled)

    def _failure(self, kind: bytes, rest: bytes) -> RpcError | UnknownValues:
        if kind == wire.UNKNOWN:
            return wire.decode_unknown(rest)
        if kind == wire.REFUSED:
            code, message, data = orjson.loads(rest)
            return ExecutionFailed(code, message, data, is_lasting=False)
        if kind == wire.FAILED:
            text = rest.decode()
            is_timeout = text == ExecutionTimedOut.text
            return ExecutionTimedOut() if is_timeout else TraceFailed(text)
        if kind == wire.TOO_LARGE:
            return TraceResultTooLarge(self._limits.result_bytes)
        if kind == wire.UNAVAILABLE:
            return ServiceUnavailable()
        return InternalError()
