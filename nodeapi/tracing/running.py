"""Execution of an array of tasks in a worker process.

Tasks that miss rows are executed again when the rows of all of them have been read, with
one query of each kind. So a task that reads one unknown slot costs two short executions
instead of a round trip to the database.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import orjson
import psycopg

from evm.proved_state import NotEnumerable, UnknownValues
from evm.trie import MissingTrieNode
from jsonrpc.errors import RpcError
from nodeapi.errors.blocks import NotProved
from nodeapi.errors.proofs import SlotsNotEnumerable
from nodeapi.proofs.unknown import UnknownNodes
from nodeapi.results.spool import SpoolFull
from nodeapi.tracing import wire
from nodeapi.tracing.context import (
    TaskContext,
    TaskFailed,
    TaskResult,
    TaskTimedOut,
    TransientFailure,
)
from nodeapi.tracing.states import RowsMissing, StateCache, StateMoved
from nodeapi.tracing.tasks import REPEATABLE, TASKS

if TYPE_CHECKING:
    from nodeapi.results.spool import SpoolWriter
    from nodeapi.tracing.alarm import Alarm
    from nodeapi.tracing.jobs import TaskJob

logger = logging.getLogger(__name__)

ROUNDS = 3
"""Times that missing rows of several tasks are read together. Afterwards, each task reads
its rows one by one."""
TURN_SECONDS = 0.02
"""Time after which the rest of an array is returned to the service, because it is another
customer's turn, or another worker is free. It begins again when missing rows were read."""
REPORT_SECONDS = 0.5
"""Time after which the worker reports before the next task that it is alive. The
service allows for the time of one task."""
ATTEMPTS = 3
"""Executions of a task while the chain is reorganised."""

Answer = Callable[[int, bytes, int, float, bytes], object]
"""Takes a task's place, the kind of its outcome, the gas used, the seconds of processor
time, and the rest."""


class NoSpool(Exception):
    """Raised when an earlier task of the array has used up the file for a long result.

    The task is returned to the service, which sends another file with it.
    """


