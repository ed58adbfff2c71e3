"""Audit events for revoked secrets that are used.

A client that uses one has not been updated, or has stolen the secret. The owner of the
key sees the event in either case.
Source: https://cheatsheetseries.owasp.org/cheatsheets/Key_Management_Cheat_Sheet.html
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from datetime import UTC, date, datetime

from channels.db import database_sync_to_async
from django.db import Error as DatabaseError

from keys.services import note_use_after_revocation

logger = logging.getLogger(__name__)

MAX_CACHED = 10_000
"""Cache of secrets whose event of today is written. Other secrets need a query."""

MAX_WRITES = 4
"""Concurrent writes. Further uses are skipped; their events are written at the next use."""


class UsesAfterRevocation:
    """Writes an event when a revoked secret is used, at most once a day for each."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, date] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def note(self, version_id: int, ip: str | None) -> None:
        """Start writing the event of a use, unless today's has been written.

        version_id: row of the secret. ip: the client's address.
        """
        today = datetime.now(UTC).date()
        if self._known.get(version_id) == today or len(self._tasks) >= MAX_WRITES:
            return
        self._known[version_id] = today
        self._known.move_to_end(version_id)
        if len(self._known) > MAX_CACHED:
            self._known.popitem(last=False)
        task = asyncio.create_task(self._write(version_id, ip))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Wait until the writes in progress are finished."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _write(self, version_id: int, ip: str | None) -> None:
        write = database_sync_to_async(
            note_use_after_revocation, thread_sensitive=False
        )
        try:
            await write(version_id=version_id, ip=ip)
        except DatabaseError as error:
            self._known.pop(version_id, None)
            logger.warning("the use of a revoked key was not recorded: %s", error)
