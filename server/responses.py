"""Responses of HTTP/1.1, and their writing at the pace at which the client reads."""

from __future__ import annotations

import asyncio
import logging
from functools import lru_cache
from http import HTTPStatus

from server.process import Process
from server.request import Headers, Response, ResponseAborted, StreamedBody
from server.socket_request import SocketRequest

logger = logging.getLogger(__name__)

_JOINED_BYTES = 16 * 1024
"""A shorter body is joined with its headers, because copying costs less than a write."""

_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode()
    for status in HTTPStatus
}
_CLOSE = b"connection: close\r\n"
_NO_BODY = (HTTPStatus.NO_CONTENT.value, HTTPStatus.NOT_MODIFIED.value)


def closing_response(status: HTTPStatus, text: str = "") -> bytes:
    """Return a whole response with `connection: close`. text: a plain text body."""
    kind = "content-type: text/plain; charset=utf-8\r\n" if text else ""
    return (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n{kind}"
        f"content-length: {len(text)}\r\nconnection: close\r\n\r\n{text}"
    ).encode()


MALFORMED = "Invalid HTTP request received."
EXPECTATION_FAILED = closing_response(
    HTTPStatus.EXPECTATION_FAILED, "The only known expectation is 100-continue."
)
HEADERS_TOO_LARGE = closing_response(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
INTERNAL_ERROR = closing_response(
    HTTPStatus.INTERNAL_SERVER_ERROR, "Internal Server Error"
)


class ResponseWriter:
    """Writes the responses of one connection.

    keeps_alive: whether the connection stays open after the response.
    is_paused: whether the client has to read before more is written.
    """

    # Defaults in the class cost nothing for each connection.
    keeps_alive = True
    is_paused = False
    _is_lost = False
    _writable: asyncio.Future[None] | None = None
    """Completed when the client has read enough for the response to continue."""

    def __init__(self, process: Process, transport: asyncio.Transport) -> None:
        self._process = process
        self._transport = transport

    def pause(self) -> None:
        """Stop writing streams until `resume` is called."""
        self.is_paused = True

    def resume(self) -> None:
        """Continue to write a stream."""
        self.is_paused = False
        self._wake()

    def lose(self) -> None:
        """Write nothing more: the connection is lost."""
        self._is_lost = True
        self._wake()

    def write(
        self,
        request: SocketRequest,
        response: Response,
        parts: tuple[bytes, ...],
        length: int,
    ) -> None:
        """Write a whole response. parts: its body. length: the bytes of all parts."""
        headers = self._headers(request, response, b"content-length: %d\r\n" % length)
        if request.method == "HEAD":
            self._transport.write(headers)
        elif length <= _JOINED_BYTES:
            self._transport.write(b"".join((headers, *parts)))
        else:
            self._transport.writelines((headers, *parts))

    async def write_stream(
        self, request: SocketRequest, response: Response, body: StreamedBody
    ) -> bool:
        """Write a response while it is produced. Return whether it was written whole.

        The caller closes the body.
        """
        is_chunked = body.size is None and request.http_version == "1.1"
        if is_chunked:
            length = b"transfer-encoding: chunked\r\n"
        elif body.size is None:
            length, self.keeps_alive = b"", False
        else:
            length = b"content-length: %d\r\n" % body.size
        try:
            self._transport.write(self._headers(request, response, length))
            async for chunk in body.chunks:
                if chunk and is_chunked:
                    self._transport.writelines((b"%x\r\n" % len(chunk), chunk, b"\r\n"))
                else:
                    self._transport.write(chunk)
                await self._can_write()
                # A client may read so quickly that writing never waits.
                await asyncio.sleep(0)
                if self._is_lost:
                    return False
            if is_chunked:
                self._transport.write(b"0\r\n\r\n")
            return True
        except ResponseAborted:
            return False
        except Exception:
            logger.exception("a response broke off")
            return False

    def _headers(
        self, request: SocketRequest, response: Response, length: bytes
    ) -> bytes:
        process = self._process
        headers, self.keeps_alive = _status_and_headers(
            request,
            response,
            process.default_headers(),
            length,
            self.keeps_alive and not process.is_draining,
        )
        return headers

    async def _can_write(self) -> None:
        """Wait until the client has read enough."""
        while self.is_paused and not self._is_lost:
            self._writable = asyncio.get_running_loop().create_future()
            await self._writable

    def _wake(self) -> None:
        waiter, self._writable = self._writable, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


def _status_and_headers(
    request: SocketRequest,
    response: Response,
    defaults: bytes,
    length: bytes,
    keeps_alive: bool,
) -> tuple[bytes, bool]:
    """Return the status line with the headers, and whether the connection stays open.

    defaults: header lines of every response, with line ends.
    length: the header line, with its line end, that defines the body's length.
    keeps_alive: False adds `connection: close`. The response can contain it, too.
    """
    headers = response.headers
    encode = _constant_lines if type(headers) is tuple else _lines
    lines, closes = encode(headers)
    if closes or (request.expects_continue and request.body is None):
        keeps_alive = False  # the client may send the body or not
    status = response.status
    whole = b"%b%b%b%b%b\r\n" % (
        _STATUS_LINES[status],
        defaults,
        lines,
        b"" if status in _NO_BODY else length,
        b"" if keeps_alive else _CLOSE,
    )
    return whole, keeps_alive


def _lines(headers: Headers) -> tuple[bytes, bool]:
    """Return header lines without `connection: close`, and whether they had it."""
    lines = [b"%b: %b\r\n" % header for header in headers]
    closes = _CLOSE in lines
    if closes:
        lines.remove(_CLOSE)
    return b"".join(lines), closes


_constant_lines = lru_cache(64)(_lines)
"""Cached, for tuples: applications use them for headers that do not change."""
