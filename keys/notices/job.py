"""The periodic job that queues timed notices and sends those that wait."""

from __future__ import annotations

import asyncio
import logging
import random

from channels.db import database_sync_to_async
from django.db import Error as DatabaseError
from django.db import connection
from django.utils import timezone

from keys.notices.queue import prune, send_waiting
from keys.notices.timed import queue_timed

logger = logging.getLogger(__name__)

CHECK_SECONDS = 60
"""Time between two checks of all processes together."""

_CLAIM = """
    INSERT INTO keys_noticecheck AS c (id, checked_at) VALUES (1, now())
    ON CONFLICT (id) DO UPDATE SET checked_at = EXCLUDED.checked_at
    WHERE c.checked_at <= now() - make_interval(secs => %s)
    RETURNING id
"""


class NoticeJob:
    """Runs the job in a thread while a web process runs."""

    def __init__(self) -> None:
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to check periodically."""
        self._running = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop. A mail that is being sent is completed by its thread."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _run(self) -> None:
        check = database_sync_to_async(check_if_due, thread_sensitive=False)
        while True:
            # Processes that start together do not check at the same moment.
            await asyncio.sleep(CHECK_SECONDS * random.uniform(0.2, 1))
            try:
                await check()
            except DatabaseError as error:
                logger.info("notices were not checked: %s", error)
            except Exception:
                logger.exception("notices were not checked")


def check_if_due() -> None:
    """Run the job, unless a process has run it within CHECK_SECONDS."""
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, [CHECK_SECONDS])
        is_claimed = cursor.fetchone() is not None
    if is_claimed:
        run()


def run() -> tuple[int, int]:
    """Queue due notices and send them; return how many were queued and how many sent.

    It can be interrupted, repeated and run concurrently.
    """
    queued = queue_timed(timezone.now())
    sent = send_waiting()
    prune()
    return queued, sent
