"""JSON-RPC requests to an upstream over HTTP/1.1."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, cast

import httptools
import orjson

from nodeapi.upstreams.address import Address, tls
from nodeapi.upstreams.errors import UpstreamUnavailable
from nodeapi.upstreams.reasons import reason_of

KEEP_ALIVE_SECONDS = 30.0
"""Time for which an idle connection is kept. Load balancers close it after 60 s."""

MAX_HEAD_BYTES = 64 * 2**10
"""Maximum size of a response's headers."""

MAX_RETRY_AFTER = 30.0
"""Upper limit in seconds for an upstream's Retry-After header: the longest backoff."""

_SECONDS = re.compile(r"-?[0-9]+")

NOT_JSON = "the response is not JSON"
NOT_JSON_RPC = "the response is not JSON-RPC"
TOO_LONG = "the response is longer than {} bytes"


class HttpConnections:
    """Keep-alive connections to one upstream.

    A request takes about 0.2 ms of processor time, where general clients take over 1 ms. No
    proxy is used, no redirect is followed, and no URL is logged.
    """

    def __init__(self, address: Address, *, open_seconds: float) -> None:
        """Set the address. The first exchange opens a connection.

        open_seconds: time limit of connecting and of the TLS handshake.
        """
        url = address.url
        self._host = url.raw_host.decode()
        self._port = url.port or {"http": 80, "https": 443}[url.scheme]
        self._tls = tls() if url.scheme == "https" else None
        self._open_seconds = open_seconds
        headers = address.headers.copy()
        headers["Host"] = url.netloc.decode()
        headers["Content-Type"] = "application/json"
        # A compressed response could have any size.
        headers["Accept-Encoding"] = "identity"
        lines = [b"POST %b HTTP/1.1" % url.raw_path]
        lines += [b"%b: %b" % pair for pair in headers.raw]
        self._head = b"\r\n".join(lines)
        self._all: set[_Connection] = set()
        self._idle: list[_Connection] = []

    async def exchange(
        self, calls: Sequence[dict[str, Any]], max_bytes: int
    ) -> list[Any]:
        """Send calls in one request, as a batch if there are several.

        Return the responses in the upstream's order. They can be any JSON values. There
        is no time limit after connecting.

        Raises: UpstreamUnavailable.
        """
        body = orjson.dumps(calls[0] if len(calls) == 1 else calls)
        request = b"%b\r\nContent-Length: %d\r\n\r\n%b" % (self._head, len(body), body)
        connection = self._kept() or await self._connect()
        try:
            response = await connection.send(request, max_bytes)
        except (httptools.HttpParserError, OSError) as error:
            raise UpstreamUnavailable(reason_of(error)) from None
        finally:
            if connection.can_be_kept:
                self._idle.append(connection)
            else:
                connection.close()
        return _parse(bytes(response.body), response.status)

    async def close(self) -> None:
        """Close all connections."""
        for connection in [*self._all]:
            connection.close()

    def _kept(self) -> _Connection | None:
        """Return an idle connection, the last one that was used."""
        while self._idle:
            connection = self._idle.pop()
            if connection.can_be_kept:
                return connection
            connection.close()
        return None

    async def _connect(self) -> _Connection:
        """Open a connection. Raises: UpstreamUnavailable."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._open_seconds):
                _, connection = await loop.create_connection(
                    lambda: _Connection(self._all),
                    self._host,
                    self._port,
                    ssl=self._tls,
                )
        except TimeoutError:
            raise UpstreamUnavailable("timeout while connecting") from None
        # ValueError: a host name that can't be encoded. The error's own text may contain
        # the URL.
        except (OSError, ValueError) as error:
            reason = reason_of(error)
            raise UpstreamUnavailable(
                reason, is_unreachable=isinstance(error, OSError)
            ) from None
        return connection


class _Response:
    """A response that is being received. headers: names in lower case."""

    __slots__ = ("body", "done", "head_bytes", "headers", "max_bytes", "status")

    def __init__(self, max_bytes: int) -> None:
        self.status = 0
        """0 before all headers have arrived."""
        self.headers: dict[bytes, bytes] = {}
        self.head_bytes = 0
        self.body = bytearray()
        self.max_bytes = max_bytes
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def ends_with_connection(self) -> bool:
        """Whether the body has no other end.

        Source: RFC 9112, 6.3
        """
        names = self.headers.keys()
        return bool(self.status) and not names & {
            b"content-length",
            b"transfer-encoding",
        }


class _Connection(asyncio.Protocol):
    """A connection, with at most one request at a time.

    The methods named `on_…` are called by httptools' parser.
    """

    def __init__(self, all_open: set[_Connection]) -> None:
        self._all = all_open
        self._response: _Response | None = None
        self._used_at = 0.0
        self._keeps_alive = False
        """Whether the last response is complete and another request may follow."""

    async def send(self, request: bytes, max_bytes: int) -> _Response:
        """Send a request, and return the response.

        Raises: HttpParserError if it is not HTTP, ConnectionError; UpstreamUnavailable if
            it is too long, or a redirect, a rate limit or an error of the server.
        """
        self._keeps_alive = False
        self._response = response = _Response(max_bytes)
        self._parser = httptools.HttpResponseParser(self)
        self._transport.write(request)
        await response.done
        self._used_at = time.monotonic()
        return response

    @property
    def can_be_kept(self) -> bool:
        """Whether another request can be sent."""
        is_recent = time.monotonic() - self._used_at < KEEP_ALIVE_SECONDS
        return self._keeps_alive and is_recent and not self._transport.is_closing()

    def close(self) -> None:
        """Close the connection. A request in progress fails."""
        self._keeps_alive = False
        self._transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)
        self._all.add(self)

    def data_received(self, data: bytes) -> None:
        """Parse a part of a response."""
        response = self._response
        if response is None or response.done.done():
            self.close()  # the upstream sends more than the response
            return
        if not response.status:
            response.head_bytes += len(data)
        try:
            self._parser.feed_data(data)
            if not response.status and response.head_bytes > MAX_HEAD_BYTES:
                raise UpstreamUnavailable("the response's headers are too long")
        except httptools.HttpParserError as error:
            # An error of a callback is its context.
            self._fail(error.__context__ or error)
        except UpstreamUnavailable as error:
            self._fail(error)

    def eof_received(self) -> None:
        """Let the transport close the connection."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Complete a response that ends with the connection, or fail it."""
        self._keeps_alive = False
        self._all.discard(self)
        response = self._response
        if response is None or response.done.done():
            return
        if response.ends_with_connection and exc is None:
            response.done.set_result(None)
        else:
            response.done.set_exception(exc or ConnectionResetError())

    def _fail(self, error: BaseException) -> None:
        assert self._response is not None
        if not self._response.done.done():
            self._response.done.set_exception(error)
        self.close()

    # httptools

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header. The last one of a name counts."""
        assert self._response is not None
        self._response.headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """Refuse a response without its body if it contains no JSON-RPC."""
        response = self._response
        assert response is not None
        status = self._parser.get_status_code()
        if status < HTTPStatus.OK:
            return
        response.status = status
        if status == HTTPStatus.TOO_MANY_REQUESTS or status // 100 in (3, 5):
            # A 5xx may come from a proxy. Its body does not describe the call.
            delay = response.headers.get(b"retry-after", b"").decode("latin-1")
            raise UpstreamUnavailable(
                f"HTTP status {status}",
                status=status,
                retry_after=retry_after(delay or None),
            )
        promised = response.headers.get(b"content-length", b"")
        if promised.isdigit() and int(promised) > response.max_bytes:
            raise UpstreamUnavailable(TOO_LONG.format(response.max_bytes))

    def on_body(self, body: bytes) -> None:
        """Add a part of the body."""
        response = self._response
        assert response is not None
        response.body += body
        if len(response.body) > response.max_bytes:
            raise UpstreamUnavailable(TOO_LONG.format(response.max_bytes))

    def on_message_complete(self) -> None:
        """Complete the response, unless it only announces another one (1xx)."""
        response = self._response
        assert response is not None
        if not response.status:
            response.headers.clear()
        elif not response.done.done():
            self._keeps_alive = self._parser.should_keep_alive()
            response.done.set_result(None)


def _parse(text: bytes, status: int) -> list[Any]:
    """Return the responses in a body.

    Some nodes send error objects with a 4xx status.
    """
    is_failure = status >= HTTPStatus.BAD_REQUEST
    try:
        found = orjson.loads(text)
    except ValueError:
        reason = f"HTTP status {status}" if is_failure else NOT_JSON
        raise UpstreamUnavailable(reason, status=status) from None
    if is_failure and not (isinstance(found, dict) and "error" in found):
        raise UpstreamUnavailable(f"HTTP status {status}", status=status)
    return found if isinstance(found, list) else [found]


def retry_after(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header, None if it is absent or invalid.

    Source: RFC 9110, 10.2.3: seconds or a date
    """
    if value is None:
        return None
    if _SECONDS.fullmatch(value):
        seconds = float(value)  # infinite if it has too many digits
    else:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER)
