"""The state that the dapps' sockets of a process share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nodeapi.frames.writer import Backlog
from wallets.models import Dapp
from wallets.serving.wallet import Wallet
from wallets.sockets.presence import Presence
from wallets.sockets.room import Member, Room
from wallets.sockets.subscriptions import DappAudience

SWEEP_SECONDS = 5.0
"""Interval of the sweep for stalled clients, and for what ends without a change in the
database: a session or a token that expires."""


class Hub:
    """The rooms of a process."""

    def __init__(self, wallet: Wallet) -> None:
        self.wallet = wallet
        self.presence = Presence()
        self.backlog = Backlog()
        self.audience = DappAudience(wallet.node.connections)
        self._rooms: dict[int, tuple[Room, Callable[[], None]]] = {}
        self._sweep: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the sweep and the admission of sockets."""
        self._sweep = asyncio.create_task(self._sweep_forever())
        await self.presence.start()

    async def stop(self) -> None:
        """Stop all tasks. Call it after the sockets were closed."""
        if self._sweep is not None:
            self._sweep.cancel()
            await asyncio.gather(self._sweep, return_exceptions=True)
        for room, unsubscribe in list(self._rooms.values()):
            unsubscribe()
            await room.close()
        await self.presence.stop()

    def room(self, dapp: Dapp) -> Room:
        """Return a dapp's room, which exists while the dapp has sockets here."""
        found = self._rooms.get(dapp.pk)
        if found is None:
            room = Room(dapp.pk, self.wallet.store)
            unsubscribe = self.wallet.watch.subscribe_dapp(dapp, room.refresh)
            found = self._rooms[dapp.pk] = room, unsubscribe
        return found[0]

    def leave(self, room: Room, member: Member) -> None:
        """Remove a closed socket, and its room when it was the room's last one."""
        self.presence.leave(member.socket)
        room.members.discard(member)
        if not room.members and room.dapp_id in self._rooms:
            self._rooms.pop(room.dapp_id)[1]()

    async def _sweep_forever(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            for room, _ in list(self._rooms.values()):
                room.refresh()
                for member in room.members:
                    member.writer.close_if_stalled()