class TaskRunner:
    """Executes arrays of tasks one after the other, with caches that they share."""

    def __init__(
        self,
        alarm: Alarm,
        open_spool: Callable[[], SpoolWriter | None],
        mark: Callable[[int], object],
        progress: Callable[[], object],
    ) -> None:
        """Prepare.

        open_spool: empties the file for one long result and returns its writer, or None
            if there is no file. A task that fails leaves the file to the next one.
        mark: takes the place of the task that is about to begin, and -1 at its end.
        progress: called by long tasks.
        """
        self._alarm = alarm
        self._open_spool = open_spool
        self._mark = mark
        self._progress = progress
        self._states = StateCache()
        self._reported = 0.0
        self._turn_end = 0.0
        self._spent: dict[int, tuple[float, float]] = {}
        """Seconds of each task of the array, and those of processor time, by its place."""

    def run(
        self,
        connect: Callable[[], psycopg.Connection[Any]],
        jobs: Sequence[TaskJob],
        answer: Answer,
    ) -> None:
        """Execute tasks and answer at least one; return without the rest after a turn.

        connect: returns the connection, opened again if it was lost.
        """
        self._reported = time.monotonic()
        self._turn_end = self._reported + TURN_SECONDS
        self._spent.clear()
        places = list(range(len(jobs)))
        if len(jobs) > 1:
            for _ in range(ROUNDS):
                places = self._round(connect, jobs, places, answer)
                if not places:
                    return
        for place in places:
            self._execute(connect, jobs[place], place, answer)
            if self._is_turn_over():
                return

    def _round(
        self,
        connect: Callable[[], psycopg.Connection[Any]],
        jobs: Sequence[TaskJob],
        places: list[int],
        answer: Answer,
    ) -> list[int]:
        """Execute tasks until each is answered or misses rows, and read the rows.

        Return the places of the other tasks; none when the turn is over.
        """
        left = []
        self._states.collect(True)
        try:
            for done, place in enumerate(places, 1):
                job = jobs[place]
                if job.task not in REPEATABLE:
                    left.append(place)
                    continue
                try:
                    self._execute(connect, job, place, answer)
                    if self._is_turn_over():
                        return []
                except RowsMissing:
                    left.append(place)
                    if self._spent[place][0] > TURN_SECONDS:
                        # Others should not wait until it is executed for the third time.
                        self._states.collect(False)
                        self._execute(connect, job, place, answer)
                        return []
                    if self._is_turn_over():
                        left += places[done:]
                        break
        finally:
            self._states.collect(False)
        try:
            self._states.read_wanted()
        except psycopg.OperationalError as error:
            # The tasks that need the rows meet the fault again.
            logger.warning("trace worker: the database: %s", error)
        self._turn_end = time.monotonic() + TURN_SECONDS
        return left

    def _is_turn_over(self) -> bool:
        """Return whether the rest of the array should be returned to the service."""
        return time.monotonic() > self._turn_end

    def _execute(
        self,
        connect: Callable[[], psycopg.Connection[Any]],
        job: TaskJob,
        place: int,
        answer: Answer,
    ) -> None:
        """Execute a task and answer it.

        Earlier executions of the task count for its time limit and its price.

        Raises: RowsMissing.
        """
        started, processor = time.monotonic(), time.thread_time()
        if started - self._reported > REPORT_SECONDS:
            self._progress()
            self._reported = started
        before, paid = self._spent.get(place, (0.0, 0.0))
        deadline = started + job.timeout - before
        self._mark(place)
        try:
            kind, gas_used, rest = self._outcome(connect, job, deadline)
            answer(place, kind, gas_used, paid + time.thread_time() - processor, rest)
        except NoSpool:
            self._turn_end = 0.0
        finally:
            self._mark(-1)
            self._spent[place] = (
                before + time.monotonic() - started,
                paid + time.thread_time() - processor,
            )

    def _outcome(
        self,
        connect: Callable[[], psycopg.Connection[Any]],
        job: TaskJob,
        deadline: float,
    ) -> tuple[bytes, int, bytes]:
        """Execute a task; return the kind of its outcome, the gas used, and the rest.

        deadline: in the time of `time.monotonic()`. Raises: RowsMissing.
        """
        for _ in range(ATTEMPTS):
            try:
                return self._attempt(connect, job, deadline)
            except StateMoved:
                continue
            except psycopg.OperationalError as error:
                # The connection may have been lost while it was idle.
                logger.warning("trace worker: the database: %s", error)
        return wire.UNAVAILABLE, 0, b""

    def _attempt(
        self,
        connect: Callable[[], psycopg.Connection[Any]],
        job: TaskJob,
        deadline: float,
    ) -> tuple[bytes, int, bytes]:
        """Execute a task once.

        Raises: RowsMissing, StateMoved, psycopg.OperationalError.
        """
        spool = _LazySpool(self._open_spool)
        try:
            with self._alarm.until(deadline):
                context = self._context(connect, job, spool, deadline)
                result = TASKS[job.task](context, job.arguments)
        except TaskFailed as error:
            return _failed(error)
        except TaskTimedOut:
            self._states = StateCache()  # it may have been interrupted in any place
            return wire.TIMED_OUT, 0, b""
        except SpoolFull:
            return wire.TOO_LARGE, 0, b""
        except UnknownValues as unknown:
            return wire.UNKNOWN, 0, wire.encode_unknown(unknown)
        except UnknownNodes as unknown:
            return wire.UNKNOWN_NODES, 0, wire.encode_keys(unknown.keys)
        except RpcError as error:
            return _refused(error)
        except NotEnumerable:
            return _refused(SlotsNotEnumerable())
        except MissingTrieNode:
            if self._states.checkpoint(connect(), job.network_id) is None:
                logger.exception("trace worker: task %s failed", job.task)
                return wire.CRASHED, 0, b""
            return _refused(NotProved())
        except (NoSpool, RowsMissing, StateMoved, psycopg.OperationalError):
            raise
        except (MemoryError, SystemError, ConnectionError):
            raise
        except Exception:
            logger.exception("trace worker: task %s failed", job.task)
            return wire.CRASHED, 0, b""
        return self._done(result, spool)

    def _context(
        self,
        connect: Callable[[], psycopg.Connection[Any]],
        job: TaskJob,
        spool: _LazySpool,
        deadline: float,
    ) -> TaskContext:
        return TaskContext(
            connect(),
            job.network_id,
            job.block_hash,
            deadline,
            self._states,
            spool.write,
            self._progress,
            job.past,
        )

    def _done(
        self, result: TaskResult | bytes, spool: _LazySpool
    ) -> tuple[bytes, int, bytes]:
        """Return the outcome of a task that has a result."""
        found = result if isinstance(result, TaskResult) else TaskResult(result)
        try:
            if len(found.result) > wire.INLINE_BYTES or spool.writer is not None:
                spool.write(found.result)
                return wire.SPOOLED, found.gas_used, spool.finish()
        except SpoolFull:
            return wire.TOO_LARGE, found.gas_used, b""
        return wire.DONE, found.gas_used, found.result


def _failed(error: TaskFailed) -> tuple[bytes, int, bytes]:
    """Return the outcome of a task that has failed.

    Errors are not sent by file, hence their size is limited. A call can be reverted with
    megabytes of data.
    """
    rest = orjson.dumps([error.code, error.message, error.data, error.is_lasting])
    if len(rest) > wire.INLINE_BYTES:
        return wire.TOO_LARGE, error.gas_used, wire.LENGTH.pack(wire.INLINE_BYTES)
    return wire.FAILED, error.gas_used, rest


def _refused(error: RpcError) -> tuple[bytes, int, bytes]:
    """Return the outcome of a task that fails because of what is stored at the moment."""
    return _failed(TransientFailure(error.code, error.message, error.data))


class _LazySpool:
    """The file of a task's long result, which is taken with the first write."""

    def __init__(self, open_spool: Callable[[], SpoolWriter | None]) -> None:
        self._open = open_spool
        self.writer: SpoolWriter | None = None

    def write(self, piece: bytes) -> None:
        """Add a piece. Raises: SpoolFull; NoSpool if there is no file."""
        if self.writer is None:
            self.writer = self._open()
            if self.writer is None:
                raise NoSpool
        self.writer.write(piece)

    def finish(self) -> bytes:
        """Return the number of bytes written, encoded."""
        assert self.writer is not None
        self.writer.flush()
        return wire.LENGTH.pack(self.writer.size)
