"""A dapp's connection, from the handshake to its end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from django.db import Error as DatabaseError

from nodeapi.http import Receive, Scope, Send
from wallets.services.presence import Arrival, Refusal
from wallets.sockets import limits, outbox
from wallets.sockets.handshake import refuse
from wallets.sockets.hub import Hub
from wallets.sockets.outbox import WIRE, Outbox
from wallets.sockets.peer import Peer

SUBPROTOCOL = "multichain.v1"
"""What the server selects where a client offers it."""

_TOKEN_PREFIX = "token."
"""Before the token among the subprotocols: pages can set no other header."""

_STATUS = {Refusal.BAD_TOKEN: 403, Refusal.TOO_MANY: 429}

_TOKEN = re.compile(r"[-_A-Za-z0-9]{43}")


class DappSockets:
    """Serves `/ws/dapp`; an ASGI application.

    Cookies are never read. A token shows who connects, and the Origin header has to
    be that of the page that was given it.
    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        await receive()
        headers = {name.lower(): value for name, value in scope["headers"]}
        secret = _token_of(scope, headers)
        if not secret:
            refusal = Refusal.BAD_TOKEN.value
            why = "a connection token is needed" if secret is None else refusal
            await refuse(send, 401 if secret is None else 403, why)
            return
        if self._hub.presence.waiting >= limits.MAX_HANDSHAKES:
            await refuse(send, 503, "too many connect at once")
            return
        origin = headers.get(b"origin")
        arrival = Arrival(
            name=uuid4().hex,
            secret=secret,
            origin=None if origin is None else origin.decode("latin-1"),
            remote_address=_address(scope),
        )
        try:
            token = await self._hub.presence.admit(arrival)
        except DatabaseError:
            await refuse(send, 503, "try again soon")
            return
        if isinstance(token, Refusal):
            await refuse(send, _STATUS[token], token.value)
            return
        room = self._hub.room(token.dapp_id)
        way_out = Outbox(scope["extensions"][WIRE], self._hub.backlog)
        peer = Peer(self._hub, room, way_out, token.pk, arrival)
        room.peers.add(peer)
        try:
            await _converse(peer, scope, receive, send)
        finally:
            self._hub.leave(peer)
            await peer.stop()


async def _converse(peer: Peer, scope: Scope, receive: Receive, send: Send) -> None:
    """Open the connection, and take what comes until it is closed."""
    await peer.room.looked()
    if not peer.outbox.is_open:  # disconnected meanwhile
        await refuse(send, 403, Refusal.BAD_TOKEN.value)
        return
    peer.begin()
    chosen = SUBPROTOCOL if SUBPROTOCOL in scope["subprotocols"] else None
    await send({"type": "websocket.accept", "subprotocol": chosen})
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return
        frame = message.get("text")
        if frame is None:
            peer.outbox.close(outbox.NOT_TEXT, "text frames only")
        elif peer.outbox.is_open:
            peer.receive(frame)


def _token_of(scope: Scope, headers: Mapping[bytes, bytes]) -> str | None:
    """Return the token that a handshake shows, "" for one that can be none."""
    offered = [
        name.removeprefix(_TOKEN_PREFIX)
        for name in scope["subprotocols"]
        if name.startswith(_TOKEN_PREFIX)
    ]
    scheme, _, value = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() == b"bearer":
        offered.append(value.strip().decode("latin-1"))
    if not offered:
        return None
    # More than one would leave open who it is.
    is_one = len(offered) == 1 and _TOKEN.fullmatch(offered[0]) is not None
    return offered[0] if is_one else ""


def _address(scope: Scope) -> str | None:
    client: Any = scope.get("client")
    return client[0] if client else None
