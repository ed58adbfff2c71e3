"""Who comes and goes in this process, told to the database many at a time.

Thousands of dapps may connect at once, as after a restart. Whoever comes while others
are let in waits for those, and then all who have come meanwhile are let in together.
"""

from __future__ import annotations

import asyncio
import logging
import secrets

from django.db import Error as DatabaseError

from postgres.listener import Listener
from postgres.statement import INT8, Statement, int8
from wallets.models import PROCESS_LOCKS, DappToken
from wallets.services import presence, pruning
from wallets.services.presence import Arrival, Refusal
from wallets.threads import in_thread

logger = logging.getLogger(__name__)

AT_ONCE = 500
"""Arrivals, or sockets that have closed, in one transaction."""

TEND_SECONDS = 3600.0
"""Between two looks at tokens whose sockets stay open, and at what is old."""

RETRY_SECONDS = 1.0
"""Pause before something is written again that could not be."""

_LIVE = Statement("SELECT pg_advisory_lock_shared($1::int4, $2::int4)", [INT8.oid] * 2)

_Waiting = tuple[Arrival, asyncio.Future[DappToken | Refusal]]


class Presence:
    """Lets sockets in, and has them forgotten; to be made before the node's start."""

    def __init__(self, listener: Listener) -> None:
        self.process = secrets.randbits(31)
        self._waiting: list[_Waiting] = []
        self._gone: set[str] = set()
        self._admitting: asyncio.Task[None] | None = None
        self._forgetting: asyncio.Task[None] | None = None
        self._tending: asyncio.Task[None] | None = None
        # Shared: the lock of a connection that was lost may be there still.
        listener.hold(_LIVE, [int8(PROCESS_LOCKS), int8(self.process)])

    @property
    def waiting(self) -> int:
        """How many wait to be let in."""
        return len(self._waiting)

    async def start(self) -> None:
        """Begin to look after what stays open and what is old."""
        self._tending = asyncio.create_task(self._tend())

    async def stop(self) -> None:
        """Leave: no socket of this process is open any more."""
        tasks = [self._tending, self._admitting, self._forgetting]
        running = [task for task in tasks if task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        try:
            await in_thread(presence.forget_process, self.process)
        except DatabaseError as error:  # its lock goes with the process
            logger.info("sockets are not forgotten: %s", error)

    async def admit(self, arrival: Arrival) -> DappToken | Refusal:
        """Return the token that opens a socket, or why there is none.

        Who was let in has to be given to `leave` at the end.
        Raises: django.db.Error.
        """
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((arrival, future))
        if self._admitting is None:
            self._admitting = asyncio.create_task(self._admit_waiting())
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            future.add_done_callback(lambda _: self.leave(arrival.name))
            raise

    def leave(self, name: str) -> None:
        """Have a socket forgotten that was closed."""
        self._gone.add(name)
        if self._forgetting is None:
            self._forgetting = asyncio.create_task(self._forget_gone())

    async def _admit_waiting(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
                arrivals = [arrival for arrival, _ in batch]
                try:
                    answers = await in_thread(presence.admit, arrivals, self.process)
                except Exception as error:
                    for _, future in batch:
                        future.set_exception(error)
                        future.exception()  # whoever was to hear it may have gone
                else:
                    for (_, future), answer in zip(batch, answers, strict=True):
                        future.set_result(answer)
        finally:
            self._admitting = None

    async def _forget_gone(self) -> None:
        try:
            while self._gone:
                names = list(self._gone)[:AT_ONCE]
                try:
                    await in_thread(presence.leave, names)
                    self._gone.difference_update(names)
                except DatabaseError as error:
                    logger.info("sockets are not forgotten: %s", error)
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            self._forgetting = None

    async def _tend(self) -> None:
        while True:
            try:
                await in_thread(presence.keep_alive, self.process)
                await in_thread(pruning.prune)
            except DatabaseError as error:
                logger.info("what is old stays for now: %s", error)
                await asyncio.sleep(RETRY_SECONDS)
            else:
                await asyncio.sleep(TEND_SECONDS)
