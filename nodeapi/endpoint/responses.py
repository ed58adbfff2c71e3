"""HTTP responses of `/v3`: headers, compression and streams."""

from __future__ import annotations

import asyncio
import logging
import re
import zlib
from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from functools import partial
from http import HTTPStatus

from jsonrpc.answers import Answer, Parts, Reply, refusal
from jsonrpc.envelope import NULL
from jsonrpc.errors import (
    BuffersFull,
    RpcError,
    TooManyBufferedBytes,
    TooManyConnections,
)
from jsonrpc.later import Later
from jsonrpc.stream import Stream
from keys.grants import Grant
from keys.site import site_url
from postgres.errors import Unavailable
from server.request import Request, Response, ResponseAborted, StreamedBody
from server.request_id import RequestId

logger = logging.getLogger(__name__)

HeaderList = list[tuple[bytes, bytes]]

PLAIN_HEADERS = ((b"content-type", b"application/json"),)
"""Headers of a short successful response to a program. Caches do not store responses to
POST."""

RESPONSE_HEADERS = (*PLAIN_HEADERS, (b"cache-control", b"no-store"))
"""Headers of all other responses."""

ANY_ORIGIN = ((b"access-control-allow-origin", b"*"),)
"""Header of all responses, including errors, to requests from pages of any origin."""

_EXPOSED = ((b"access-control-expose-headers", b"Retry-After, X-Request-Id"),)
"""Header of responses to scripts in pages, which can read only these headers besides
the standard ones."""

_GZIP_HEADERS = ((b"content-encoding", b"gzip"), (b"vary", b"accept-encoding"))

_PREFLIGHT_HEADERS = {
    "Access-Control-Allow-Methods": "POST, OPTIONS",
    "Access-Control-Allow-Headers": "content-type, authorization",
    "Access-Control-Max-Age": "7200",
}

PREFLIGHT = Reply(204, b"", _PREFLIGHT_HEADERS)
"""The response to a CORS preflight request.
Source: https://fetch.spec.whatwg.org/#cors-preflight-fetch"""

GZIP_MIN_BYTES = 1024
"""Least size of a compressed response. Shorter ones fit into one packet, and need no
Vary header."""

_GZIP_THREAD_BYTES = 2**16
"""Size from which a response is compressed in a thread. Compressing it in the event
loop would block the loop for more than 0.2 ms."""

_COMPRESSING_BYTES = 2**26
"""Most bytes that threads compress concurrently. Further responses are not compressed,
because their memory is only bounded once the server has them."""

_GZIP = re.compile(rb"(?:^|,)\s*(?:gzip|\*)\s*(?:;\s*q=([0-9.]+)\s*)?(?:,|$)", re.I)


_BODIES = (bytes, Parts)  # a union of types would be created again for each response


class _Compressing:
    """Responses that threads compress, or that wait for a thread."""

    size = 0


def respond(
    answer: Answer, request: Request, request_id: RequestId, grant: Grant | None
) -> Later[Response | None]:
    """Return the HTTP response that contains an answer. The result is never None.

    grant: None if the request was not authorized.
    """
    headers = request.headers
    if isinstance(answer, _BODIES) and (
        len(answer) < GZIP_MIN_BYTES or not _wants_gzip(headers)
    ):
        body = answer if isinstance(answer, bytes) else answer.parts
        if b"origin" not in headers and b"x-request-id" not in headers:
            return Later(Response(200, PLAIN_HEADERS, body))
        return Later(Response(200, response_headers(request, request_id, grant), body))
    lines = response_headers(request, request_id, grant)
    if isinstance(answer, Stream):
        return Later(_streamed(answer, request, lines, request_id))
    if isinstance(answer, Reply):
        lines += header_lines(answer.headers)
        status, body = answer.status, answer.body
    else:
        status, body = 200, bytes(answer)
    if (
        len(body) < GZIP_MIN_BYTES
        or not _wants_gzip(headers)
        or _Compressing.size + len(body) > _COMPRESSING_BYTES
    ):
        return Later(Response(status, lines, body))
    lines += _GZIP_HEADERS
    if len(body) < _GZIP_THREAD_BYTES:
        return Later(Response(status, lines, gzip(body)))
    return _compressed(body).then(partial(Response, status, lines))


