"""Rejected calls, counted by key, network and reason for the keys' owners.

There is one row for each key, network and reason. It counts the rejections of a single day,
the latest one with any, so that the table does not grow with their number.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from psycopg import AsyncConnection

MAX_WAITING = 10_000
"""Most rows kept in memory while the database is unavailable. Others are dropped."""

_DAY = 86_400

Refused = tuple[int, int, str]
"""API key id, network id (0 if no network is involved), reason."""

_ADD = """
    INSERT INTO keys_refusal AS u
        (api_key_id, network_id, reason, method, last_at, calls)
    SELECT a.id, n.id, r.reason, r.method, to_timestamp(r.at), r.calls
    FROM unnest(%s::int8[], %s::int8[], %s::text[], %s::text[], %s::float8[], %s::int8[])
        AS r (api_key, network, reason, method, at, calls)
    JOIN keys_apikey a ON a.id = r.api_key
    LEFT JOIN networks_network n ON n.id = r.network
    WHERE r.network = 0 OR n.id IS NOT NULL
    ORDER BY a.id, n.id, r.reason
    ON CONFLICT (api_key_id, network_id, reason) DO UPDATE SET
        calls = EXCLUDED.calls + CASE
            WHEN (u.last_at AT TIME ZONE 'UTC')::date
                = (EXCLUDED.last_at AT TIME ZONE 'UTC')::date THEN u.calls ELSE 0 END,
        last_at = greatest(u.last_at, EXCLUDED.last_at),
        method = EXCLUDED.method
"""
# All processes write rows in the same order, which prevents deadlocks.


class Refusals:
    """Counts rejected calls in memory.

    wall_clock: returns Unix time in seconds.
    """

    def __init__(self, wall_clock: Callable[[], float] = time.time) -> None:
        self._wall_clock = wall_clock
        self._waiting: dict[Refused, tuple[str, float, int]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def note(self, refused: Refused, method: str) -> None:
        """Count a call.

        method: the name of a known method, or "" if a whole request was rejected.
        """
        now = self._wall_clock()
        _, at, calls = self._waiting.get(refused, ("", now, 0))
        if not calls and len(self._waiting) >= MAX_WAITING:
            return
        if at // _DAY != now // _DAY:
            calls = 0
        self._waiting[refused] = (method, now, calls + 1)

    async def write(self, connection: AsyncConnection) -> None:
        """Add the counts to the database. Counts are lost if this fails."""
        waiting, self._waiting = self._waiting, {}
        if waiting:
            columns = zip(*(k + v for k, v in sorted(waiting.items())), strict=True)
            await connection.execute(_ADD, [list(column) for column in columns])
