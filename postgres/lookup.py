"""Look-ups by key, merged into few queries.

Concurrent requests mostly read the same kind of row with different keys. One query with
arrays of keys serves all of them, and the fixed costs of a statement are paid once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from psycopg.pq.abc import PGresult

from postgres.connections import Connections, Query
from postgres.errors import Unavailable
from postgres.statement import ColumnType, Row, Statement, array, read_int8

if TYPE_CHECKING:
    from asyncio import Future

_NO_FUTURES: Any = ()
"""The waiting futures of a key that has none."""

Key = TypeVar("Key", bound=tuple[Any, ...])
Value = TypeVar("Value")


class Lookup(Generic[Key, Value]):
    """One kind of look-up. Concurrent calls are merged into one query.

    sql: a query that joins the table `k` of requested keys. `k` has the columns that
        `key_types` names, and `n`, the number of the key. The query must return `n`
        first, then the columns of the value, with at most one row for each `n`.
    key_types: names and types of the key's columns, in the order of the key's members.
    read: converts the columns of a row to a value. The value of a key without a row is
        None.
    max_batch: maximum number of keys in one query, so that no request waits for a very
        long one.
    max_queries: maximum number of queries in flight; None: one on each connection.
        Fewer queries merge more keys, which saves processor time if a query has high
        fixed costs.
    is_immutable: whether the row of a key never changes. A call then joins a query for
        the key that is already in flight. If that query finds no row, the key is read
        again, because the row may have been inserted since.
    """

    def __init__(
        self,
        connections: Connections,
        sql: str,
        key_types: Sequence[tuple[str, ColumnType]],
        read: Callable[[Row], Value],
        *,
        max_batch: int = 256,
        max_queries: int | None = None,
        is_immutable: bool = False,
    ) -> None:
        arrays = ", ".join(
            f"${number}::{column.name}[]"
            for number, (_, column) in enumerate(key_types, start=1)
        )
        names = ", ".join(name for name, _ in key_types)
        keys = (
            f"WITH k ({names}, n) AS (SELECT * FROM unnest({arrays}) WITH ORDINALITY) "
        )
        self._statement = Statement(
            keys + sql, [column.array_oid for _, column in key_types]
        )
        self._connections = connections
        self._types = [column for _, column in key_types]
        self._read = read
        self._max_batch = max_batch
        self._queries_left = inf if max_queries is None else max_queries
        """How many more queries may be sent now."""
        self._is_queued = False
        self._is_immutable = is_immutable
        self._waiting: dict[Key, list[Future[Value | None]]] = {}
        self._joined: dict[Key, list[Future[Value | None]]] = {}
        """Futures that joined a query in flight, for each key of such a query."""

    def get(self, key: Key) -> Future[Value | None]:
        """Return a future of the value of a key, None if the key has no row.

        Raises, when awaited: Unavailable.
        """
        future: Future[Value | None] = self._connections.loop.create_future()
        others = self._joined.get(key) or self._waiting.get(key)
        if others is not None:
            others.append(future)
        elif key in self._joined:
            self._joined[key] = [future]
        else:
            self._wait(key, [future])
        return future

    def _wait(self, key: Key, futures: list[Future[Value | None]]) -> None:
        """Add a key to the next query."""
        self._waiting[key] = futures
        if not self._is_queued:
            self._queue_up()

    def _queue_up(self) -> None:
        """Join the queue of the connections, if there are keys and a query may be sent."""
        if self._waiting and not self._is_queued and self._queries_left > 0:
            self._is_queued = True
            self._connections.enqueue(self)

    def take(self) -> Query | None:
        """Return a query for the waiting keys, None if there are none."""
        self._is_queued = False
        batch = self._waiting
        if not batch:
            return None
        if len(batch) <= self._max_batch:
            self._waiting = {}
        else:
            first = dict(islice(batch.items(), self._max_batch))
            self._waiting = dict(islice(batch.items(), self._max_batch, None))
            batch = first
        count = len(batch)
        parameters = [
            array(column, values, count)
            for column, values in zip(
                self._types, zip(*batch, strict=True), strict=True
            )
        ]
        if self._is_immutable:
            self._joined.update(dict.fromkeys(batch, _NO_FUTURES))

        def done(result: PGresult | None, error: Unavailable | None) -> None:
            self._queries_left += 1
            self._queue_up()
            if result is None:
                joined = [self._joined.pop(key, _NO_FUTURES) for key in batch]
                _fail([*batch.values(), *joined], error or Unavailable("no result"))
            else:
                self._deliver(result, batch)

        self._queries_left -= 1
        self._queue_up()
        return self._statement, parameters, done

    def refuse(self, error: Unavailable) -> None:
        """Fail all waiting futures."""
        self._is_queued = False
        slots = list(self._waiting.values())
        self._waiting = {}
        _fail(slots, error)

    def _deliver(
        self, result: PGresult, batch: dict[Key, list[Future[Value | None]]]
    ) -> None:
        """Resolve the futures of a batch with the rows, and with None without a row."""
        get_value = result.get_value
        columns = range(1, result.nfields)
        keys = list(batch)
        missing = dict.fromkeys(keys)
        for row in range(result.ntuples):
            key = keys[read_int8(get_value(row, 0) or b"") - 1]
            del missing[key]
            futures = [*batch[key], *self._joined.pop(key, _NO_FUTURES)]
            try:
                value = self._read(tuple([get_value(row, c) for c in columns]))
            except Exception as error:  # reported to the callers
                _fail([futures], error)
            else:
                _fulfil(futures, value)
        for key in missing:
            _fulfil(batch[key], None)
            joined = self._joined.pop(key, _NO_FUTURES)
            if joined:
                self._wait(key, [*joined])


def _fulfil(futures: Sequence[Future[Value | None]], value: Value | None) -> None:
    for future in futures:
        if not future.done():
            future.set_result(value)


def _fail(slots: Sequence[Sequence[Future[Any]]], error: Exception) -> None:
    for futures in slots:
        for future in futures:
            if not future.done():
                future.set_exception(error)
