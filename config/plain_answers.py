"""Answers of JSON with status 200 and no headers but a few, put together in one go."""

from __future__ import annotations

import asyncio
from typing import Any

from jsonrpc.answers import Body, Parts
from nodeapi import http

_COPIED_BYTES = 2**14
"""Bodies up to here are joined with their heads: copying them costs less than a write."""

_beginning: tuple[Any, bytes] = (None, b"")
"""The server's headers, which are other ones every second, and what is made of them."""


def write_plainly(
    transport: asyncio.Transport,
    default_headers: list[tuple[bytes, bytes]],
    body: Body,
    more: bytes,
) -> None:
    """Write a whole answer.

    default_headers: the server's.
    more: headers, each with the end of its line.
    """
    is_known = _beginning[0] is default_headers
    start = _beginning[1] if is_known else _begin(default_headers)
    head = b"%b%d\r\n%b\r\n" % (start, len(body), more)
    parts = body.parts if type(body) is Parts else (body,)
    if len(body) <= _COPIED_BYTES:
        transport.write(b"".join((head, *parts)))
    else:
        transport.writelines((head, *parts))


def _begin(default_headers: list[tuple[bytes, bytes]]) -> bytes:
    """Return how every plain answer begins, up to its length."""
    global _beginning
    lines = [*default_headers, *http.PLAIN_HEADERS, (b"content-length", b"")]
    head = b"HTTP/1.1 200 OK\r\n" + b"\r\n".join(map(b": ".join, lines))
    _beginning = default_headers, head
    return head
