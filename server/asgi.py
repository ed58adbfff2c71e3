"""Node requests on connections that were handed over to uvicorn."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, TypeVar

from server.process import CONNECTION
from server.request import (
    BodyTooLarge,
    BodyTooSlow,
    ClientDisconnected,
    Handler,
    Request,
    Response,
    StreamedBody,
)

T = TypeVar("T")

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


class _AsgiRequest(Request):
    """A request of an ASGI scope."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            headers[name] = headers[name] + b", " + value if name in headers else value
        client = scope.get("client")
        super().__init__(
            scope["method"],
            scope["path"],
            headers,
            scope["http_version"],
            client[0] if client else None,
        )
        self._scope = scope
        self._receive = receive
        self._tasks: list[asyncio.Task[Any]] = []

    def claim(self, key: int, client: str | None) -> bool:
        """Count the connection for a key and an address.

        Return False if one of them has too many connections.
        """
        connection = self._scope.get("state", {}).get(CONNECTION)
        return connection is None or bool(connection.account.claim(key, client))

    def read_body(self, limit: int, seconds: float) -> Future[bytes]:
        """Return the body when it is complete."""
        return self._start(self._read_body(limit, seconds))

    def disconnected(self) -> Future[None]:
        """Return a future that is done when the client has closed the connection."""
        return self._start(self._wait_for_disconnect())

    def end(self) -> None:
        """Release the request's resources."""
        for task in self._tasks:
            task.cancel()

    def _start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        task = asyncio.ensure_future(coroutine)
        self._tasks.append(task)
        return task

    async def _read_body(self, limit: int, seconds: float) -> bytes:
        body = bytearray()
        message: Mapping[str, Any] = {"more_body": True}
        try:
            async with asyncio.timeout(seconds):
                while message.get("more_body"):
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnected
                    body += message.get("body", b"")
                    if len(body) > limit:
                        raise BodyTooLarge
        except TimeoutError as error:
            raise BodyTooSlow from error
        self.body = bytes(body)
        return self.body

    async def _wait_for_disconnect(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


class AsgiNode:
    """An ASGI application that passes node requests to a handler."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = _AsgiRequest(scope, receive)
        answered: Future[None] = asyncio.get_running_loop().create_future()
        pending = self._handler(request)
        pending.when_done(partial(_complete, answered))
        try:
            await answered
            response = pending.result()
            if response is not None:
                await _send(request, response, send)
        finally:
            request.end()


def _complete(future: Future[None], _: object) -> None:
    if not future.done():
        future.set_result(None)


async def _send(request: Request, response: Response, send: Send) -> None:
    """Send a response."""
    body, headers = response.body, list(response.headers)
    size = body.size if isinstance(body, StreamedBody) else len(_whole(body))
    if size is not None and response.status != 204:
        headers.append((b"content-length", b"%d" % size))
    await send(
        {"type": "http.response.start", "status": response.status, "headers": headers}
    )
    if isinstance(body, StreamedBody):
        gone = request.disconnected()
        try:
            async for chunk in body.chunks:
                await send(
                    {"type": "http.response.body", "body": chunk, "more_body": True}
                )
                await asyncio.sleep(0)  # sending to a fast reader never waits
                if gone.done():
                    return
        finally:
            await body.aclose()
        await send({"type": "http.response.body", "body": b""})
    else:
        await send({"type": "http.response.body", "body": _whole(body)})


def _whole(body: bytes | tuple[bytes, ...]) -> bytes:
    return body if isinstance(body, bytes) else b"".join(body)
