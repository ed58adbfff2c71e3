"""All sockets of one dapp in this process, with the dapp's current session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from nodeapi.frames.writer import FrameWriter
from postgres.errors import Unavailable
from wallets.serving.store import DappState, SessionState, WalletStore

RETRY_SECONDS = 0.5
"""Pause after a query that failed."""

NO_SESSION = SessionState(-1, {})
"""Stands for an unknown session; older than any other."""


class Member(Protocol):
    """An open dapp socket, as its room and the hub use it."""

    @property
    def socket(self) -> str:
        """The socket's name, unique among all processes."""

    @property
    def writer(self) -> FrameWriter:
        """Sends frames to the client."""

    def adopt(self, state: DappState | None) -> None:
        """Apply the dapp's state after a read. None means that the dapp was deleted."""


class Room:
    """Reads a dapp's state for all of its sockets when it has changed.

    Reads are sequential, so that the states arrive in the order of the commits.
    """

    def __init__(self, dapp_id: int, store: WalletStore) -> None:
        self.dapp_id = dapp_id
        self.members: set[Member] = set()
        self.session = NO_SESSION
        """The session at the last read."""
        self._store = store
        self._is_due = False
        self._waiters: list[asyncio.Future[None]] = []
        self._held: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def is_current(self) -> bool:
        """Whether no notification is unprocessed."""
        return self._task is None

    def refresh(self) -> None:
        """Schedule a read of the dapp's state."""
        self._is_due = True
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def refreshed(self) -> None:
        """Wait for a read that begins after this call, however long it takes."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self.refresh()
        await waiter

    def call_when_current(self, act: Callable[[], None]) -> None:
        """Call `act` when the pending reads are done; at once if there are none."""
        if self.is_current:
            act()
        else:
            self._held.append(act)

    async def close(self) -> None:
        """Cancel a read in progress."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            await self._refresh_while_due()
        finally:
            self._task = None
        held, self._held = self._held, []
        for act in held:
            act()

    async def _refresh_while_due(self) -> None:
        waiters: list[asyncio.Future[None]] = []
        while self._is_due:
            self._is_due = False
            waiters += self._waiters
            self._waiters = []
            try:
                state = await self._store.dapp(self.dapp_id)
            except Unavailable:
                await asyncio.sleep(RETRY_SECONDS)
                self._is_due = True
                continue
            self._adopt(state)
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)
            waiters = []

    def _adopt(self, state: DappState | None) -> None:
        if state is not None:
            self.session = state.session
        for member in list(self.members):
            member.adopt(state)
