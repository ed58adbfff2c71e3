"""Executes jobs, in a worker process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
import psycopg

from evm.chain_config import ChainConfig
from evm.checks import CallRejected
from evm.simulation.transactions import execute_under, trace_under
from evm.tracers.mux import MuxTracer
from evm.tracers.native import NativeTracer
from evm.tracers.record import RecordTooLarge
from evm.tracers.steps import StepTracer, TracerError
from evm.tracers.struct_log import StructLogger, StructLogOptions
from evm.tracers.vm_trace import VmTracer
from nodeapi.chain.listed_state import replay_before
from nodeapi.chain.replay import NotTraceable, Replay, find_origin
from nodeapi.errors.traces import TraceTooLarge
from nodeapi.tracing.derivation import derive, derive_one
from nodeapi.tracing.jobs import (
    Executed,
    JavaScriptProgram,
    OpcodeTracer,
    TraceJob,
    TracerGroup,
    VmTracing,
)
from nodeapi.tracing.tracer_runs import (
    TracerRun,
    events_of,
    new_opcode_tracer,
    new_program,
    place_of,
)

if TYPE_CHECKING:
    from evm.transactions import Transaction

Write = Callable[[bytes], object]


class JobFailed(Exception):
    """Raised when a job fails. The message is geth's, for the caller."""


@contextmanager
def snapshot(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Read one snapshot of the database in a `with` block, unaffected by imports."""
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
    """Execute a job and write its result.

    progress: called before each transaction. Raises: JobFailed, psycopg.Error.
    """
    tracer = job.tracer
    with snapshot(connection):
        try:
            if job.fork is not None:
                _trace_under(connection, job, job.fork, write, progress)
            elif isinstance(tracer, NativeTracer):
                derive(connection, job, tracer, write, progress)
            else:
                answers = _Answers(connection, job, tracer, write)
                _replay(connection, job, answers, progress)
        except NotTraceable as error:
            raise JobFailed(str(error)) from error


def _replay(
    connection: psycopg.Connection[Any],
    job: TraceJob,
    answers: _Answers,
    progress: Callable[[], object],
) -> None:
    """Execute a job's block again, up to its last transaction. Raises: NotTraceable."""
    config = _chain_config(connection, job.network_id)
    origin = find_origin(connection, job.network_id, config, job.block_hash)
    transactions = origin.block.transactions[job.first : job.last + 1]
    if job.is_single and not transactions:
        raise JobFailed("transaction not found")
    if transactions:
        replay = replay_before(
            connection,
            job.network_id,
            origin,
            job.first,
            progress,
            own=len(transactions),
        )
    for index, transaction in enumerate(transactions, job.first):
        progress()
        answers.add(replay, index, transaction)
    answers.finish()


def _trace_under(
    connection: psycopg.Connection[Any],
    job: TraceJob,
    fork: str,
    write: Write,
    progress: Callable[[], object],
) -> None:
    """Trace a transaction by the rules of a fork, the ones before it by their own.

    fork: its name. Raises: JobFailed, NotTraceable.
    """
    config = _chain_config(connection, job.network_id)
    origin = find_origin(connection, job.network_id, config, job.block_hash)
    block, index = origin.block, job.first
    if index >= len(block.transactions):
        raise JobFailed("transaction not found")
    replay = replay_before(connection, job.network_id, origin, index, progress)
    progress()
    rules = origin.call_block(config.named_fork(fork))
    transaction = block.transactions[index]
    deadline = time.monotonic() + job.timeout
    events = events_of(job.tracer)
    events.log_count = replay.log_count
    try:
        run = TracerRun(job.tracer, write, deadline)
        if run.steps is None:
            execute_under(replay.world, rules, transaction, events)
        else:
            trace_under(
                replay.world,
                rules,
                transaction,
                run.steps,
                events,
                deadline=deadline,
                index=index,
                block_hash=block.header.hash,
            )
        run.finish(events, replay.world, place_of(block, index))
    except CallRejected as error:
        raise JobFailed(f"tracing failed: {error.text}") from error
    except TracerError as error:
        raise JobFailed(str(error)) from error
    except RecordTooLarge as error:
        raise JobFailed(TraceTooLarge(index).message) from error


def _chain_config(connection: psycopg.Connection[Any], network_id: int) -> ChainConfig:
    row = connection.execute(
        "SELECT genesis FROM networks_network WHERE id = %s", (network_id,)
    ).fetchone()
    if row is None:
        raise JobFailed("unknown network")
    return ChainConfig.from_genesis(row[0])


class _Answers:
    """Writes the JSON result of a job.

    A JavaScript program that fails leaves an error in its transaction's place, and the
    other transactions are traced. Any other tracer that fails, muxTracer with programs
    included, fails the whole job. geth does the same.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        job: TraceJob,
        tracer: Executed,
        write: Write,
    ) -> None:
        self._connection = connection
        self._job = job
        self._tracer = tracer
        self._write = write
        self._begin = b"["

    def add(self, replay: Replay, index: int, transaction: Transaction) -> None:
        """Trace the next transaction. Raises: JobFailed."""
        tracer = self._tracer
        try:
            if isinstance(tracer, StructLogOptions):
                self._log(replay, transaction, tracer)
            elif isinstance(tracer, VmTracing):
                self._trace_vm(replay, index, transaction, tracer)
            else:
                self._run(replay, index, transaction, tracer)
        except TracerError as error:
            raise JobFailed(str(error)) from error

    def finish(self) -> None:
        """Write the end of the list."""
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

    def _trace_vm(
        self, replay: Replay, index: int, transaction: Transaction, wanted: VmTracing
    ) -> None:
        rest = derive_one(self._connection, self._job, wanted.replay, index)
        self._head(transaction, b"result")
        # null is the value of `vmTrace`, the last member.
        self._write(rest.removesuffix(b"null}"))
        tracer = VmTracer(self._write)
        replay.trace(tracer, self._job.timeout)
        self._write(tracer.result() + b"}")
        self._tail()

    def _run(
        self,
        replay: Replay,
        index: int,
        transaction: Transaction,
        wanted: JavaScriptProgram | OpcodeTracer | TracerGroup,
    ) -> None:
        try:
            tracer = self._tracer_of(wanted, index)
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

    def _tracer_of(
        self, wanted: JavaScriptProgram | OpcodeTracer | TracerGroup, index: int
    ) -> StepTracer:
        """Return a tracer for the transaction at an index. Raises: TracerError."""
        if isinstance(wanted, JavaScriptProgram):
            return new_program(wanted, time.monotonic() + self._job.timeout)
        if isinstance(wanted, OpcodeTracer):
            return new_opcode_tracer(wanted)
        executed: list[tuple[str, StepTracer]] = []
        recorded: list[tuple[str, Callable[[], bytes]]] = []
        for name, member in wanted.members:
            if isinstance(member, NativeTracer):
                answer = partial(derive_one, self._connection, self._job, member, index)
                recorded.append((name, answer))
            else:
                assert not isinstance(member, StructLogOptions | VmTracing)
                executed.append((name, self._tracer_of(member, index)))
        return MuxTracer(executed, recorded)

    def _error(self, transaction: Transaction, error: TracerError) -> None:
        tracer = self._tracer
        is_program = isinstance(tracer, JavaScriptProgram) and tracer.source != ""
        if self._job.is_single or not is_program:
            raise error
        self._head(transaction, b"error")
        self._write(orjson.dumps(str(error)))
        self._tail()
