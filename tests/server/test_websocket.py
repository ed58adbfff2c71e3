"""uvicorn's WebSocket protocol with the extension for writes that do not wait."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.config import Config
from uvicorn.server import ServerState

from server.turns import TURNS, Turns
from server.websocket import WIRE, WebSocketProtocol
from tests.support.coroutines import scenario
from tests.support.waiting import until

HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


@scenario
async def test_a_connection_closed_after_a_ping_timeout_is_reported_as_closed() -> None:
    """The client has read nothing, so that the transport is not closed completely."""
    raised: list[type[Exception]] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        wire: WebSocketProtocol = scope["extensions"][WIRE]
        try:
            while not wire.waiting_bytes:
                await send({"type": "websocket.send", "text": "x" * 10_000})
            await until(wire.transport.is_closing)
            await send({"type": "websocket.send", "text": "x"})
        except Exception as error:
            raised.append(type(error))
        finally:
            wire.transport.abort()

    loop = asyncio.get_running_loop()
    config = Config(
        application, log_config=None, ws_ping_interval=0.5, ws_ping_timeout=0.5
    )
    server = await loop.create_server(
        lambda: WebSocketProtocol(config, ServerState(), {TURNS: Turns()}),
        "127.0.0.1",
    )
    _reader, writer = await asyncio.open_connection(
        *server.sockets[0].getsockname(), limit=1
    )
    writer.write(HANDSHAKE)
    await until(lambda: raised)
    writer.close()
    server.close()
    assert issubclass(raised[0], OSError)
