"""HTTP requests and responses for the handler of node requests.

The handler is called when a request's headers have arrived. It returns a `Pending`
response. The server sends the response when it is complete. `server.http` creates
requests from connections, `server.asgi` from ASGI scopes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from asyncio import Future
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Headers = Sequence[tuple[bytes, bytes]]
"""Names in lower case and values."""


class BodyTooLarge(Exception):
    """Raised when a body is longer than `Request.read_body` accepts."""


class BodyTooSlow(Exception):
    """Raised when a body has not arrived in the time that `Request.read_body` grants."""


class ClientDisconnected(Exception):
    """Raised when the client has closed the connection before its body was complete."""


class ResponseAborted(Exception):
    """Raised by the chunks of a response that can't be completed. It is logged already."""


class Request(ABC):
    """A request whose headers have arrived. Its body may still be arriving.

    method: in upper case. path: percent-decoded, without the query.
    headers: by name in lower case. Values of a repeated name are joined by a comma.
    http_version: "1.1" or "1.0".
    client: the client's IP address. Behind a trusted proxy, the one that the proxy names;
        None on a Unix socket.
    body: the whole body; None while it is incomplete.
    note: an object of a middleware around the handler, or None.
    """

    # Defaults in the class cost nothing for each request.
    body: bytes | None = None
    note: Any = None

    def __init__(
        self,
        method: str,
        path: str,
        headers: dict[bytes, bytes],
        http_version: str,
        client: str | None,
    ) -> None:
        self.method = method
        self.path = path
        self.headers = headers
        self.http_version = http_version
        self.client = client

    @abstractmethod
    def claim(self, key: int, client: str | None) -> bool:
        """Count the connection, and the bytes it buffers, for an API key and an address.

        key: the key's id.
        Returns False if one of them has too many connections.
        """

    @abstractmethod
    def read_body(self, limit: int, seconds: float) -> Future[bytes]:
        """Return the body when it is complete. To be called at most once.

        limit: bytes. seconds: from now.
        Fails with: BodyTooLarge, as soon as more has arrived; BodyTooSlow;
            ClientDisconnected.
        """

    @abstractmethod
    def disconnected(self) -> Future[None]:
        """Return a new future that completes when the client disconnects.

        The caller may cancel the future.
        """


@dataclass(slots=True)
class StreamedBody:
    """A body that is produced while it is sent, at the pace at which the client reads.

    chunks: an exception that they raise ends the connection, so that the client sees an
        incomplete transfer.
    size: bytes of all chunks; None if unknown.
    close: releases what the body holds. Called once, even if no chunk was read.
    """

    chunks: AsyncGenerator[bytes, None]
    size: int | None
    close: Callable[[], Awaitable[None]]

    async def aclose(self) -> None:
        """Stop producing the body, and release its resources."""
        await self.chunks.aclose()
        await self.close()


@dataclass(slots=True)
class Response:
    """A response.

    headers: without content-length, date and connection, which the server adds.
    body: whole, in several parts, or streamed. Parts save copying a long body once more.
    """

    status: int
    headers: Headers
    body: bytes | tuple[bytes, ...] | StreamedBody


class Pending(Protocol):
    """A response that is complete now or later, such as a `jsonrpc.later.Later`."""

    is_done: bool
    """Whether it is complete."""

    def when_done(self, callback: Callable[[Any], object]) -> None:
        """Call a function with this object on completion, at once if it is complete."""

    def result(self) -> Response | None:
        """Return the response, or None if the client must not get one.

        Raises: the error of the handler if it failed.
        """


Handler = Callable[[Request], Pending]
"""Answers a node request."""
