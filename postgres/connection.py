"""One connection, driven by the event loop's own read events.

`psycopg.AsyncConnection` opens the connection; afterwards libpq is used directly. A query
then needs no task, no cursor and no coroutine switch, because the result arrives in a
callback. Merged look-ups therefore cost microseconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

import psycopg
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus
from psycopg.pq.abc import PGresult

from postgres.errors import ConnectionFailed, TimedOut, Unavailable
from postgres.outages import UNAVAILABLE
from postgres.statement import Statement

logger = logging.getLogger(__name__)

Done = Callable[[PGresult | None, Unavailable | None], None]
"""Callback with a query's result or an error; called exactly once."""

_BINARY = 1
_FINAL = (b"0A000", b"26000", b"57P")
"""Prefixes of SQLSTATEs after which a connection is closed: a prepared statement no longer
fits its tables or does not exist, or the server is shutting down."""

_SHUTDOWN = b"57P"
"""Prefix of SQLSTATEs of a server that stops or starts."""

_CANCELLED = b"57014"
"""SQLSTATE of a statement that has exceeded the statement timeout."""

_WIDEN = f"SELECT repeat(' ', {2**18})"
"""Makes libpq's buffer larger than the kernel's socket buffer (212 kB by default on Linux).
libpq's buffer grows with the longest message, never shrinks, and bounds one read. At its
initial 16 kB, a result of many long rows needs one event loop iteration per row."""

_OPTIONS = " ".join(
    f"-c {option}"
    for option in (
        # These connections only read; a mistake can't write.
        "default_transaction_read_only=on",
        # Every query is a few index probes. Planning one again, compiling it, or
        # scanning a table that was small when it was planned costs more.
        "plan_cache_mode=force_generic_plan",
        "jit=off",
        "enable_seqscan=off",
        "enable_hashjoin=off",
        "enable_mergejoin=off",
    )
)


