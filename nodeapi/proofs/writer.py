"""The connection with which a web process stores proved values."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import psycopg

from nodeapi.proofs.values import insertions
from postgres.errors import Unavailable

if TYPE_CHECKING:
    from evm.proved_state import ProvedValues
    from nodeapi.proofs.values import Anchor

TIMEOUT_SECONDS = 5
"""Time limit for connecting, and for each statement."""
IDLE_SECONDS = 60.0
"""Time after the last write until the connection is closed."""


class ValueWriter:
    """Stores values, one batch after the other. The first one opens the connection.

    The connections of the store only read.
    conninfo: connection string of libpq.
    """

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._connection: psycopg.AsyncConnection[tuple[object, ...]] | None = None
        self._turn = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()

    async def write(
        self, network_id: int, anchor: Anchor, values: ProvedValues
    ) -> None:
        """Store values in one transaction. Raises: Unavailable.

        An idle connection that turns out to be lost is opened again.
        """
        async with self._turn:
            was_open = self._connection is not None
            try:
                try:
                    await self._write(network_id, anchor, values)
                except psycopg.OperationalError:
                    await self._disconnect()
                    if not was_open:
                        raise
                    await self._write(network_id, anchor, values)
            except psycopg.Error as error:
                await self._disconnect()
                raise Unavailable(str(error)) from error
            except asyncio.CancelledError:
                await self._disconnect()  # a statement may be in flight
                raise
            self._close_later()

    async def close(self) -> None:
        """Close the connection."""
        if self._idle is not None:
            self._idle.cancel()
        async with self._turn:
            await self._disconnect()

    async def _write(
        self, network_id: int, anchor: Anchor, values: ProvedValues
    ) -> None:
        connection = self._connection
        if connection is None:
            connection = await psycopg.AsyncConnection.connect(
                self._conninfo, autocommit=True, connect_timeout=TIMEOUT_SECONDS
            )
            self._connection = connection
            await connection.execute(f"SET statement_timeout = '{TIMEOUT_SECONDS}s'")
            # What the server loses in a crash is fetched again.
            await connection.execute("SET synchronous_commit = off")
        statements = insertions(network_id, anchor, values)
        async with AsyncExitStack() as stack:
            if len(statements) > 1:  # a single one is a transaction of its own
                await stack.enter_async_context(connection.transaction())
            for query, parameters in statements:
                await connection.execute(query, parameters, binary=True, prepare=True)

    def _close_later(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        loop = asyncio.get_running_loop()
        self._idle = loop.call_later(IDLE_SECONDS, self._close_if_idle)

    def _close_if_idle(self) -> None:
        task = asyncio.get_running_loop().create_task(self.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
