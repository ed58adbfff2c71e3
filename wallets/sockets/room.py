"""All sockets of one dapp in this process, and what holds for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from postgres.errors import Unavailable
from wallets.store import DappState, SessionState, WalletStore

if TYPE_CHECKING:
    from wallets.sockets.peer import Peer

RETRY_SECONDS = 0.5
"""Pause after a look that failed."""

NOTHING = SessionState(-1, {})
"""Older than any session."""


class Room:
    """Looks at a dapp for all of its sockets when something has changed.

    One look ends before the next begins, so that what is known follows the database's
    own order.
    """

    def __init__(self, dapp_id: int, store: WalletStore) -> None:
        self.dapp_id = dapp_id
        self.peers: set[Peer] = set()
        self.session = NOTHING
        """As it stood at the last look."""
        self._store = store
        self._is_due = False
        self._waiters: list[asyncio.Future[None]] = []
        self._held: list[Callable[[], None]] = []
        self._looking: asyncio.Task[None] | None = None

    @property
    def is_settled(self) -> bool:
        """Whether nothing was heard of that has not been looked at."""
        return self._looking is None

    def look(self) -> None:
        """Look soon: there may be something new."""
        self._is_due = True
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look())

    async def looked(self) -> None:
        """Wait for a look that begins after this call; for as long as it takes."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self.look()
        await waiter

    def when_settled(self, act: Callable[[], None]) -> None:
        """Do something once all has been looked at that was heard of, or at once."""
        if self.is_settled:
            act()
        else:
            self._held.append(act)

    async def close(self) -> None:
        """End a look that is under way."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _look(self) -> None:
        try:
            await self._look_while_due()
        finally:
            self._looking = None
        held, self._held = self._held, []
        for act in held:
            act()

    async def _look_while_due(self) -> None:
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
        for peer in list(self.peers):
            peer.adopt(state)
