"""A job, executed: what a worker process does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import orjson
import psycopg

from nodeapi.chain.replay import NotTraceable, Replay, find_origin
from nodeapi.evm.chain_config import ChainConfig
from nodeapi.tracers.javascript import JavaScriptTracer, tracer_source
from nodeapi.tracers.native import NativeTracer
from nodeapi.tracers.steps import StepTracer, TracerError
from nodeapi.tracers.struct_log import StructLogger, StructLogOptions
from nodeapi.tracing.derivation import derive
from nodeapi.tracing.jobs import JavaScriptProgram, TraceJob

if TYPE_CHECKING:
    from nodeapi.evm.transactions import Transaction

Write = Callable[[bytes], object]


class JobFailed(Exception):
    """A job without an answer; the text is for the caller, in geth's words."""


@contextmanager
def one_moment(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Have all that is read belong together, whatever is imported meanwhile."""
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    with connection.transaction():
        yield


def execute(
    connection: psycopg.Connection[Any],
    job: TraceJob,
    write: Write,
    progress: Callable[[], object],
) -> None:
    """Execute a job, and write its answer.

    progress: called before each transaction. Raises: JobFailed, psycopg.Error.
    """
    tracer = job.tracer
    with one_moment(connection):
        try:
            if isinstance(tracer, NativeTracer):
                derive(connection, job, tracer, write, progress)
            else:
                _replay(connection, job, _Answers(job, tracer, write), progress)
        except NotTraceable as error:
            raise JobFailed(str(error)) from error


def _replay(
    connection: psycopg.Connection[Any],
    job: TraceJob,
    answers: _Answers,
    progress: Callable[[], object],
) -> None:
    """Execute the block of a job again, as far as is wanted. Raises: NotTraceable."""
    config = _chain_config(connection, job.network_id)
    origin = find_origin(connection, job.network_id, config, job.block_hash)
    replay = Replay(origin)
    transactions = origin.block.transactions[: job.last + 1]
    if job.is_single and job.first >= len(transactions):
        raise JobFailed("transaction not found")
    for index, transaction in enumerate(transactions):
        progress()
        if index < job.first:
            replay.skip()
        else:
            answers.add(replay, transaction)
    answers.finish()


def _chain_config(connection: psycopg.Connection[Any], network_id: int) -> ChainConfig:
    row = connection.execute(
        "SELECT genesis FROM networks_network WHERE id = %s", (network_id,)
    ).fetchone()
    if row is None:
        raise JobFailed("unknown network")
    return ChainConfig.from_genesis(row[0])


class _Answers:
    """The JSON of a job, as it grows.

    What fails in the struct logger fails the job; a program that fails leaves an error
    in its transaction's place, and the others go on. So it is in geth.
    """

    def __init__(
        self, job: TraceJob, tracer: StructLogOptions | JavaScriptProgram, write: Write
    ) -> None:
        self._job = job
        self._tracer = tracer
        self._write = write
        self._begin = b"["

    def add(self, replay: Replay, transaction: Transaction) -> None:
        """Trace the next transaction. Raises: JobFailed."""
        tracer = self._tracer
        try:
            if isinstance(tracer, StructLogOptions):
                self._log(replay, transaction, tracer)
            else:
                self._run(replay, transaction, tracer)
        except TracerError as error:
            raise JobFailed(str(error)) from error

    def finish(self) -> None:
        """Close the list."""
        if not self._job.is_single:
            self._write(b"[]" if self._begin == b"[" else b"]")

    def _head(self, transaction: Transaction, member: bytes) -> None:
        if not self._job.is_single:
            name = transaction.hash.hex().encode()
            self._write(b'%b{"txHash":"0x%b","%b":' % (self._begin, name, member))
            self._begin = b","

    def _tail(self) -> None:
        if not self._job.is_single:
            self._write(b"}")

    def _log(
        self, replay: Replay, transaction: Transaction, options: StructLogOptions
    ) -> None:
        self._head(transaction, b"result")
        logger = StructLogger(options, self._write)
        replay.trace(logger, self._job.timeout)
        self._write(logger.result())
        self._tail()

    def _run(
        self, replay: Replay, transaction: Transaction, program: JavaScriptProgram
    ) -> None:
        try:
            tracer = new_program(program, self._job.timeout)
        except TracerError as error:
            replay.skip()
            self._error(transaction, error)
            return
        try:
            replay.trace(tracer, self._job.timeout)
            result = tracer.result()
        except TracerError as error:
            self._error(transaction, error)
        else:
            self._head(transaction, b"result")
            self._write(result)
            self._tail()

    def _error(self, transaction: Transaction, error: TracerError) -> None:
        if self._job.is_single:
            raise error
        self._head(transaction, b"error")
        self._write(orjson.dumps(str(error)))
        self._tail()


def new_program(program: JavaScriptProgram, timeout: float) -> StepTracer:
    """Return the tracer that a program is, for one transaction.

    timeout: in seconds, from now on. Raises: TracerError.
    """
    source = tracer_source(program.source)
    return JavaScriptTracer(source, program.config, time.monotonic() + timeout)
