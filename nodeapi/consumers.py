"""The node's Channels consumer: `/ws/v3/<KEY>` and `/<slug>/ws/v3/<KEY>`.

A consumer handles one connection: its handshake, its frames and its close. It gets the
hub, which the sockets of a process share.
"""

from __future__ import annotations

from django.urls import URLPattern, re_path

from nodeapi.sockets.consumer import SocketConsumer
from nodeapi.sockets.handshake import Rejected, headers_of, remote_address
from nodeapi.sockets.hub import Hub
from nodeapi.sockets.peer import Peer
from server.process import process_of


class NodeConsumer(SocketConsumer):
    """A customer's socket. The key is in the path, or in an Authorization header."""

    def __init__(self, hub: Hub) -> None:
        super().__init__()
        self._hub = hub
        self._peer: Peer | None = None

    async def connect(self) -> None:
        """Admit the client by its API key.

        Raises: Rejected.
        """
        peer = self._peer = await self._hub.admit(
            self.scope["path"],
            headers_of(self.scope),
            remote_address(self.scope),
            process_of(self.scope),
            self.wire,
        )
        if not peer.writer.is_open:  # the key was revoked in the meantime
            raise Rejected(401, "the API key was rejected")
        await self.accept()

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None
    ) -> None:
        """Pass a frame to the peer.

        web3.py sends its calls in binary frames, and geth accepts them.
        """
        if self._peer is None or not self._peer.writer.is_open:
            return
        if text_data is not None:
            bytes_data = text_data.encode("utf-8", "surrogatepass")
        self._peer.receive(bytes_data or b"")

    async def leave(self) -> None:
        """Remove the closed socket from the hub."""
        if self._peer is not None:
            self._hub.leave(self._peer)
            await self._peer.stop()


def websocket_urlpatterns(hub: Hub) -> list[URLPattern]:
    """Return the routes for Channels' `URLRouter`.

    Like those of `/v3`, the paths may have a slash at the end.
    hub: a part of the process. It has to be started.
    """
    consumer = NodeConsumer.as_asgi(hub=hub)
    return [re_path(r"^(?:[^/]+/)?ws/v3(?:/.*)?$", consumer)]
