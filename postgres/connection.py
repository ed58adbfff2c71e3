"""One connection, driven by the event loop's own read events.

`psycopg.AsyncConnection` opens it; afterwards libpq is spoken to directly. A query
then costs no task, no cursor and no switch between coroutines: the answer arrives in
a callback, which is what makes merged look-ups cost microseconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

import psycopg
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus
from psycopg.pq.abc import PGresult

from postgres.errors import Unavailable
from postgres.statement import Statement

logger = logging.getLogger(__name__)

Done = Callable[[PGresult | None, Unavailable | None], None]
"""Takes a query's result, or what went wrong; is called exactly once."""

_BINARY = 1
_FINAL = (b"0A000", b"26000", b"57P")
"""Beginnings of the SQLSTATEs after which a connection is of no more use: a prepared
statement no longer fits its tables or is gone, the server is going down."""

_WIDEN = f"SELECT repeat(' ', {2**18})"
"""Makes libpq's buffer hold more than the kernel does for a socket (212 kB by default on
Linux): it grows with the longest message, never shrinks, and bounds what is read at once.
As it begins, at 16 kB, an answer of many long rows takes a turn of the event loop for
each row, and keeps the server waiting meanwhile."""

_OPTIONS = " ".join(
    f"-c {option}"
    for option in (
        # The raw connections only look up; a slip cannot write.
        "default_transaction_read_only=on",
        # Every query is a handful of index probes. Planning one anew, compiling it,
        # or reading a whole table because it was small when planned, costs more.
        "plan_cache_mode=force_generic_plan",
        "jit=off",
        "enable_seqscan=off",
        "enable_hashjoin=off",
        "enable_mergejoin=off",
    )
)


class Connection:
    """A live connection that runs one statement at a time.

    on_lost: called once, when the server has gone or was given up.
    on_notify: called for each notification, with its payload.
    """

    def __init__(
        self,
        connection: psycopg.AsyncConnection[tuple[object, ...]],
        *,
        query_timeout: float,
        on_lost: Callable[[Connection], None],
        on_notify: Callable[[str, str], None] | None = None,
    ) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        self._query_timeout = query_timeout
        self._on_lost = on_lost
        self._on_notify = on_notify
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
        on_notify: Callable[[str, str], None] | None = None,
    ) -> Connection:
        """Connect within a number of seconds.

        Raises: Unavailable when that fails.
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
                on_notify=on_notify,
            )
        # ValueError: of a host name that can't be one.
        except (psycopg.Error, OSError, TimeoutError, ValueError) as error:
            text = str(error).strip() or type(error).__name__
            raise Unavailable(f"cannot connect: {text.splitlines()[0]}") from error

    def execute(
        self, statement: Statement, parameters: Sequence[bytes], done: Done
    ) -> None:
        """Run a statement with binary parameters; the connection must be idle."""
        assert self._done is None, "one statement at a time"
        self._done = done
        self._result = None
        # The server's own statement timeout comes first; this one is for a server
        # that does not answer at all.
        self._timer = self._loop.call_later(
            self._query_timeout + 0.5, self._lose, "the database does not answer"
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
        """Hang up; a statement in flight fails."""
        self._lose("the connection was closed")

    def _send(self, statement: Statement, parameters: Sequence[bytes]) -> None:
        formats = [_BINARY] * len(parameters)
        self._pgconn.send_query_prepared(statement.name, parameters, formats, _BINARY)

    def _flush(self) -> None:
        """Hand what libpq still holds to the socket, now or when it takes more."""
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
            if self._on_notify is not None:
                self._pass_on_notifications(self._on_notify)
        except psycopg.Error as error:
            self._lose(str(error))
        else:
            if not self._closed and pgconn.status != ConnStatus.OK:
                self._lose("the server closed the connection")

    def _pass_on_notifications(self, on_notify: Callable[[str, str], None]) -> None:
        while not self._closed and (notify := self._pgconn.notifies()):
            on_notify(notify.relname.decode(), notify.extra.decode())

    def _finish(self) -> None:
        """Take the end of a command: go on to the prepared one, or report."""
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
        logger.warning("query failed: %s %s", state.decode(), text)
        self._after_prepare = None
        if state.startswith(_FINAL):
            self._lose(text)
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
        """Give the connection up, and fail what runs on it."""
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._pgconn.finish()
        lines = reason.strip().splitlines() or ["connection lost"]
        # First the owner, so that whoever asks again at once finds this one gone.
        self._on_lost(self)
        self._report(None, Unavailable(lines[0]))


async def _widen(connection: psycopg.AsyncConnection[tuple[object, ...]]) -> None:
    """Have libpq read much at once; a connection that can't even do that is closed."""
    try:
        await connection.execute(_WIDEN)
    except BaseException:
        await connection.close()
        raise
