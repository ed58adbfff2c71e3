"""However requests are cut into pieces, they are answered as if no head was known."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from uvicorn.server import ServerState

from config.known_heads import KnownHeads
from config.protocol import Protocol
from config.worker import Config
from tests.config.test_known_heads import asking


class Transport:
    """Takes what is written, as long as it is open."""

    def __init__(self) -> None:
        self.written = b""
        self.is_open = True

    def get_extra_info(self, name: str, default: object = None) -> object:
        return ("192.0.2.1", 1) if name in ("peername", "sockname") else default

    def write(self, data: bytes) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return not self.is_open

    def close(self) -> None:
        self.is_open = False

    def pause_reading(self) -> None:
        pass

    resume_reading = pause_reading


class Echo:
    """Answers with path and body, a moment later; `/early` does not wait for the body."""

    known = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, message = b"", {"more_body": scope["path"] != "/early"}
        while message.get("more_body"):
            message = await receive()
            body += message.get("body", b"")
        await self._send(scope["path"].encode() + b"=" + body, send)

    def recognise(self, scope: Any) -> Any:
        if scope["path"] == "/early":
            return None

        def answer(exchange: Any) -> Any:
            self.known += 1
            text = scope["path"].encode() + b"=" + exchange.take_body()
            return self._send(text, exchange.send)

        return answer

    async def _send(self, text: bytes, send: Any) -> None:
        await asyncio.sleep(0)
        length = (b"content-length", b"%d" % len(text))
        start = {"type": "http.response.start", "status": 200, "headers": [length]}
        await send(start)
        await send({"type": "http.response.body", "body": text})


BODIES = st.sampled_from([b"", b"a", b"b", b"\r\n\r\n", b"POST / HTTP/1.1\r\n\r\n"])
BODIES |= st.just(b"x" * (len(asking(b"x" * 50)) - 50))  # as long as its head
REQUESTS = st.builds(asking, BODIES, st.sampled_from(["/a", "/b"])) | st.sampled_from(
    [
        b"POST /c HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        b"\r\n" + asking(b"a", "/a"),
        asking(path="/a").replace(b"POST", b"GET"),
        asking(b"a", "/a", "connection: close"),
        b"nonsense\r\n\r\n",
        # What comes next belongs to these, whatever it looks like.
        b"GET /d HTTP/1.1\r\nx-a: ",
        b"POST /early HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(asking(b"a", "/a")),
    ]
)


KNOWN = [asking(b"x" * size, path) for size in (0, 1, 4) for path in ("/a", "/b")]


async def tell(
    config: Config, pieces: list[bytes], turns: int, *, to: Transport
) -> None:
    """Have a new connection take pieces, with some turns of the loop between them."""
    connection = Protocol(config, ServerState(), {})
    connection.connection_made(to)  # type: ignore[arg-type]
    for piece in pieces:
        if to.is_open:
            connection.data_received(piece)
        for _ in range(turns):
            await asyncio.sleep(0)
    for _ in range(30 * len(pieces)):
        await asyncio.sleep(0)
    connection.connection_lost(None)


async def answers(pieces: list[bytes], turns: int, *, knowing: bool) -> bytes:
    """Return what pieces are answered with, KNOWN heads being known or not."""
    echo = Echo()
    config = Config("tests.support.applications:recognising", access_log=False)
    config.load()
    config.loaded_app = echo  # type: ignore[assignment]
    config.known_heads = KnownHeads(echo.recognise) if knowing else None
    for request in [*KNOWN, *KNOWN, *KNOWN]:
        await tell(config, [request], 1, to=Transport())
    assert echo.known == (len(KNOWN) if knowing else 0)
    for _ in range(3):  # what is learned from them is used on the third connection
        transport = Transport()
        await tell(config, pieces, turns, to=transport)
    return transport.written


@settings(max_examples=200, deadline=None)
@given(
    st.lists(REQUESTS, min_size=1, max_size=8),
    st.lists(st.integers(0, 500), max_size=8),
    st.integers(0, 6),
)
def test_what_is_known_changes_no_answer(
    requests: list[bytes], cuts: list[int], turns: int
) -> None:
    data = b"".join(requests)
    places = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
    for pieces in ([data[a:b] for a, b in pairwise(places)], requests):
        known = asyncio.run(answers(pieces, turns, knowing=True))
        assert known == asyncio.run(answers(pieces, turns, knowing=False))
