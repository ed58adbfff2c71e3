"""The connection and the thread with which a process writes to local pools."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg

from nodeapi.errors.relay import TransactionRejected
from nodeapi.mempool.adding import add_transaction
from nodeapi.sending.decoding import Submission
from nodeapi.sending.rules import InvalidTransaction
from postgres.errors import Unavailable

TIMEOUT_SECONDS = 5
"""Time limit for connecting, and for each statement, such as the wait for the lock."""

IDLE_SECONDS = 60.0
"""Time after the last write until the connection is closed."""


class PoolWriter:
    """Adds transactions, one after the other. The first one opens the connection.

    conninfo: connection string of libpq.
    """

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="pool")
        self._connection: psycopg.Connection[Any] | None = None
        self._idle: asyncio.TimerHandle | None = None

    async def add(self, network_id: int, submission: Submission) -> None:
        """Add a transaction to the local pool of a network.

        Raises: TransactionRejected; Unavailable.
        """
        loop = asyncio.get_running_loop()
        if self._idle is not None:
            self._idle.cancel()
        self._idle = loop.call_later(
            IDLE_SECONDS, self._threads.submit, self._disconnect
        )
        try:
            await loop.run_in_executor(self._threads, self._add, network_id, submission)
        except InvalidTransaction as error:
            raise TransactionRejected(str(error)) from None
        except psycopg.Error as error:
            raise Unavailable(str(error)) from error

    async def close(self) -> None:
        """Close the connection."""
        if self._idle is not None:
            self._idle.cancel()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._threads, self._disconnect)
        self._threads.shutdown(wait=False)

    def _add(self, network_id: int, submission: Submission) -> None:
        """Add a transaction; repeat it if an idle connection turns out to be lost.

        An addition that has timed out is not repeated: it would take as long again, and
        other additions wait for this thread.
        """
        was_idle = self._connection is not None
        try:
            add_transaction(self._connected(), network_id, submission)
        except psycopg.errors.QueryCanceled:
            raise
        except psycopg.OperationalError:
            self._disconnect()
            if not was_idle:
                raise
            add_transaction(self._connected(), network_id, submission)

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            self._connection = psycopg.connect(
                self._conninfo, autocommit=True, connect_timeout=TIMEOUT_SECONDS
            )
            self._connection.execute(f"SET statement_timeout = '{TIMEOUT_SECONDS}s'")
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
