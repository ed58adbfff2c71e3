"""The limit of a client's bytes that one callback of the event loop parses."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from server.handover import HandedOver
from server.http import HttpProtocol
from server.process import CONNECTION, STATE, Process
from server.turns import TURNS, Turns
from server.websocket import (
    MAX_CONTROL_FRAMES,
    MAX_FRAGMENTS,
    SLICE_FRAMES,
    WebSocketProtocol,
)
from tests.support.applications import Answering
from tests.support.coroutines import scenario
from tests.support.served import request
from tests.support.waiting import in_time, until

HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
CHUNKED = b"POST %b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
TINY = b"1\r\na\r\n"


class Wire(asyncio.Transport):
    """A transport that keeps what is written, and reads nothing by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.reads = True
        self._is_closing = False

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self._is_closing = True

    def get_write_buffer_size(self) -> int:
        return 0

    @property
    def text(self) -> bytes:
        return b"".join(self.written)


def frame(first: int, payload: bytes = b"") -> bytes:
    """Return a client's frame with an empty mask. first: its first byte."""
    size = len(payload)
    length = bytes([128 | size]) if size < 126 else b"\xff" + size.to_bytes(8)
    return bytes([first]) + length + bytes(4) + payload


PING, PONG, START, GO_ON, END, WHOLE = 0x89, 0x8A, 0x01, 0x00, 0x80, 0x81


class Socket:
    """A WebSocket whose application accepts it when `accepts` is set, and echoes."""

    def __init__(self, turns: Turns) -> None:
        self.accepts = asyncio.Event()
        self.received: list[str] = []
        self.wire = Wire()
        config = Config(self._serve, log_config=None, interface="asgi3")
        self.protocol = WebSocketProtocol(config, ServerState(), {TURNS: turns})
        self.protocol.connection_made(self.wire)
        self.protocol.data_received(HANDSHAKE)

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await self.accepts.wait()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            self.received.append(message["text"])

    async def open(self) -> None:
        self.accepts.set()
        await until(lambda: self.wire.reads)
        self.wire.written.clear()


@scenario
async def test_nothing_is_read_before_the_handshake_is_decided() -> None:
    socket = Socket(Turns())
    assert not socket.wire.reads
    await socket.open()
    socket.protocol.data_received(frame(WHOLE, b"a"))
    await until(lambda: socket.received == ["a"])


@scenario
async def test_callback_answers_a_slice_of_pings() -> None:
    socket = Socket(Turns())
    await socket.open()
    socket.protocol.data_received(frame(PING) * 150)
    assert socket.wire.text.count(b"\x8a\x00") == SLICE_FRAMES
    assert not socket.wire.reads
    await asyncio.sleep(0)
    assert socket.wire.text.count(b"\x8a\x00") == 2 * SLICE_FRAMES
    await until(lambda: socket.wire.reads)
    assert socket.wire.text.count(b"\x8a\x00") == 150


@scenario
async def test_sockets_with_many_frames_take_turns() -> None:
    turns = Turns()
    sockets = [Socket(turns) for _ in range(10)]
    for socket in sockets:
        await socket.open()
    for socket in sockets:
        socket.protocol.data_received(frame(PING) * 150)
    for count in range(1, 11):
        await asyncio.sleep(0)
        pongs = [socket.wire.text.count(b"\x8a\x00") for socket in sockets]
        assert pongs == [2 * SLICE_FRAMES] * count + [SLICE_FRAMES] * (10 - count)


@pytest.mark.parametrize("kind", [PING, PONG])
def test_client_that_pings_too_often_is_disconnected(kind: int) -> None:
    async def run() -> None:
        socket = Socket(Turns())
        await socket.open()
        socket.protocol.data_received(frame(kind) * (MAX_CONTROL_FRAMES + 1))
        await until(socket.wire.is_closing)
        assert b"too many pings" in socket.wire.text

    asyncio.run(in_time(run()))


@pytest.mark.parametrize("payload", [b"", b"a"])
def test_message_of_too_many_fragments_is_refused(payload: bytes) -> None:
    async def run(fragments: int) -> Socket:
        socket = Socket(Turns())
        await socket.open()
        message = frame(START) + frame(GO_ON, payload) * (fragments - 2)
        socket.protocol.data_received((message + frame(END, b"z")) * 2)
        await until(lambda: len(socket.received) == 2 or socket.wire.is_closing())
        return socket

    most = asyncio.run(in_time(run(MAX_FRAGMENTS)))
    assert most.received == [(payload * (MAX_FRAGMENTS - 2) + b"z").decode()] * 2
    more = asyncio.run(in_time(run(MAX_FRAGMENTS + 1)))
    assert (more.received, b"too many fragments" in more.wire.text) == ([], True)


