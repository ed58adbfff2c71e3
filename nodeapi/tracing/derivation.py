"""Results of native tracers, computed from trace records in a worker process.

The service computes most of them itself (`nodeapi.store.derived`). A transaction with
long records would block its event loop, even from a thread, because of the GIL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evm.tracers.derived import (
    CALLS,
    PRESTATE,
    Derivation,
    RecordedTransaction,
    code_hashes,
)
from evm.tracers.native import NativeTracer, derivation
from evm.tracers.record import RecordTooLarge
from nodeapi.chain.replay import NotTraceable
from nodeapi.errors.traces import TraceTooLarge
from nodeapi.results.entries import entry_start

if TYPE_CHECKING:
    import psycopg

    from nodeapi.tracing.jobs import TraceJob

_RECORDS = """
    SELECT b.number, t.index, t.hash, t.document,
        CASE WHEN %(calls)s THEN r.calls ELSE ''::bytea END,
        CASE WHEN %(prestate)s THEN r.prestate ELSE ''::bytea END,
        r.details
    FROM nodeapi_block b
    JOIN nodeapi_transactionrecord r ON r.block_id = b.id
    JOIN nodeapi_transaction t ON t.block_id = r.block_id AND t.index = r.index
    WHERE b.network_id = %(network)s AND b.hash = %(hash)s
        AND r.index BETWEEN %(first)s AND %(last)s
    ORDER BY r.index
"""

_CODES = "SELECT hash, code FROM nodeapi_code WHERE hash = ANY(%s)"


def derive(
    connection: psycopg.Connection[Any],
    job: TraceJob,
    tracer: NativeTracer,
    write: Callable[[bytes], object],
    progress: Callable[[], object],
) -> None:
    """Write a native tracer's result of a job.

    progress: called before each transaction. Raises: NotTraceable.
    """
    if job.is_single:
        progress()
        write(derive_one(connection, job, tracer, job.first))
        return
    answers = _answers(connection, job, derivation(tracer), progress)
    begin = b"["
    for name, answer in answers:
        write(begin + entry_start(name))
        write(answer)
        write(b"}")
        begin = b","
    write(b"[]" if begin == b"[" else b"]")


def derive_one(
    connection: psycopg.Connection[Any], job: TraceJob, tracer: NativeTracer, index: int
) -> bytes:
    """Return a native tracer's result of one transaction of a job's block.

    Raises: NotTraceable.
    """
    only = replace(job, first=index, last=index)
    for _, answer in _answers(connection, only, derivation(tracer), lambda: None):
        return answer
    raise NotTraceable("transaction not found")


def _answers(
    connection: psycopg.Connection[Any],
    job: TraceJob,
    derivation: Derivation,
    progress: Callable[[], object],
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the hash and the result of each transaction of a job."""
    asked = {
        "network": job.network_id,
        "hash": job.block_hash,
        "first": job.first,
        "last": job.last,
        "calls": CALLS in derivation.needs,
        "prestate": PRESTATE in derivation.needs,
    }
    # Fetch single rows, because one row may take most of the memory.
    with connection.cursor(name="records", binary=True) as cursor:
        cursor.itersize = 1
        cursor.execute(_RECORDS, asked)
        for number, *row in cursor:
            progress()
            recorded = RecordedTransaction(job.block_hash, number, *row)
            codes: dict[bytes, bytes] = {}
            try:
                if PRESTATE in derivation.needs:
                    hashes = list(code_hashes(recorded))
                    codes = dict(connection.execute(_CODES, (hashes,), binary=True))
                yield recorded.hash, derivation.derive(recorded, codes)
            except RecordTooLarge as error:
                raise NotTraceable(TraceTooLarge(recorded.index).message) from error
            except ValueError as error:
                error.add_note(f"records of transaction {recorded.index} of the block")
                raise
