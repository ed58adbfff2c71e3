"""The wallet's Channels consumers: `/ws/dapp` for dapps, `/ws/ui` for users' pages.

A consumer handles one connection: its handshake, its frames and its end. It gets the shared objects of a process from `wallets.routing`: the hub, which writes to many
sockets at once, and the open inboxes.
"""

from __future__ import annotations

from uuid import uuid4

from django.db import Error as DatabaseError

from nodeapi.frames import close_codes
from nodeapi.frames.writer import FrameWriter
from nodeapi.sockets.consumer import SocketConsumer
from nodeapi.sockets.handshake import Rejected, remote_address
from wallets.models import DappToken
from wallets.services.presence import Handshake, Refusal
from wallets.sockets import limits
from wallets.sockets.handshake import read_origin, read_token, session_key
from wallets.sockets.hub import Hub
from wallets.sockets.inbox import Inbox, Inboxes
from wallets.sockets.peer import Peer

SUBPROTOCOL = "multichain.v1"
"""The subprotocol that the server selects if the client offers it."""

_STATUS = {Refusal.BAD_TOKEN: 403, Refusal.TOO_MANY: 429}


class DappConsumer(SocketConsumer):
    """A dapp's socket.

    Cookies are not read. The client authenticates with a token. For a page's token the
    Origin header must be the origin that the token was issued to.
    """

    def __init__(self, hub: Hub) -> None:
        super().__init__()
        self._hub = hub
        self._peer: Peer | None = None

    async def connect(self) -> None:
        """Admit the dapp by its token.

        Raises: Rejected.
        """
        handshake = Handshake(
            name=uuid4().hex,
            secret=read_token(self.scope),
            origin=read_origin(self.scope),
            remote_address=remote_address(self.scope),
        )
        token = await self._admit(handshake)
        room = self._hub.room(token.dapp)
        writer = FrameWriter(self.wire, self._hub.backlog, limits.UNREAD_BYTES)
        peer = self._peer = Peer(self._hub, room, writer, token.pk, handshake)
        room.members.add(peer)
        await room.refreshed()
        if not writer.is_open:  # disconnected in the meantime
            raise Rejected(403, Refusal.BAD_TOKEN.value)
        peer.begin()
        offered = self.scope.get("subprotocols") or ()
        await self.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None
    ) -> None:
        """Pass a text frame to the peer; close the socket after a binary frame."""
        if self._peer is None:
            return
        writer = self._peer.writer
        if text_data is None:
            writer.close(close_codes.NOT_TEXT, "text frames only")
        elif writer.is_open:
            self._peer.receive(text_data)

    async def leave(self) -> None:
        """Withdraw the socket's pending requests, and delete its row."""
        if self._peer is not None:
            self._hub.leave(self._peer.room, self._peer)
            await self._peer.stop()

    async def _admit(self, handshake: Handshake) -> DappToken:
        """Return the token of a handshake.

        Raises: Rejected.
        """
        if self._hub.presence.waiting >= limits.MAX_HANDSHAKES:
            raise Rejected(503, "too many handshakes in progress")
        try:
            token = await self._hub.presence.admit(handshake)
        except DatabaseError as error:
            raise Rejected(503, "try again soon") from error
        if isinstance(token, Refusal):
            raise Rejected(_STATUS[token], token.value)
        return token


class InboxConsumer(SocketConsumer):
    """The socket of a user's open page. It accepts no frames from the client.

    The login cookie authenticates it. Browsers send the cookie from pages of other sites
    too, so the Origin header must be the site's own.
    """

    def __init__(self, inboxes: Inboxes) -> None:
        super().__init__()
        self._inboxes = inboxes
        self._inbox: Inbox | None = None

    async def connect(self) -> None:
        """Admit the page of a user who is logged in.

        Raises: Rejected.
        """
        key = session_key(self.scope)
        user_id = await self._inboxes.admit(key)
        inbox = self._inbox = Inbox(key, user_id, FrameWriter(self.wire))
        await self._inboxes.join(inbox)
        await self.accept()
        self._inboxes.open(inbox)

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None
    ) -> None:
        """Close the socket, because users' pages never send frames."""
        if self._inbox is not None:
            self._inbox.writer.close(
                close_codes.UNEXPECTED_FRAME, "this socket accepts no frames"
            )

    async def leave(self) -> None:
        """Remove the page from the open inboxes."""
        if self._inbox is not None:
            self._inboxes.leave(self._inbox)
