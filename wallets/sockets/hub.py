"""What the dapps' sockets of a process share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from wallets.service import Wallet
from wallets.sockets.feed import Feed
from wallets.sockets.outbox import Backlog
from wallets.sockets.peer import Peer
from wallets.sockets.presence import Presence
from wallets.sockets.room import Room

SWEEP_SECONDS = 5.0
"""Between two looks for clients that read nothing, and for what no event has told of:
a user who was deactivated, blocks whose event was lost."""


class Hub:
    """The rooms and the feeds of a process; made before the node's start."""

    def __init__(self, wallet: Wallet) -> None:
        self.wallet = wallet
        self.presence = Presence(wallet.node.listener)
        self.backlog = Backlog()
        self._rooms: dict[int, tuple[Room, Callable[[], None]]] = {}
        self._feeds: dict[int, asyncio.Task[Feed]] = {}
        self._sweep: asyncio.Task[None] | None = None
        wallet.node.directory.follow(self._look_at_chains)

    async def start(self) -> None:
        """Begin to look after the sockets."""
        self._sweep = asyncio.create_task(self._look_after_all())
        await self.presence.start()

    async def stop(self) -> None:
        """Leave; the sockets have gone."""
        if self._sweep is not None:
            self._sweep.cancel()
            await asyncio.gather(self._sweep, return_exceptions=True)
        for opening in list(self._feeds.values()):
            opening.cancel()
            for feed in await asyncio.gather(opening, return_exceptions=True):
                if isinstance(feed, Feed):
                    await feed.stop()
        for room, unfollow in list(self._rooms.values()):
            unfollow()
            await room.close()
        await self.presence.stop()

    def room(self, dapp_id: int) -> Room:
        """Return a dapp's room, which stays as long as it has sockets."""
        found = self._rooms.get(dapp_id)
        if found is None:
            room = Room(dapp_id, self.wallet.store)
            unfollow = self.wallet.watch.follow_dapp(dapp_id, room.look)
            found = self._rooms[dapp_id] = room, unfollow
        return found[0]

    def leave(self, peer: Peer) -> None:
        """Forget a socket, and the room when it was the last."""
        self.presence.leave(peer.socket)
        room = peer.room
        room.peers.discard(peer)
        if not room.peers and room.dapp_id in self._rooms:
            self._rooms.pop(room.dapp_id)[1]()

    async def feed(self, network_id: int) -> Feed:
        """Return the feed of a network.

        Raises: Unavailable.
        """
        opening = self._feeds.get(network_id)
        if opening is None or (opening.done() and opening.exception() is not None):
            opening = asyncio.create_task(self._open_feed(network_id))
            self._feeds[network_id] = opening
        return await asyncio.shield(opening)

    async def _open_feed(self, network_id: int) -> Feed:
        feed = Feed(self.wallet, network_id)
        await feed.start()
        return feed

    def _look_at_chains(self) -> None:
        """Look for new blocks; not while changes of sessions are not heard of."""
        if not self.wallet.node.directory.is_fresh:
            return
        for opening in self._feeds.values():
            if opening.done() and not opening.cancelled() and not opening.exception():
                opening.result().look()

    async def _look_after_all(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self._look_at_chains()
            for room, _ in list(self._rooms.values()):
                room.look()
                for peer in room.peers:
                    peer.outbox.close_if_stalled()
