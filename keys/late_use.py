"""Revoked secrets that are still tried, put on record.

Whoever does so has not heard of the revocation, or should never have had the secret;
the key's owner wants to know either way.
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

MAX_REMEMBERED = 10_000
"""Secrets that this process knows to be on record today; others ask the database."""

MAX_UNDER_WAY = 4
"""Entries being written; what comes meanwhile is written at its next attempt."""


class LateUses:
    """Writes an event for a revoked secret that was shown, once a day."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, date] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def note(self, version_id: int, ip: str | None) -> None:
        """See to it that an attempt is on record; returns at once.

        ip: where it came from.
        """
        today = datetime.now(UTC).date()
        if self._known.get(version_id) == today or len(self._tasks) >= MAX_UNDER_WAY:
            return
        self._known[version_id] = today
        self._known.move_to_end(version_id)
        if len(self._known) > MAX_REMEMBERED:
            self._known.popitem(last=False)
        task = asyncio.create_task(self._write(version_id, ip))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Finish what is being written."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _write(self, version_id: int, ip: str | None) -> None:
        write = database_sync_to_async(
            note_use_after_revocation, thread_sensitive=False
        )
        try:
            await write(version_id=version_id, ip=ip)
        except DatabaseError as error:
            self._known.pop(version_id, None)
            logger.warning("use of a revoked key is not on record: %s", error)
