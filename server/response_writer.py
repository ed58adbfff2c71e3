"""Writes responses on a connection, at the pace at which its client reads."""

from __future__ import annotations

import asyncio
import logging

from server.process import Process
from server.request import Response, ResponseAborted, StreamedBody
from server.response_bytes import status_and_headers
from server.socket_request import SocketRequest

logger = logging.getLogger(__name__)

_JOINED_BYTES = 16 * 1024
"""A shorter body is joined with its headers, because copying costs less than a write."""


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
        headers, self.keeps_alive = status_and_headers(
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
