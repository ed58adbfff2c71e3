"""Usage statistics, counted in memory and written to the database periodically.

Answering a request writes nothing. A killed process loses its statistics of the last
five seconds. Limits do not depend on them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from typing import Any

from psycopg import AsyncConnection, Error

from jsonrpc.errors import RequestTimedOut, RpcError
from keys.metering.failures import Failures
from keys.metering.latencies import BUCKETS
from keys.metering.refusals import Refusals
from keys.metering.totals import Counter, Measured, Totals

logger = logging.getLogger(__name__)

OK = "ok"
CLIENT_ERROR = "client_error"
DENIED = "denied"
LIMITED = "limited"
SERVER_ERROR = "server_error"
TIMEOUT = "timeout"

UNKNOWN_METHOD = "(unknown)"
"""Replaces unknown method names, so that customers can't add arbitrary names to the
table."""

FLUSH_SECONDS = 5
"""Interval of the writes. It divides 60, so all counts between two writes belong to one
minute."""

MAX_WAITING = 100_000
"""Most rows kept in memory while the database is unavailable, about 1 kB each. Further
rows are dropped."""

BATCH_ROWS = 2_000
"""Counters written by one statement. Each is added to three rows of its key."""

CONNECT_SECONDS = 2
_PATIENCE = "SET statement_timeout = '10s'"

_CREDITS, _MICROSECONDS, _BYTES, _LATENCIES = range(4)
_ZEROS = [0] * (_LATENCIES + BUCKETS)
"""A counter: credits, microseconds, bytes, and a histogram of latencies."""

Use = tuple[int, int, int, str, str]
"""Key version, API key, network, method (a registered name or UNKNOWN_METHOD), outcome.
"""

_Counter = list[int]
_Row = tuple[int, int, int, str, str]
"""Start of the minute in Unix seconds, API key, network, method, outcome."""

_ADD = """
    WITH used AS MATERIALIZED (
        SELECT a.id AS api_key_id, n.id AS network_id, r.method, r.outcome, r.calls,
            r.credits, r.microseconds, r.bytes, r.latencies::int8[] AS latencies
        FROM unnest(%(api_keys)s::int8[], %(networks)s::int8[], %(methods)s::text[],
            %(outcomes)s::text[], %(calls)s::int8[], %(credits)s::int8[],
            %(microseconds)s::int8[], %(bytes)s::int8[], %(latencies)s::text[])
            AS r (api_key, network, method, outcome, calls, credits, microseconds,
            bytes, latencies)
        JOIN keys_apikey a ON a.id = r.api_key
        JOIN networks_network n ON n.id = r.network
    ), tiers AS (
        SELECT span, to_timestamp(%(minute)s::int8 / span * span) AS start
        FROM unnest(ARRAY[60, 3600, 86400]) AS t (span)
    ), by_key AS (
        INSERT INTO keys_usagebucket AS u (api_key_id, span, start, network_id, method,
            outcome, calls, credits, duration_us, bytes_out, latencies)
        SELECT api_key_id, span, start, network_id, method, outcome, calls, credits,
            microseconds, bytes, latencies
        FROM used, tiers ORDER BY api_key_id, span, start, network_id, method, outcome
        ON CONFLICT (api_key_id, span, start, network_id, method, outcome)
        DO UPDATE SET
            calls = u.calls + EXCLUDED.calls,
            credits = u.credits + EXCLUDED.credits,
            duration_us = u.duration_us + EXCLUDED.duration_us,
            bytes_out = u.bytes_out + EXCLUDED.bytes_out,
            latencies = keys_add(u.latencies, EXCLUDED.latencies)
    ), all_keys AS (
        SELECT network_id, method, outcome, sum(calls) AS calls,
            sum(credits) AS credits, sum(microseconds) AS microseconds,
            sum(bytes) AS bytes, keys_sum(latencies) AS latencies
        FROM used GROUP BY network_id, method, outcome
    ), together AS (
        INSERT INTO keys_usagetotal AS u (span, start, network_id, method, outcome,
            calls, credits, duration_us, bytes_out, latencies)
        SELECT span, start, network_id, method, outcome, calls, credits, microseconds,
            bytes, latencies
        FROM all_keys, tiers ORDER BY span, start, network_id, method, outcome
        ON CONFLICT (span, start, network_id, method, outcome) DO UPDATE SET
            calls = u.calls + EXCLUDED.calls,
            credits = u.credits + EXCLUDED.credits,
            duration_us = u.duration_us + EXCLUDED.duration_us,
            bytes_out = u.bytes_out + EXCLUDED.bytes_out,
            latencies = keys_add(u.latencies, EXCLUDED.latencies)
    )
    INSERT INTO keys_dailyuse AS u (day, api_key_id, calls, failed, credits)
    SELECT (to_timestamp(%(minute)s) AT TIME ZONE 'UTC')::date, api_key_id, sum(calls),
        coalesce(sum(calls) FILTER (WHERE outcome <> 'ok'), 0), sum(credits)
    FROM used GROUP BY api_key_id ORDER BY api_key_id
    ON CONFLICT (day, api_key_id) DO UPDATE SET
        calls = u.calls + EXCLUDED.calls,
        failed = u.failed + EXCLUDED.failed,
        credits = u.credits + EXCLUDED.credits
