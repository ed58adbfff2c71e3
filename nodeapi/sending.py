"""The way out of `/v3`: answers with the headers that browsers and refusals need."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sized
from contextlib import suppress

from jsonrpc.answers import Body, Reply
from jsonrpc.deadlines import Deadlines
from jsonrpc.errors import BodyTooLarge
from jsonrpc.stream import Stream
from keys.grants import Grant
from nodeapi import http
from nodeapi.exchange import Exchange
from nodeapi.head import Head
from nodeapi.streaming import send_stream
from postgres.errors import Unavailable

logger = logging.getLogger(__name__)

_GZIP_THREAD_BYTES = 2**16
"""From here on compressing would hold the event loop up for more than 0.2 ms."""

_DISCARDED_BYTES = 2**25
"""How much more is taken from a client whose body was refused for its length."""

PREFLIGHT = Reply(204, b"", http.PREFLIGHT_HEADERS)
"""The answer to a browser's question whether a page may call."""


def may_be_compressed(head: Head, body: Sized) -> bool:
    """Return whether a client may want an answer compressed.

    Which encodings it accepts changes nothing about a short answer, so that this needs no
    Vary, and nearly all clients name some.
    """
    return len(body) >= http.GZIP_MIN_BYTES and head.names_encodings


async def send_plainly(answer: bytes, exchange: Exchange) -> None:
    """Send an answer that needs no headers but its type and length."""
    await exchange.send(http.start_of_plain_answer(len(answer)))
    await exchange.send({"type": "http.response.body", "body": answer})


def send_at_once(
    answer: Body,
    grant: Grant | None,
    head: Head,
    exchange: Exchange,
    request_id: http.RequestId,
) -> bool:
    """Send an answer in one go, if the server can and it is not to be compressed."""
    if may_be_compressed(head, answer):
        return False
    if head.is_plain:
        return exchange.answer_plainly(answer)
    headers = answer_headers(head, request_id, grant)
    more = headers[len(http.PLAIN_HEADERS) :]
    lines = [b"%b: %b\r\n" % header for header in more]
    return exchange.answer_plainly(answer, b"".join(lines))


def answer_headers(
    head: Head, request_id: http.RequestId, grant: Grant | None
) -> http.Headers:
    """Return the headers that browsers and refusals need, and long answers have too.

    grant: None when the request was not let in.
    """
    headers = [*http.ANSWER_HEADERS, (b"x-request-id", bytes(request_id))]
    origin = head.headers.get(b"origin")
    allowlists = None if grant is None else grant.allowlists
    if origin is not None and allowlists is not None and allowlists.origins:
        headers += http.same_origin(origin)
    else:
        headers += http.ANY_ORIGIN
    if origin is not None:
        headers += http.BROWSER_HEADERS
    return headers


async def send_whole(
    answer: bytes | Reply,
    head: Head,
    headers: http.Headers,
    exchange: Exchange,
    deadlines: Deadlines,
) -> None:
    """Send an answer of which all is there.

    deadlines: for a client that is still sending what was refused.
    """
    if isinstance(answer, bytes):
        status, body = 200, answer
    else:
        status, body, more_headers = answer
        headers += http.header_lines(more_headers)
    accept_encoding = head.headers.get(b"accept-encoding")
    if (
        accept_encoding is not None
        and len(body) >= http.GZIP_MIN_BYTES
        and http.accepts_gzip(accept_encoding)
    ):
        body = await _compress(body)
        headers += http.GZIP_HEADERS
    if status != PREFLIGHT.status:  # an answer that can't have a body
        headers.append((b"content-length", b"%d" % len(body)))
    send = exchange.send
    await send({"type": "http.response.start", "status": status, "headers": headers})
    if status == BodyTooLarge.http_status:
        await send({"type": "http.response.body", "body": body, "more_body": True})
        await _discard_body(exchange, deadlines)
        body = b""
    await send({"type": "http.response.body", "body": body})


async def send_as_made(
    answer: Stream, head: Head, headers: http.Headers, exchange: Exchange
) -> None:
    """Send an answer as it is made; break the transfer off when that fails."""
    accept_encoding = head.headers.get(b"accept-encoding", b"")
    # HTTP/1.0 knows no chunks, and can't be told a length that isn't known yet.
    gzip = head.http_version != "1.0" and http.accepts_gzip(accept_encoding)
    try:
        await send_stream(answer, headers, gzip, exchange.receive, exchange.send)
    except Unavailable as error:
        logger.error("the answer to request %s broke off: %s", _name(headers), error)
    except Exception:
        logger.exception("the answer to request %s broke off", _name(headers))


def _name(headers: http.Headers) -> str:
    """Return the request's id, out of its answer's headers."""
    return dict(headers)[b"x-request-id"].decode()


async def _discard_body(exchange: Exchange, deadlines: Deadlines) -> None:
    """Let a client finish sending, within reason, so that it reads the answer.

    A connection that is closed upon data that nobody has read is reset, and what was
    sent on it is lost.
    """
    left = _DISCARDED_BYTES
    with suppress(TimeoutError), deadlines.deadline():
        while left > 0:
            message = await exchange.receive()
            if not message.get("more_body"):
                return
            left -= len(message["body"])


async def _compress(body: bytes) -> bytes:
    """Compress an answer, a large one in a thread."""
    if len(body) < _GZIP_THREAD_BYTES:
        return http.gzip(body)
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(None, http.gzip, body)
