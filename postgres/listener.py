"""Notifications of the database, with the knowledge whether they can be relied on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from itertools import count

from postgres.connection import Connection
from postgres.errors import Unavailable
from postgres.statement import Statement

logger = logging.getLogger(__name__)

_HEARTBEAT = Statement("SELECT 1")


class Listener:
    """One connection of its own that listens, and comes back when it was lost.

    epoch: which spell of listening this is, 0 when none. What was read in an epoch is
        fresh as long as the epoch lasts, except for what a notification has named.
    heartbeat: seconds between two questions whether the server is still there.
    retry_interval: seconds between two attempts to connect.
    """

    def __init__(
        self,
        conninfo: str,
        *,
        heartbeat: float = 2.0,
        retry_interval: float = 1.0,
        timeout: float = 1.0,
    ) -> None:
        self.epoch = 0
        self._conninfo = conninfo
        self._heartbeat = heartbeat
        self._retry_interval = retry_interval
        self._timeout = timeout
        self._epochs = count(1)
        self._callbacks: dict[str, Callable[[str], None]] = {}
        self._at_epoch: list[Callable[[], None]] = []
        self._held: list[tuple[Statement, Sequence[bytes]]] = []
        self._task: asyncio.Task[None] | None = None

    def listen(self, channel: str, callback: Callable[[str], None]) -> None:
        """Call back with the payload of each notification on a channel.

        To be said before the start; one callback for each channel.
        """
        self._callbacks[channel] = callback

    def at_epoch(self, callback: Callable[[], None]) -> None:
        """Call back when a new epoch has begun: anything may have been missed."""
        self._at_epoch.append(callback)

    def hold(self, statement: Statement, parameters: Sequence[bytes]) -> None:
        """Have something run on each new connection before its epoch begins.

        What it takes, such as an advisory lock, is held as long as the process lives and
        listens. To be said before the start.
        """
        self._held.append((statement, parameters))

    async def start(self) -> None:
        """Begin to listen, in the background."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Stop listening."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        while True:
            try:
                await self._listen_until_lost()
            except Unavailable as error:
                logger.info("not listening: %s", error)
            except Exception:  # of who is called back; others still want to know
                logger.exception("not listening")
            await asyncio.sleep(self._retry_interval)

    async def _listen_until_lost(self) -> None:
        lost = asyncio.Event()

        def on_lost(_: Connection) -> None:
            self.epoch = 0
            lost.set()

        connection = await Connection.open(
            self._conninfo,
            connect_timeout=self._timeout,
            query_timeout=self._timeout,
            on_lost=on_lost,
            on_notify=self._notified,
        )
        try:
            for channel in self._callbacks:
                await connection.run(Statement(f'LISTEN "{channel}"'), ())
            for statement, parameters in self._held:
                await connection.run(statement, parameters)
            self.epoch = next(self._epochs)
            for callback in self._at_epoch:
                callback()
            while not lost.is_set():
                try:
                    async with asyncio.timeout(self._heartbeat):
                        await lost.wait()
                except TimeoutError:
                    await connection.run(_HEARTBEAT, ())
        finally:
            connection.close()

    def _notified(self, channel: str, payload: str) -> None:
        callback = self._callbacks.get(channel)
        if callback is not None:
            callback(payload)
