"""The latest failed calls of each key, and the unknown methods that were called with it.

Both are for the keys' owners. One row of each key contains them, so the table does not
grow with the number of calls. Parameters and messages of errors are not recorded, because
they may contain data of the caller's users.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator

import orjson
from psycopg import AsyncConnection

from jsonrpc.errors import RpcError
from legible.text import visible

MAX_FAILURES = 100
"""Failed calls kept of each key, the latest ones."""

MAX_NAMES = 100
"""Unknown methods kept of each key. Five times as many as are shown, so that a name that
becomes frequent is counted before it is shown."""

KEEP_NAMES_DAYS = 30
"""An unknown method is removed after this time without a call."""

MAX_KEYS = 500
"""Keys whose failures are kept in memory between two writes. Failures of further keys are
not recorded, until the next write."""

MAX_NAME = 100
"""Characters kept of a method's name. The caller chooses unknown names."""

BATCH_KEYS = 25
"""Keys written by one statement, so that the event loop does not encode for long."""

_DAY = 86_400

_Failure = tuple[float, int, str, int, str]
"""Time, network id (0 if no network is involved), method, code, and `data.reason` or the
name of the error's class."""

_ADD = """
    INSERT INTO keys_keyfailures AS u (api_key_id, latest, unknown_methods)
    SELECT a.id, r.latest::jsonb, r.names::jsonb
    FROM unnest(%(api_keys)s::int8[], %(latest)s::text[], %(names)s::text[])
        AS r (api_key, latest, names)
    JOIN keys_apikey a ON a.id = r.api_key
    ORDER BY a.id
    ON CONFLICT (api_key_id) DO UPDATE SET
        latest = (
            SELECT jsonb_agg(one ORDER BY (one ->> 0)::float8 DESC)
            FROM (
                SELECT one FROM jsonb_array_elements(EXCLUDED.latest || u.latest) AS one
                ORDER BY (one ->> 0)::float8 DESC LIMIT %(max_failures)s
            ) AS kept
        ),
        unknown_methods = (
            SELECT coalesce(jsonb_object_agg(name, jsonb_build_array(calls, at)), '{}')
            FROM (
                SELECT name, sum((counted ->> 0)::int8) AS calls,
                    max((counted ->> 1)::float8) AS at
                FROM (
                    SELECT * FROM jsonb_each(EXCLUDED.unknown_methods)
                    UNION ALL SELECT * FROM jsonb_each(u.unknown_methods)
                ) AS both_of_them (name, counted)
                GROUP BY name
                HAVING max((counted ->> 1)::float8) > %(oldest_name)s
                ORDER BY calls DESC, at DESC LIMIT %(max_names)s
            ) AS kept
        )
"""
# All processes write rows in the same order, which prevents deadlocks.


class Failures:
    """Collects failed calls in memory.

    wall_clock: returns Unix time in seconds.
    """

    def __init__(self, wall_clock: Callable[[], float] = time.time) -> None:
        self._wall_clock = wall_clock
        self._latest: dict[int, deque[_Failure]] = {}
        self._names: dict[int, dict[str, tuple[int, float]]] = {}

    def __len__(self) -> int:
        return len(self._latest)

    def note(
        self, api_key_id: int, network_id: int, method: str, error: RpcError
    ) -> None:
        """Record a call that was answered with an error.

        network_id: 0 if the key itself was rejected.
        method: the name that was called, "" if a whole request was rejected.
        """
        latest = self._latest.get(api_key_id)
        if latest is None:
            if len(self._latest) >= MAX_KEYS:
                return
            latest = self._latest[api_key_id] = deque(maxlen=MAX_FAILURES)
        now = self._wall_clock()
        name = method[:MAX_NAME]
        reason = error.reason or type(error).__name__
        latest.append((now, network_id, name, error.code, reason))
        if error.unknown_method is not None:
            names = self._names.setdefault(api_key_id, {})
            calls, _ = names.get(name, (0, now))
            if calls or len(names) < MAX_NAMES:
                names[name] = calls + 1, now

    async def write(self, connection: AsyncConnection) -> None:
        """Add the failures to the database. They are lost if this fails."""
        latest, self._latest = self._latest, {}
        names, self._names = self._names, {}
        api_keys = sorted(latest)
        oldest_name = self._wall_clock() - KEEP_NAMES_DAYS * _DAY
        for first in range(0, len(api_keys), BATCH_KEYS):
            batch = api_keys[first : first + BATCH_KEYS]
            parameters = {
                "api_keys": batch,
                "latest": [_latest_as_json(latest[key]) for key in batch],
                "names": [_names_as_json(names.get(key, {})) for key in batch],
                "max_failures": MAX_FAILURES,
                "max_names": MAX_NAMES,
                "oldest_name": oldest_name,
            }
            await connection.execute(_ADD, parameters)


def _latest_as_json(failures: deque[_Failure]) -> str:
    """Return failed calls as a JSON array, the latest first."""
    return orjson.dumps(list(_storable(failures))).decode()


def _storable(failures: deque[_Failure]) -> Iterator[_Failure]:
    for at, network_id, method, code, reason in reversed(failures):
        yield at, network_id, _legible(method), code, reason


def _names_as_json(names: dict[str, tuple[int, float]]) -> str:
    """Return counted names as a JSON object."""
    shown: dict[str, tuple[int, float]] = {}
    for name, (calls, at) in names.items():
        known, later = shown.get(legible := _legible(name), (0, at))
        shown[legible] = known + calls, max(at, later)
    return orjson.dumps(shown).decode()


def _legible(name: str) -> str:
    """Return a name on one line, without hidden characters or lone surrogates."""
    return visible(" ".join(name.split()))[: 2 * MAX_NAME]
