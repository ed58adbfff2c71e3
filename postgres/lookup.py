"""Look-ups by key, merged into few queries.

Requests that run at the same time mostly want the same kind of thing under different
keys. One query with arrays of keys answers them all, at a fraction of the price: what
a statement costs besides its index probes is paid once.
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

_NOBODY: Any = ()
"""Who waits, where nobody does."""

Key = TypeVar("Key", bound=tuple[Any, ...])
Value = TypeVar("Value")


class Lookup(Generic[Key, Value]):
    """One kind of look-up; what it is asked for at about the same time is merged.

    sql: a query over the table `k`, which holds the wanted keys: the columns that are
        named in key_types, and `n`, the place of the key. It must return n first, then
        the columns of the answer, and at most one row for each n.
    key_types: names and types of the key's columns, in the order of the key's members.
    read: makes the value of an answer's columns. A key without a row has None.
    max_batch: most keys of one query, so that no request waits for a giant one.
    max_queries: most queries under way at a time, None for as many as there are
        connections. The fewer there are, the more is merged: one spares processor time
        where a query costs much besides its keys.
    is_immutable: whether what stands under a key never changes. Then a query that is
        under way already serves as well, unless it finds nothing: that may have come
        since it began.
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
        """How many more may be under way."""
        self._is_queued = False
        self._is_immutable = is_immutable
        self._waiting: dict[Key, list[Future[Value | None]]] = {}
        self._joined: dict[Key, list[Future[Value | None]]] = {}
        """Who came while a query for the key was under way; has every such key."""

    def get(self, key: Key) -> Future[Value | None]:
        """Return what stands under a key, as a future.

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
        """Have the next query ask for a key that none asks for yet."""
        self._waiting[key] = futures
        if not self._is_queued:
            self._queue_up()

    def _queue_up(self) -> None:
        """Have the connections ask for a query, if one is wanted and may be sent."""
        if self._waiting and not self._is_queued and self._queries_left > 0:
            self._is_queued = True
            self._connections.enqueue(self)

    def take(self) -> Query | None:
        """Return a query for the keys that are waited for."""
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
            self._joined.update(dict.fromkeys(batch, _NOBODY))

        def done(result: PGresult | None, error: Unavailable | None) -> None:
            self._queries_left += 1
            self._queue_up()
            if result is None:
                joined = [self._joined.pop(key, _NOBODY) for key in batch]
                _fail([*batch.values(), *joined], error or Unavailable("no result"))
            else:
                self._deliver(result, batch)

        self._queries_left -= 1
        self._queue_up()
        return self._statement, parameters, done

    def refuse(self, error: Unavailable) -> None:
        """Fail everything that waits."""
        self._is_queued = False
        slots = list(self._waiting.values())
        self._waiting = {}
        _fail(slots, error)

    def _deliver(
        self, result: PGresult, batch: dict[Key, list[Future[Value | None]]]
    ) -> None:
        """Give each row to those who wait for it, and None to the rest."""
        get_value = result.get_value
        columns = range(1, result.nfields)
        keys = list(batch)
        missing = dict.fromkeys(keys)
        for row in range(result.ntuples):
            key = keys[read_int8(get_value(row, 0) or b"") - 1]
            del missing[key]
            futures = [*batch[key], *self._joined.pop(key, _NOBODY)]
            try:
                value = self._read(tuple([get_value(row, c) for c in columns]))
            except Exception as error:  # whatever it is, it belongs to the waiters
                _fail([futures], error)
            else:
                _fulfil(futures, value)
        for key in missing:
            _fulfil(batch[key], None)
            joined = self._joined.pop(key, _NOBODY)
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