"""
# A single statement counts each call in its minute, hour and day, of its key and of all
# keys together, or in none of them. UTC hours and days begin at multiples of Unix time.
# All processes write rows in the same order, which prevents deadlocks.

_USED = """
    INSERT INTO keys_keyversionuse AS u (version_id, last_used_at, last_network_id)
    SELECT v.id, to_timestamp(r.at), n.id
    FROM unnest(%s::int8[], %s::int8[], %s::int8[]) AS r (id, at, network)
    JOIN keys_keyversion v ON v.id = r.id
    LEFT JOIN networks_network n ON n.id = r.network ORDER BY v.id
    ON CONFLICT (version_id) DO UPDATE SET
        last_used_at = EXCLUDED.last_used_at, last_network_id = EXCLUDED.last_network_id
    WHERE u.last_used_at <= EXCLUDED.last_used_at
"""


def outcome_of(error: RpcError) -> str:
    """Return the outcome under which a call with this error is counted."""
    if isinstance(error, RequestTimedOut):
        return TIMEOUT
    if error.http_status in (402, 429):
        return LIMITED
    if error.http_status in (401, 403):
        return DENIED
    return SERVER_ERROR if error.code == -32603 else CLIENT_ERROR


class Meter:
    """Counts calls.

    conninfo: database connection string of libpq.
    wall_clock: returns Unix time in seconds.
    """

    def __init__(
        self, conninfo: str, *, wall_clock: Callable[[], float] = time.time
    ) -> None:
        self.conninfo = conninfo
        self._wall_clock = wall_clock
        self._counters: dict[Use, _Counter] = {}
        self._waiting: dict[_Row, _Counter] = {}
        self._used: dict[int, tuple[int, int]] = {}  # minute, network
        self._stopping = asyncio.Event()
        self._flushing: asyncio.Task[None] | None = None
        self.dropped = 0
        """Calls that are missing in the statistics because of a long outage."""
        self.flushes = self.failed_flushes = 0
        self.flush_seconds = 0.0
        """Total duration of all writes."""
        self._totals = Totals()
        self._refusals = Refusals(wall_clock)
        self._failures = Failures(wall_clock)

    def book(self, use: Use, credits: int, microseconds: int, size: int) -> None:
        """Count a call. size: bytes of its response."""
        counter = self._counters.get(use)
        if counter is None:
            counter = self._counters[use] = _ZEROS.copy()
        counter[0] += credits
        counter[1] += microseconds
        counter[2] += size
        counter[3 + microseconds.bit_length()] += 1

    def fail(
        self, api_key_id: int, network_id: int, method: str, error: RpcError
    ) -> None:
        """Record a call that was answered with an error, for the key's owner.

        network_id: 0 if the key itself was rejected.
        method: "" if the whole request was rejected.
        """
        if error.reason:
            self._refusals.note((api_key_id, network_id, error.reason), method)
        self._failures.note(api_key_id, network_id, method, error)

    @property
    def waiting(self) -> int:
        """Number of rows that have not been written to the database yet."""
        return len(self._waiting)

    def totals(self) -> dict[Measured, Counter]:
        """Return the counts since the start, whether or not they were written."""
        return self._totals.so_far(self._counters)

    async def start(self) -> None:
        """Begin to flush every few seconds."""
        self._flushing = asyncio.create_task(self._flush_for_ever())

    async def stop(self) -> None:
        """Write the counts if the database is available, and stop."""
        self._stopping.set()
        if self._flushing is not None:
            await self._flushing

    async def flush(self) -> None:
        """Write the counts to the database. Keep them if that fails."""
        self._close_minute()
        if not self._used and not self._refusals and not self._failures:
            return  # then no rows are waiting either
        began = time.perf_counter()
        try:
            # A connection for a few milliseconds in five seconds need not be kept.
            async with await AsyncConnection.connect(
                self.conninfo, connect_timeout=CONNECT_SECONDS, autocommit=True
            ) as connection:
                await connection.execute(_PATIENCE)
                await self._write(connection)
        except Error as error:
            self.failed_flushes += 1
            logger.warning("usage could not be written, and will be retried: %s", error)
        finally:
            self.flushes += 1
            self.flush_seconds += time.perf_counter() - began

    async def _write(self, connection: AsyncConnection) -> None:
        for rows in _batches(sorted(self._waiting)):
            await connection.execute(_ADD, self._parameters(rows))
            for row in rows:
                del self._waiting[row]
        while self._used:
            versions = sorted(self._used)[:BATCH_ROWS]
            uses = zip(*(self._used[version] for version in versions), strict=True)
            await connection.execute(_USED, [versions, *map(list, uses)])
            for version in versions:
                del self._used[version]
        await self._refusals.write(connection)
        await self._failures.write(connection)

    async def _flush_for_ever(self) -> None:
        while True:
            rest = FLUSH_SECONDS - self._wall_clock() % FLUSH_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(rest):
                    await self._stopping.wait()
            try:
                await self.flush()
            except Exception:
                logger.exception("usage was not written")
            if self._stopping.is_set():
                return

    def _close_minute(self) -> None:
        """Move the counts since the last write to the rows to be written, by minute."""
        counters, self._counters = self._counters, {}
        self._totals.add(counters)
        now = int(self._wall_clock())
        # Flushes run shortly after multiples of 5 s, and write counts of the time before.
        minute = int(self._wall_clock() - FLUSH_SECONDS / 2) // 60 * 60
        for use, counter in counters.items():
            version_id, api_key_id, network_id, method, outcome = use
            self._used[version_id] = now, network_id
            row = (minute, api_key_id, network_id, method, outcome)
            known = self._waiting.get(row)
            if known is not None:
                self._waiting[row] = [
                    a + b for a, b in zip(known, counter, strict=True)
                ]
            elif len(self._waiting) < MAX_WAITING:
                self._waiting[row] = counter
            else:
                self.dropped += sum(counter[_LATENCIES:])

    def _parameters(self, rows: list[_Row]) -> dict[str, int | list[Any]]:
        """Return rows of one minute as parameters of `_ADD`."""
        (minute, *_), *_ = rows
        _, api_keys, networks, methods, outcomes = map(list, zip(*rows, strict=True))
        counters = [self._waiting[row] for row in rows]
        return {
            "minute": minute,
            "api_keys": api_keys,
            "networks": networks,
            "methods": methods,
            "outcomes": outcomes,
            "calls": [sum(counter[_LATENCIES:]) for counter in counters],
            "credits": [counter[_CREDITS] for counter in counters],
            "microseconds": [counter[_MICROSECONDS] for counter in counters],
            "bytes": [counter[_BYTES] for counter in counters],
            "latencies": [_histogram(counter) for counter in counters],
        }


def _batches(rows: list[_Row]) -> Iterator[list[_Row]]:
    """Yield lists of at most BATCH_ROWS rows of the same minute. rows: sorted."""
    for _, found in groupby(rows, key=itemgetter(0)):
        of_minute = list(found)
        for first in range(0, len(of_minute), BATCH_ROWS):
            yield of_minute[first : first + BATCH_ROWS]


def _histogram(counter: _Counter) -> str:
    """Return a counter's latencies as a PostgreSQL array, without zeros at its end."""
    latencies = counter[_LATENCIES:]
    while latencies and not latencies[-1]:
        latencies.pop()
    return "{" + ",".join(map(str, latencies)) + "}"
