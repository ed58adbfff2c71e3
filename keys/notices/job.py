"""The job that sends queued notices, and queues timed ones periodically."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable

from channels.db import database_sync_to_async
from django.db import Error as DatabaseError
from django.db import connection
from django.utils import timezone

from keys.notices.queue import listen, prune, send_waiting, unlisten
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
    """Sends notices in threads while a web process runs."""

    def __init__(self) -> None:
        self._queued = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to send what this process queues, and to check periodically."""
        self._loop = asyncio.get_running_loop()
        listen(self._wake)
        self._running = [
            asyncio.create_task(self._send()),
            asyncio.create_task(self._check()),
        ]

    async def stop(self) -> None:
        """Stop. An email that is being sent is completed by its thread."""
        if self._running:
            unlisten(self._wake)
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _wake(self) -> None:
        """Let queued notices be sent. Called by the threads of requests."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._queued.set)

    async def _send(self) -> None:
        while True:
            await self._queued.wait()
            self._queued.clear()
            await _in_thread(send_waiting)

    async def _check(self) -> None:
        while True:
            # Processes that start together do not check at the same moment.
            await asyncio.sleep(CHECK_SECONDS * random.uniform(0.2, 1))
            await _in_thread(check_if_due)


async def _in_thread(work: Callable[[], object]) -> None:
    """Run a function that uses the database in a thread, and log its failure."""
    try:
        await database_sync_to_async(work, thread_sensitive=False)()
    except DatabaseError as error:
        logger.info("notices were not sent: %s", error)
    except Exception:
        logger.exception("notices were not sent")


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