class Connection:
    """A live connection that runs one statement at a time.

    on_lost: called once, when the connection has ended for any reason.
    """

    def __init__(
        self,
        connection: psycopg.AsyncConnection[tuple[object, ...]],
        *,
        query_timeout: float,
        on_lost: Callable[[Connection], None],
    ) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        self._query_timeout = query_timeout
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._socket = self._pgconn.socket
        self._prepared: set[bytes] = set()
        self._result: PGresult | None = None
        self._after_prepare: tuple[Statement, Sequence[bytes]] | None = None
        self._done: Done | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._loop.add_reader(self._socket, self._on_readable)

    @classmethod
    async def open(
        cls,
        conninfo: str,
        *,
        connect_timeout: float,
        query_timeout: float,
        on_lost: Callable[[Connection], None],
    ) -> Connection:
        """Connect within `connect_timeout` seconds.

        Raises: ConnectionFailed.
        """
        timeout_ms = max(1, int(query_timeout * 1000))
        given = psycopg.conninfo.conninfo_to_dict(conninfo).get("options") or ""
        options = f"{given} {_OPTIONS} -c statement_timeout={timeout_ms}"
        try:
            async with asyncio.timeout(connect_timeout):
                connection = await psycopg.AsyncConnection.connect(
                    conninfo, autocommit=True, options=options
                )
                await _widen(connection)
            return cls(
                connection,
                query_timeout=query_timeout,
                on_lost=on_lost,
            )
        # ValueError: invalid host name.
        except (psycopg.Error, OSError, TimeoutError, ValueError) as error:
            text = str(error).strip() or type(error).__name__
            raise ConnectionFailed(f"cannot connect: {text.splitlines()[0]}") from error

    def execute(
        self, statement: Statement, parameters: Sequence[bytes], done: Done
    ) -> None:
        """Run a statement with binary parameters; the connection must be idle."""
        assert self._done is None, "one statement at a time"
        self._done = done
        self._result = None
        # The server's statement timeout expires first. This one is for a server that
        # does not answer at all.
        self._timer = self._loop.call_later(
            self._query_timeout + 0.5, self._lose, "the database does not respond"
        )
        try:
            if statement.name in self._prepared:
                self._send(statement, parameters)
            else:
                self._after_prepare = statement, parameters
                self._pgconn.send_prepare(
                    statement.name, statement.sql, statement.type_oids
                )
            self._flush()
        except psycopg.Error as error:
            self._lose(str(error))

    async def run(self, statement: Statement, parameters: Sequence[bytes]) -> PGresult:
        """Run a statement and wait for its result.

        Raises: Unavailable.
        """
        future: asyncio.Future[PGresult] = self._loop.create_future()

        def done(result: PGresult | None, error: Unavailable | None) -> None:
            if future.done():
                return
            if result is None:
                future.set_exception(error or Unavailable("no result"))
            else:
                future.set_result(result)

        self.execute(statement, parameters, done)
        return await future

    def close(self) -> None:
        """Close the connection. A statement in flight fails."""
        self._lose("the connection was closed")

    def _send(self, statement: Statement, parameters: Sequence[bytes]) -> None:
        formats = [_BINARY] * len(parameters)
        self._pgconn.send_query_prepared(statement.name, parameters, formats, _BINARY)

    def _flush(self) -> None:
        """Send libpq's output buffer, now or when the socket becomes writable."""
        if self._pgconn.flush():
            self._loop.add_writer(self._socket, self._on_writable)

    def _on_writable(self) -> None:
        try:
            if not self._pgconn.flush():
                self._loop.remove_writer(self._socket)
        except psycopg.Error as error:
            self._lose(str(error))

    def _on_readable(self) -> None:
        pgconn = self._pgconn
        try:
            pgconn.consume_input()
            if self._done is not None:
                while not pgconn.is_busy():
                    result = pgconn.get_result()
                    if result is None:
                        self._finish()
                        break
                    self._result = result
        except psycopg.Error as error:
            self._lose(str(error))
        else:
            if not self._closed and pgconn.status != ConnStatus.OK:
                self._lose("the server closed the connection")

    def _finish(self) -> None:
        """Handle the end of a command: run the statement just prepared, or report."""
        result, self._result = self._result, None
        if result is None:
            self._report(None, Unavailable("no result"))
        elif result.status in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            if self._after_prepare is None:
                self._report(result, None)
                return
            statement, parameters = self._after_prepare
            self._after_prepare = None
            self._prepared.add(statement.name)
            self._send(statement, parameters)
            self._flush()
        else:
            self._refused(result)

    def _refused(self, result: PGresult) -> None:
        """Report an error that the server sent."""
        state = result.error_field(DiagnosticField.SQLSTATE) or b""
        message = result.error_field(DiagnosticField.MESSAGE_PRIMARY) or b""
        text = message.decode(errors="replace")
        is_outage = state.startswith(_SHUTDOWN)
        logger.warning(
            "query failed: %s %s",
            state.decode(),
            text,
            extra=UNAVAILABLE if is_outage else None,
        )
        self._after_prepare = None
        if state.startswith(_FINAL):
            self._lose(text)
        elif state == _CANCELLED:
            self._report(None, TimedOut(text))
        else:
            self._report(None, Unavailable(text))

    def _report(self, result: PGresult | None, error: Unavailable | None) -> None:
        done, self._done = self._done, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if done is not None:
            done(result, error)

    def _lose(self, reason: str) -> None:
        """Close the connection, and fail the statement in flight."""
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._pgconn.finish()
        lines = reason.strip().splitlines() or ["connection lost"]
        # The owner first, so that a query sent by the callback uses another connection.
        self._on_lost(self)
        self._report(None, ConnectionFailed(lines[0]))


async def _widen(connection: psycopg.AsyncConnection[tuple[object, ...]]) -> None:
    """Enlarge libpq's buffer. The connection is closed if that fails."""
    try:
        await connection.execute(_WIDEN)
    except BaseException:
        await connection.close()
        raise
