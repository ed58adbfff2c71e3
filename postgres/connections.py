"""The connections that all look-ups of a process share.

A source of queries joins a queue, and is asked for its query when a connection is free.
Keys that arrive until then join the same query, so batches grow with the load.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from psycopg.pq.abc import PGresult

from postgres.connection import Connection, Done
from postgres.errors import Unavailable
from postgres.outages import AVAILABLE, WINDOW_SECONDS
from postgres.statement import Row, Statement

logger = logging.getLogger(__name__)

Query = tuple[Statement, Sequence[bytes], Done]


class Source(Protocol):
    """A source of queries, such as a `Lookup`."""

    def take(self) -> Query | None:
        """Return the next query, or None if no query is left."""

    def refuse(self, error: Unavailable) -> None:
        """Fail all operations that are waiting for queries of this source."""


class Connections:
    """At most `size` connections, opened when they are needed.

    query_timeout: seconds that a statement may take.
    connect_timeout: seconds that an attempt to connect may take.
    probe_interval: seconds between two attempts to connect during an outage. All
        queries fail at once until an attempt succeeds.
    """

    def __init__(
        self,
        conninfo: str,
        *,
        size: int = 2,
        query_timeout: float = 5.0,
        connect_timeout: float = 1.0,
        probe_interval: float = 1.0,
    ) -> None:
        self._conninfo = conninfo
        self.size = size
        self._query_timeout = query_timeout
        self._connect_timeout = connect_timeout
        self._probe_interval = probe_interval
        self._all: set[Connection] = set()
        self._idle: list[Connection] = []
        self._queue: deque[Source] = deque()
        self._opening: asyncio.Task[None] | None = None
        self._dispatch_is_due = False
        self._down: Unavailable | None = None
        self._has_lost = False
        """Whether a connection was lost, and none opened since."""
        self._next_report = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of the connections."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def enqueue(self, source: Source) -> None:
        """Take a query from a source as soon as a connection is free.

        The callbacks that are already scheduled run first, so that requests that
        arrived together share a query.
        """
        self._queue.append(source)
        if not self._dispatch_is_due:
            self._dispatch_is_due = True
            self.loop.call_soon(self._dispatch)

    def fetch(
        self, statement: Statement, parameters: Sequence[bytes] = ()
    ) -> asyncio.Future[list[Row]]:
        """Run one statement by itself and return its rows.

        Raises, when awaited: Unavailable.
        """
        single = _Single(self.loop, statement, parameters)
        self.enqueue(single)
        return single.future

    async def close(self) -> None:
        """Close all connections. Waiting and later queries fail with Unavailable."""
        self._down = Unavailable("the connections were closed")
        self._refuse_all(self._down)
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
            self._opening = None
        for connection in list(self._all):
            connection.close()

    def _dispatch(self) -> None:
        """Start queued queries on idle connections; otherwise open one, or fail them."""
        self._dispatch_is_due = False
        queue = self._queue
        while queue:
            if not self._idle:
                self._want_connection()
                return
            source = queue.popleft()
            query = source.take()
            if query is not None:
                self._start(self._idle.pop(), query)

    def _start(self, connection: Connection, query: Query) -> None:
        statement, parameters, done = query

        def finished(result: PGresult | None, error: Unavailable | None) -> None:
            if connection in self._all:
                self._idle.append(connection)
            try:
                done(result, error)
            finally:
                # At once, because sources may have waited for a free connection.
                self._dispatch()

        connection.execute(statement, parameters, finished)

    def _want_connection(self) -> None:
        if self._down is not None:
            self._refuse_all(self._down)
        elif self._opening is None and len(self._all) < self.size:
            self._opening = self.loop.create_task(self._open())

    async def _open(self) -> None:
        """Open one connection. If there is no other, retry until one is open."""
        while True:
            try:
                connection = await Connection.open(
                    self._conninfo,
                    connect_timeout=self._connect_timeout,
                    query_timeout=self._query_timeout,
                    on_lost=self._forget,
                )
            except Unavailable as error:
                if not self._all:
                    self._report(error)
                    self._down = error
                    self._refuse_all(error)
                await asyncio.sleep(self._probe_interval)
            else:
                break
        if self._down is not None or self._has_lost:
            logger.warning("a database connection was opened again", extra=AVAILABLE)
        self._down = None
        self._has_lost = False
        self._opening = None
        self._all.add(connection)
        self._idle.append(connection)
        self._dispatch()

    def _report(self, error: Unavailable) -> None:
        """Log the outage when it begins, and then once a minute."""
        now = self.loop.time()
        if self._down is None or now >= self._next_report:
            self._next_report = now + WINDOW_SECONDS
            logger.warning("the database is unavailable: %s", error)

    def _forget(self, connection: Connection) -> None:
        self._has_lost = True
        self._all.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    def _refuse_all(self, error: Unavailable) -> None:
        queue, self._queue = self._queue, deque()
        for source in queue:
            source.refuse(error)


class _Single:
    """A single-statement query source."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        statement: Statement,
        parameters: Sequence[bytes],
    ) -> None:
        self.future: asyncio.Future[list[Row]] = loop.create_future()
        self._statement = statement
        self._parameters = parameters

    def take(self) -> Query | None:
        if self.future.done():
            return None
        return self._statement, self._parameters, self._done

    def refuse(self, error: Unavailable) -> None:
        if not self.future.done():
            self.future.set_exception(error)

    def _done(self, result: PGresult | None, error: Unavailable | None) -> None:
        if self.future.done():
            return
        if result is None:
            self.future.set_exception(error or Unavailable("no result"))
        else:
            self.future.set_result(rows(result))


def rows(result: PGresult) -> list[Row]:
    """Return all rows of a result."""
    columns = range(result.nfields)
    return [
        tuple(result.get_value(row, column) for column in columns)
        for row in range(result.ntuples)
    ]