def response_headers(
    request: Request, request_id: RequestId, grant: Grant | None
) -> HeaderList:
    """Return a response's headers, including those for cross-origin requests (CORS).

    grant: None if the request was not authorized.
    """
    headers = [*RESPONSE_HEADERS, (b"x-request-id", bytes(request_id))]
    origin = request.headers.get(b"origin")
    if origin is None:
        return [*headers, *ANY_ORIGIN]
    allowlists = None if grant is None else grant.allowlists
    if allowlists is not None and allowlists.origins:
        headers += [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]
    else:
        headers += ANY_ORIGIN
    return [*headers, *_EXPOSED]


def header_lines(headers: Mapping[str, str]) -> HeaderList:
    """Return headers as pairs of bytes (name, value), with names in lower case."""
    return [
        (name.lower().encode("latin-1"), value.encode("latin-1"))
        for name, value in headers.items()
    ]


def raw_refusal(error: RpcError) -> bytes:
    """Return a complete HTTP response that closes the connection.

    The JSON-RPC id is null. Links begin with PUBLIC_URL, because the request with its
    host has not been read.
    """
    status, body, more = refusal(NULL, error, site_url(""))
    headers = [
        *RESPONSE_HEADERS,
        *ANY_ORIGIN,
        *header_lines({**more, "Connection": "close"}),
        (b"content-length", b"%d" % len(body)),
    ]
    start = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()
    return start + b"".join(b"%b: %b\r\n" % each for each in headers) + b"\r\n" + body


REFUSALS: Mapping[str, bytes] = {
    "process": raw_refusal(BuffersFull()),
    "key": raw_refusal(TooManyBufferedBytes("API key")),
    "address": raw_refusal(TooManyBufferedBytes("address")),
    "connections": raw_refusal(TooManyConnections("address")),
}
"""Responses to clients that exceed a limit of the server; see `ServerOptions.refusals`."""


def accepts_gzip(accept_encoding: bytes) -> bool:
    """Return whether an Accept-Encoding header permits gzip."""
    match = _GZIP.search(accept_encoding)
    return match is not None and (match[1] is None or match[1].strip(b"0.") != b"")


def gzip(body: bytes) -> bytes:
    """Compress a body with gzip at the lowest level, which suffices for hex digits."""
    compressor = zlib.compressobj(level=1, wbits=31)
    return compressor.compress(body) + compressor.flush()


def _wants_gzip(headers: Mapping[bytes, bytes]) -> bool:
    accept_encoding = headers.get(b"accept-encoding")
    return accept_encoding is not None and accepts_gzip(accept_encoding)


def _compressed(body: bytes) -> Later[bytes]:
    """Compress a long body in a thread."""
    _Compressing.size += len(body)
    loop = asyncio.get_running_loop()
    compressed = Later.from_future(loop.run_in_executor(None, gzip, body))

    def release(_: object) -> None:
        _Compressing.size -= len(body)

    compressed.when_done(release)
    return compressed


def _streamed(
    stream: Stream, request: Request, headers: HeaderList, request_id: RequestId
) -> Response:
    """Return a response that is produced while it is sent."""
    # HTTP/1.0 has no chunks, which a body of unknown length needs.
    if request.http_version != "1.0" and _wants_gzip(request.headers):
        chunks = _report_failure(_compress_chunks(stream), request_id)
        return Response(
            200, [*headers, *_GZIP_HEADERS], StreamedBody(chunks, None, stream.aclose)
        )
    chunks = _report_failure(stream, request_id)
    return Response(200, headers, StreamedBody(chunks, stream.size, stream.aclose))


async def _report_failure(
    chunks: AsyncIterable[bytes], request_id: RequestId
) -> AsyncGenerator[bytes, None]:
    """Yield chunks. Raises: ResponseAborted, after the failure was logged."""
    try:
        async for chunk in chunks:
            yield chunk
    except Unavailable as error:
        logger.error("the response to request %s broke off: %s", request_id, error)
        raise ResponseAborted from error
    except Exception as error:
        logger.exception("the response to request %s broke off", request_id)
        raise ResponseAborted from error


async def _compress_chunks(chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
    """Compress chunks in a thread. Each would block the event loop for 0.5 ms."""
    compressor = zlib.compressobj(level=1, wbits=31)
    loop = asyncio.get_running_loop()
    async for chunk in chunks:
        packed = await loop.run_in_executor(None, compressor.compress, chunk)
        if packed:
            yield packed
    yield compressor.flush()
