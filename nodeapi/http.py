"""What the endpoint needs of HTTP: channels, encodings and headers."""

from __future__ import annotations

import asyncio
import re
import secrets
import zlib
from collections.abc import Awaitable, Callable, Generator, Mapping
from itertools import count
from typing import Any

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

Headers = list[tuple[bytes, bytes]]

ANSWER_HEADERS: Headers = [
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
]
"""Of answers: nothing stays in caches.

A plain answer (see `PLAIN_HEADERS`) does without the last: no cache keeps the answer to
a POST that says nothing of it.
"""

ANY_ORIGIN: Headers = [(b"access-control-allow-origin", b"*")]
"""Of answers, refusals too: pages may call from anywhere, and see why they may not."""

PLAIN_HEADERS: Headers = ANSWER_HEADERS[:1]
"""Of an answer with nothing special about it, before its length."""

PLAIN_ANSWER = "portcullis.plain_answer"
"""Extension in an ASGI scope: a function that takes the body of a plain answer, whole or in
`jsonrpc.answers.Parts`, and lines of other headers that it is to have, and sends it all
at once; where it returns False, it has to be sent as ever."""

BROWSER_HEADERS: Headers = [
    (b"access-control-expose-headers", b"Retry-After, X-Request-Id"),
]
"""Of answers to scripts in pages, which see no other headers; others needn't pay."""

ASK_FOR_MORE = frozenset({b"origin", b"x-request-id"})
"""Headers of requests whose answer is no plain one."""

WHOLE_BODY = "portcullis.whole_body"
"""Extension in an ASGI scope: a function that returns the request's body, once; None if
not all of it has come, which `receive` is to be asked for then. Afterwards `receive`
waits for the client to hang up."""


class _Done:
    """Something to await that is over already."""

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


DONE = _Done()
"""What an application returns that has answered while it was called: a server that
knows this needs no task for the request, another one awaits it."""


class GoOn:
    """What an application returns that goes on when a future is done.

    go_on: to be called then; returns what an application does. A server that knows this
    calls it in a callback of the future, another one awaits the whole.
    """

    __slots__ = ("future", "go_on")

    def __init__(
        self, future: asyncio.Future[Any], go_on: Callable[[], Awaitable[None]]
    ) -> None:
        self.future = future
        self.go_on = go_on

    def __await__(self) -> Generator[Any, None, None]:
        return self._wait().__await__()

    async def _wait(self) -> None:
        await asyncio.wait([self.future])
        await self.go_on()


NOTE = "portcullis.note"
"""Where in an ASGI scope a request has its `nodeapi.notes.Note`, if it has one."""

PREFLIGHT_HEADERS = {
    "Access-Control-Allow-Methods": "POST, OPTIONS",
    "Access-Control-Allow-Headers": "content-type, authorization",
    "Access-Control-Max-Age": "7200",
}
"""Of the answer to a browser's question whether a page may call."""

GZIP_HEADERS: Headers = [
    (b"content-encoding", b"gzip"),
    (b"vary", b"accept-encoding"),
]

GZIP_MIN_BYTES = 1024
"""Shorter answers fit into one packet anyway."""

_REQUEST_ID = re.compile(rb"[-_.:0-9A-Za-z]{1,128}")
_GZIP = re.compile(rb"(?:^|,)\s*(?:gzip|\*)\s*(?:;\s*q=([0-9.]+)\s*)?(?:,|$)", re.I)


class RequestId:
    """Names a request in the log and towards its sender; made when first asked for."""

    __slots__ = ("_value",)

    _value: bytes
    _prefix = secrets.token_hex(4)
    """Tells the processes apart."""
    _numbers = count(1)

    def take(self, given: bytes) -> None:
        """Use the name that the sender, or a proxy, gave the request, if it is one."""
        if _REQUEST_ID.fullmatch(given):
            self._value = given

    def __bytes__(self) -> bytes:
        """Return the name as a header holds it."""
        try:
            return self._value
        except AttributeError:
            self._value = b"%b-%x" % (
                self._prefix.encode(),
                next(self._numbers),
            )
            return self._value

    def __str__(self) -> str:
        return bytes(self).decode()


def start_of_plain_answer(length: int) -> dict[str, object]:
    """Return the ASGI message that begins a plain answer; length: its body's, in bytes.

    Each header more would cost the server 0.5 µs.
    """
    return {
        "type": "http.response.start",
        "status": 200,
        "headers": [*PLAIN_HEADERS, (b"content-length", b"%d" % length)],
    }


def same_origin(origin: bytes) -> Headers:
    """Return what lets a page of one origin read an answer, and no cache mix it up.

    origin: as the request told it; a header can't hold what would end its line.
    """
    return [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]


def header_lines(headers: Mapping[str, str]) -> Headers:
    """Return headers as the server takes them."""
    return [
        (name.lower().encode("latin-1"), value.encode("latin-1"))
        for name, value in headers.items()
    ]


def accepts_gzip(accept_encoding: bytes) -> bool:
    """Return whether an Accept-Encoding header lets an answer be compressed."""
    match = _GZIP.search(accept_encoding)
    return match is not None and (match[1] is None or match[1].strip(b"0.") != b"")


def gzip(body: bytes) -> bytes:
    """Compress, at the level that costs least: hex is hardly better off with more."""
    compressor = zlib.compressobj(level=1, wbits=31)
    return compressor.compress(body) + compressor.flush()