@scenario
async def test_next_frames_wait_until_the_application_has_received_the_messages() -> (
    None
):
    socket = Socket(Turns())
    await socket.open()
    socket.protocol.data_received(frame(WHOLE, b"m") * 1000)
    assert socket.protocol.queue.qsize() == SLICE_FRAMES
    assert not socket.wire.reads
    await until(lambda: len(socket.received) == 1000)
    await until(lambda: socket.wire.reads)


@scenario
async def test_frames_that_arrive_in_pieces_are_understood() -> None:
    sent = [b"", b"a" * 125, b"b" * 126, b"c" * 70_000]
    frames = b"".join(frame(WHOLE, each) + frame(PING, b"p") for each in sent)
    for step in (1, 3, 1000):
        socket = Socket(Turns())
        await socket.open()
        for start in range(0, len(frames), step):
            socket.protocol.data_received(frames[start : start + step])
            if socket.protocol.read_paused:
                await asyncio.sleep(0)
        while socket.wire.text.count(b"\x8a\x01p") < len(sent):
            await asyncio.sleep(0)
        assert socket.received == [each.decode() for each in sent]


@scenario
async def test_client_closes_though_messages_are_left() -> None:
    """The server has closed the socket, and reads until the client closes it, too."""
    socket = Socket(Turns())
    await socket.open()
    frames = frame(WHOLE, b"m") * 100 + frame(0x88, (1000).to_bytes(2))
    socket.protocol.data_received(frames)
    socket.protocol.hang_up(4000, "enough")
    await until(socket.wire.is_closing)


class Connection:
    """An HTTP connection of an application with node paths and pages."""

    def __init__(self, process: Process, application: Answering) -> None:
        config = Config(
            HandedOver(application),
            log_config=None,
            access_log=False,
            interface="asgi3",
        )
        self.wire = Wire()
        self.protocol = HttpProtocol(
            process,
            lambda connection: HttpToolsProtocol(
                config, process.state, {STATE: process, CONNECTION: connection}
            ),
        )
        self.wire.set_protocol(self.protocol)
        self.protocol.connection_made(self.wire)


def process_of(application: Answering) -> Process:
    return Process(ServerState(), application.server_options)


@pytest.mark.parametrize("path", [b"/node/echo", b"/node/refused", b"/page"])
def test_callback_parses_a_slice_of_tiny_chunks(path: bytes) -> None:
    async def run() -> None:
        application = Answering()
        process = process_of(application)
        connections = [Connection(process, application) for _ in range(5)]
        body = TINY * 40_000
        for one in connections:
            one.protocol.data_received(CHUNKED % path)
            one.protocol.data_received(body)
            assert len(one.protocol._reader.input) > len(body) - 20_000
            assert not one.wire.reads
        left = [len(one.protocol._reader.input) for one in connections]
        await asyncio.sleep(0)
        now = [len(one.protocol._reader.input) for one in connections]
        assert sum(before != after for before, after in zip(left, now, strict=True)) < 2
        for one in connections:
            await until(lambda one=one: one.wire.reads)  # type: ignore[misc]
            assert not one.protocol._reader.input
            one.protocol.data_received(b"0\r\n\r\n" + request("/node/size/3"))
            await until(lambda one=one: one.wire.text.endswith(b"\r\n\r\nxxx"))  # type: ignore[misc]

    asyncio.run(in_time(run()))


@pytest.mark.parametrize("path", ["/node/size/3", "/page"])
def test_callback_answers_one_of_the_pipelined_requests(path: str) -> None:
    async def run() -> None:
        application = Answering()
        one = Connection(process_of(application), application)
        whole = request(path) * 2000
        one.protocol.data_received(whole)
        assert not one.wire.reads
        answered = one.wire.text.count(b"HTTP/1.1 200")
        assert answered <= 1
        while answered < 2000:
            await asyncio.sleep(0)
            now = one.wire.text.count(b"HTTP/1.1 200")
            assert now <= answered + 1
            answered = now
        await until(lambda: one.wire.reads)

    asyncio.run(in_time(run()))
