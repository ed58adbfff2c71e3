"""Admits this process's sockets and records their closing, many in one transaction.

After a restart thousands of dapps connect at once. Handshakes that arrive during a
transaction are admitted together in the next one.
"""

from __future__ import annotations

import asyncio
import logging
import secrets

from django.db import Error as DatabaseError

from outbox.pruning import prune as prune_outbox
from wallets.models import DappToken
from wallets.services import presence
from wallets.services.presence import Handshake, Refusal
from wallets.services.pruning import prune as prune_wallet
from wallets.serving.threads import in_thread

logger = logging.getLogger(__name__)

MAX_ROWS = 500
"""Most handshakes or closed sockets that are processed in one transaction."""

MAINTENANCE_SECONDS = 3600.0
"""Interval at which tokens of open sockets are extended and old rows deleted."""

RENEWAL_SECONDS = 2.0
"""Interval at which the process's row is renewed; see `wallets.models.DEAD_AFTER`."""

RETRY_SECONDS = 1.0
"""Pause after a database error."""

_Waiting = tuple[Handshake, asyncio.Future[DappToken | Refusal]]


class Presence:
    """Admits sockets, and deletes the rows of closed ones."""

    def __init__(self) -> None:
        self.process = secrets.randbits(31)
        self._waiting: list[_Waiting] = []
        self._closed: set[str] = set()
        self._admitting: asyncio.Task[None] | None = None
        self._deleting: asyncio.Task[None] | None = None
        self._maintenance: asyncio.Task[None] | None = None
        self._renewal: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Number of handshakes that wait to be admitted."""
        return len(self._waiting)

    async def start(self) -> None:
        """Start the renewal of the process's row, and the hourly maintenance."""
        self._renewal = asyncio.create_task(self._renew())
        self._maintenance = asyncio.create_task(self._maintain())

    async def stop(self) -> None:
        """Stop all tasks, and delete the rows of this process's sockets."""
        tasks = [self._renewal, self._maintenance, self._admitting, self._deleting]
        running = [task for task in tasks if task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        try:
            await in_thread(presence.forget_process, self.process)
        except DatabaseError as error:  # they stop counting soon
            logger.info("closed sockets could not be deleted: %s", error)

    async def admit(self, handshake: Handshake) -> DappToken | Refusal:
        """Return the token that admits a socket, or the reason for the refusal.

        Call `leave` when an admitted socket has closed.
        Raises: django.db.Error.
        """
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((handshake, future))
        if self._admitting is None:
            self._admitting = asyncio.create_task(self._admit_waiting())
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            future.add_done_callback(lambda _: self.leave(handshake.name))
            raise

    def leave(self, name: str) -> None:
        """Schedule the deletion of a closed socket's row."""
        self._closed.add(name)
        if self._deleting is None:
            self._deleting = asyncio.create_task(self._delete_closed())

    async def _admit_waiting(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = (
                    self._waiting[:MAX_ROWS],
                    self._waiting[MAX_ROWS:],
                )
                handshakes = [handshake for handshake, _ in batch]
                try:
                    answers = await in_thread(presence.admit, handshakes, self.process)
                except Exception as error:
                    for _, future in batch:
                        future.set_exception(error)
                        future.exception()  # marks it as retrieved, if its waiter was cancelled
                else:
                    for (_, future), answer in zip(batch, answers, strict=True):
                        future.set_result(answer)
        finally:
            self._admitting = None

    async def _delete_closed(self) -> None:
        try:
            while self._closed:
                names = list(self._closed)[:MAX_ROWS]
                try:
                    await in_thread(presence.leave, names)
                    self._closed.difference_update(names)
                except DatabaseError as error:
                    logger.info("closed sockets could not be deleted: %s", error)
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            self._deleting = None

    async def _renew(self) -> None:
        while True:
            try:
                await in_thread(presence.renew_process, self.process)
            except DatabaseError as error:
                logger.info("the process's row was not renewed: %s", error)
                await asyncio.sleep(RETRY_SECONDS)
            else:
                await asyncio.sleep(RENEWAL_SECONDS)

    async def _maintain(self) -> None:
        while True:
            try:
                await in_thread(presence.keep_alive, self.process)
                await in_thread(prune_wallet)
                await in_thread(prune_outbox)
            except DatabaseError as error:
                logger.info("maintenance of tokens and old rows failed: %s", error)
                await asyncio.sleep(RETRY_SECONDS)
            else:
                await asyncio.sleep(MAINTENANCE_SECONDS)
