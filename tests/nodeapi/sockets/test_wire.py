"""Frames written by the server's wire, or by ASGI's `send` where there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from nodeapi.frames import wire as wires
from nodeapi.frames.wire import WIRE, SendQueue
from nodeapi.sockets.consumer import SocketConsumer
from tests.support.coroutines import scenario
from tests.support.waiting import in_time, until

ACCEPT = {"type": "websocket.accept"}


class Server:
    """The `receive` and `send` of a connection, as a server passes them.

    room: the number of messages that the client reads; later ones block `send`.
    """

    def __init__(self, room: int = 1000) -> None:
        self.incoming: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self.sent: list[Mapping[str, Any]] = []
        self.written: list[bytes] = []
        self.closed_with: int | None = None
        self.waiting_bytes = 0
        self._room = asyncio.Semaphore(room)

    async def receive(self) -> Mapping[str, Any]:
        return await self.incoming.get()

    async def send(self, message: Mapping[str, Any]) -> None:
        await self._room.acquire()
        self.sent.append(message)

    def write_text(self, frame: bytes) -> None:
        self.written.append(frame)

    def hang_up(self, code: int, reason: str) -> None:
        self.closed_with = code

    def texts(self) -> list[str]:
        return [message["text"] for message in self.sent if "text" in message]


class Greeter(SocketConsumer):
    """An application that writes a frame after the handshake."""

    async def connect(self) -> None:
        await self.accept()
        self.wire.write_text(b"hello")


@scenario
async def test_a_consumer_writes_by_the_wire_unless_send_was_replaced() -> None:
    for is_replaced in (False, True):
        server = Server()

        async def send(message: Mapping[str, Any], server: Server = server) -> None:
            await server.send(message)

        scope = {"type": "websocket", "extensions": {WIRE: server}}
        greeter = asyncio.create_task(
            Greeter.as_asgi()(
                scope, server.receive, send if is_replaced else server.send
            )
        )
        server.incoming.put_nowait({"type": "websocket.connect"})
        await until(lambda server=server: server.written or server.texts())
        assert server.written == ([] if is_replaced else [b"hello"])
        assert server.texts() == (["hello"] if is_replaced else [])
        server.incoming.put_nowait({"type": "websocket.disconnect", "code": 1000})
        await in_time(greeter)


@scenario
async def test_frames_wait_for_the_end_of_the_handshake() -> None:
    server = Server()
    queue = SendQueue(server.receive, server.send)
    queue.write_text(b"first")
    queue.hang_up(4000, "why")
    queue.write_text(b"too late")
    await asyncio.sleep(0)
    assert server.sent == []
    assert queue.waiting_bytes == len("first")
    await queue.send(ACCEPT)
    ended = await in_time(queue.receive())
    assert ended == {"type": "websocket.disconnect", "code": 4000, "reason": "why"}
    assert server.sent == [
        ACCEPT,
        {"type": "websocket.send", "text": "first"},
        {"type": "websocket.close", "code": 4000, "reason": "why"},
    ]
    assert queue.waiting_bytes == 0
    await queue.stop()


@scenario
async def test_frames_count_as_waiting_until_they_are_sent() -> None:
    server = Server(room=2)
    queue = SendQueue(server.receive, server.send)
    await queue.send(ACCEPT)
    for frame in (b"a", b"bb", b"ccc"):
        queue.write_text(frame)
    await until(lambda: server.texts() == ["a"])
    assert queue.waiting_bytes == len("bbccc")
    await queue.stop()


@scenario
async def test_a_client_that_does_not_read_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wires, "LAST_WORDS_SECONDS", 0.05)
    server = Server(room=1)
    queue = SendQueue(server.receive, server.send, server)
    await queue.send(ACCEPT)
    queue.write_text(b"unread")
    queue.hang_up(4008, "too slow")
    ended = await in_time(queue.receive())
    assert (ended["type"], ended["code"]) == ("websocket.disconnect", 4008)
    assert server.closed_with == 4008  # ASGI can't abort a connection, the wire can
    await queue.stop()
    assert server.sent == [ACCEPT]


@scenario
async def test_a_lost_connection_ends_the_consumer() -> None:
    async def send(message: Mapping[str, Any]) -> None:
        if message != ACCEPT:
            raise BrokenPipeError

    server = Server()
    queue = SendQueue(server.receive, send)
    await queue.send(ACCEPT)
    queue.write_text(b"lost")
    assert (await in_time(queue.receive()))["code"] == 1006
    queue.write_text(b"lost too")
    assert queue.waiting_bytes == len("lost")
    await queue.stop()


@scenario
async def test_an_error_of_a_middleware_reaches_the_server() -> None:
    async def send(message: Mapping[str, Any]) -> None:
        if message != ACCEPT:
            raise LookupError("of the middleware")

    server = Server()
    queue = SendQueue(server.receive, send)
    await queue.send(ACCEPT)
    queue.write_text(b"frame")
    with pytest.raises(LookupError, match="of the middleware"):
        await in_time(queue.receive())
    await queue.stop()
