"""Look-ups by key, merged into few queries.

Requests that run at the same time mostly want the same kind of thing under different
keys. One query with arrays of keys answers them all, at a fraction of the price: what
a statement costs besides its index probes is paid once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from psycopg.pq.abc import PGresult

from postgres.connections import Connections, Query
from postgres.errors import Unavailable
from postgres.statement import ColumnType, Row, Statement, array, read_int8

if TYPE_CHECKING:
    from asyncio import Future

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
    """

    def __init__(
        self,
        connections: Connections,
        sql: str,
        key_types: Sequence[tuple[str, ColumnType]],
        read: Callable[[Row], Value],
        *,
        max_batch: int = 256,
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
        self._waiting: dict[Key, list[Future[Value | None]]] = {}

    def get(self, key: Key) -> Future[Value | None]:
        """Return what stands under a key, as a future.

        Raises, when awaited: Unavailable.
        """
        connections = self._connections
        future: Future[Value | None] = connections.loop.create_future()
        waiting = self._waiting
        others = waiting.get(key)
        if others is not None:
            others.append(future)
        else:
            if not waiting:
                connections.enqueue(self)
            waiting[key] = [future]
        return future

    def take(self) -> Query | None:
        """Return a query for the keys that are waited for."""
        batch = self._waiting
        if len(batch) <= self._max_batch:
            self._waiting = {}
        else:
            first = dict(islice(batch.items(), self._max_batch))
            self._waiting = dict(islice(batch.items(), self._max_batch, None))
            batch = first
            self._connections.enqueue(self)
        if not batch:
            return None
        count = len(batch)
        parameters = [
            array(column, values, count)
            for column, values in zip(
                self._types, zip(*batch, strict=True), strict=True
            )
        ]
        slots = list(batch.values())

        def done(result: PGresult | None, error: Unavailable | None) -> None:
            if result is None:
                _fail(slots, error or Unavailable("no result"))
            else:
                self._deliver(result, slots)

        return self._statement, parameters, done

    def refuse(self, error: Unavailable) -> None:
        """Fail everything that waits."""
        slots = list(self._waiting.values())
        self._waiting = {}
        _fail(slots, error)

    def _deliver(
        self, result: PGresult, slots: list[list[Future[Value | None]]]
    ) -> None:
        """Give each row to those who wait for it, and None to the rest."""
        get_value = result.get_value
        columns = range(1, result.nfields)
        answered = [False] * len(slots)
        for row in range(result.ntuples):
            number = read_int8(get_value(row, 0) or b"") - 1
            answered[number] = True
            try:
                value = self._read(tuple([get_value(row, c) for c in columns]))
            except Exception as error:  # whatever it is, it belongs to the waiters
                _fail([slots[number]], error)
                continue
            for future in slots[number]:
                if not future.done():
                    future.set_result(value)
        for futures in (f for f, done in zip(slots, answered, strict=True) if not done):
            for future in futures:
                if not future.done():
                    future.set_result(None)


def _fail(slots: Sequence[Sequence[Future[Any]]], error: Exception) -> None:
    for futures in slots:
        for future in futures:
            if not future.done():
                future.set_exception(error)
