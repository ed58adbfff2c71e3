"""Answers made of records in a worker process.

The service makes most of them itself (`nodeapi.store.derived`). What a transaction has
too much of would hold its event loop up, be it in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nodeapi.chain.replay import NotTraceable
from nodeapi.errors import TraceTooLarge
from nodeapi.store.entries import entry_start
from nodeapi.tracers.derived import CALLS, PRESTATE, Derivation, code_hashes
from nodeapi.tracers.native import NativeTracer, derivation
from nodeapi.tracers.record import RecordTooLarge

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


@dataclass(frozen=True, slots=True)
class _Recorded:
    """A stored transaction with its records; see `nodeapi.tracers.derived`."""

    block_hash: bytes
    block_number: int
    index: int
    hash: bytes
    document: bytes
    calls: bytes
    prestate: bytes
    details: bytes


def derive(
    connection: psycopg.Connection[Any],
    job: TraceJob,
    tracer: NativeTracer,
    write: Callable[[bytes], object],
    progress: Callable[[], object],
) -> None:
    """Write a native tracer's answer to a job.

    progress: called before each transaction. Raises: NotTraceable.
    """
    answers = _answers(connection, job, derivation(tracer), progress)
    if job.is_single:
        for _, answer in answers:
            write(answer)
            return
        raise NotTraceable("transaction not found")
    begin = b"["
    for name, answer in answers:
        write(begin + entry_start(name))
        write(answer)
        write(b"}")
        begin = b","
    write(b"[]" if begin == b"[" else b"]")


def _answers(
    connection: psycopg.Connection[Any],
    job: TraceJob,
    derivation: Derivation,
    progress: Callable[[], object],
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the hash of each transaction of a job with the answer for it."""
    asked = {
        "network": job.network_id,
        "hash": job.block_hash,
        "first": job.first,
        "last": job.last,
        "calls": CALLS in derivation.needs,
        "prestate": PRESTATE in derivation.needs,
    }
    # Row by row: one alone may be as much as there is memory for.
    with connection.cursor(name="records", binary=True) as cursor:
        cursor.itersize = 1
        cursor.execute(_RECORDS, asked)
        for number, *row in cursor:
            progress()
            recorded = _Recorded(job.block_hash, number, *row)
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
