"""The request log: one line for each request or frame, with its key, result and duration.

A line contains the key's hint and the names of existing methods, but no parameters and
no results. Lines are written in groups, because a logging call for each would cost more
than most responses.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, Literal

import orjson
from django.urls import Resolver404, resolve

from config.gateway import Application, LazyPart
from config.logs import redact, timestamp
from jsonrpc.errors import RpcError
from keys.metering.meter import UNKNOWN_METHOD
from nodeapi.methods.context import Context
from nodeapi.sockets.frame_log import Line
from server.asgi import Receive, Scope, Send
from server.request import Handler, Pending, Request
from server.request_id import RequestId

FLUSH_SECONDS = 0.2
"""Longest delay of a line, to be written together with others."""

FLUSH_LINES = 500
"""Maximum number of delayed lines."""

NAMED_METHODS = 10
"""Maximum number of methods of a batch that a line names. It also contains the
number of calls."""

Which = Literal["problems", "all"]

# Source: https://www.w3.org/TR/trace-context/#traceparent-header-field-values
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


class _Entry:
    """The data of a line. The endpoint adds to it through `Request.note`.

    method: HTTP's, "" for a frame of a WebSocket. headers: by name in lower case.
    """

    __slots__ = (
        "began",
        "context",
        "error",
        "headers",
        "method",
        "path",
        "record",
        "request_id",
        "size",
        "status",
    )

    def __init__(self, method: str, path: str, headers: Mapping[bytes, bytes]) -> None:
        self.began = time.perf_counter()
        self.method = method
        self.path = path
        self.headers = headers
        self.status: int | None = None
        self.size = 0
        self.request_id: RequestId | None = None
        self.context: Context | None = None
        self.error: RpcError | None = None
        self.record: list[tuple[str | None, RpcError | None]] = []

    def admitted(self, context: Context) -> None:
        """Record the key and the network of an authorized request."""
        self.context = context
        self.request_id = context.request_id
        context.record = self.record

    def refused(self, request_id: RequestId, error: RpcError) -> None:
        """Record why a request was not authorized."""
        self.request_id = request_id
        self.error = error

    @property
    def is_frame(self) -> bool:
        """Whether it is the line of a frame, which has no status."""
        return not self.method

    def first_error(self) -> RpcError | None:
        """Return the request's error, or that of its first call that failed."""
        if self.error is not None:
            return self.error
        return next((error for _, error in self.record if error is not None), None)


class _Frame(_Entry):
    """The data of the line of one frame of a socket, or of a rejected handshake."""

    __slots__ = ("_write",)

    def __init__(
        self, headers: Mapping[bytes, bytes], write: Callable[[_Entry], None]
    ) -> None:
        super().__init__("", "", headers)
        self._write = write

    def end(self, size: int) -> None:
        """Write the line. size: bytes of the response."""
        self.size = size
        self._write(self)


class RequestLog(LazyPart):
    """Writes a line for each request to standard error.

    which: all requests, or those with problems: an error, or slower than slow_seconds.
    as_json: whether to write JSON instead of text.
    """

    def __init__(self, which: Which, *, slow_seconds: float, as_json: bool) -> None:
        self._is_for_all = which == "all"
        self._slow_seconds = slow_seconds
        self._as_json = as_json
        self._lines: list[str] = []
        self._flushing: asyncio.TimerHandle | None = None

    def around_node(self, handler: Handler) -> Handler:
        """Return the handler of node requests with its requests logged."""
        return partial(self._answer, handler)

    def around_pages(self, application: Application) -> Application:
        """Return the ASGI application with its requests logged."""
        return partial(self._serve, application)

    def begin(self, headers: Mapping[bytes, bytes]) -> Line:
        """Begin the line of a frame on a node's socket. headers: of its handshake."""
        return _Frame(headers, self._write)

    async def stop(self) -> None:
        """Write the delayed lines."""
        self.flush()

    def flush(self) -> None:
        """Write the buffered lines."""
        lines, self._lines = self._lines, []
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        if lines:
            with suppress(OSError):  # a full disk must not fail requests
                sys.stderr.write(redact("".join(lines)))
                sys.stderr.flush()

    def _answer(self, handler: Handler, request: Request) -> Pending:
        """Let the handler answer a node request, and log it."""
        entry = request.note = _Entry(request.method, request.path, request.headers)
        pending = handler(request)
        pending.when_done(partial(self._take_response, entry))
        return pending

    def _take_response(self, entry: _Entry, pending: Pending) -> None:
        """Log a node request after its response, or after the end of a stream."""
        try:
            response = pending.result()
        except BaseException:  # the server answers, and reports it
            response = None
        if response is None:
            self._write(entry)
            return
        entry.status, body = response.status, response.body
        if isinstance(body, bytes):
            entry.size = len(body)
        elif isinstance(body, tuple):
            entry.size = sum(map(len, body))
        else:
            body.chunks = _count(body.chunks, entry)
            body.close = partial(self._end_stream, body.close, entry)
            return
        self._write(entry)

    async def _end_stream(
        self, close: Callable[[], Awaitable[None]], entry: _Entry
    ) -> None:
        """Release a stream, and log its request."""
        try:
            await close()
        finally:
            self._write(entry)

    async def _serve(
        self, application: Application, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Let the application answer a request for a page, and log it."""
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        entry = _Entry(scope["method"], scope["path"], dict(scope["headers"]))

        async def send_and_note(message: Mapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                entry.status = message["status"]
            else:
                entry.size += len(message.get("body", b""))
            await send(message)

        try:
            await application(scope, receive, send_and_note)
        finally:
            self._write(entry)

    def _write(self, entry: _Entry) -> None:
        """Add the line of a request to those that wait, if it is to be logged."""
        seconds = time.perf_counter() - entry.began
        error = entry.first_error()
        has_problem = (
            error is not None
            or (entry.status is None and not entry.is_frame)
            or (entry.status is not None and entry.status >= 400)
            or seconds >= self._slow_seconds
        )
        if not has_problem and not self._is_for_all:
            return
        fields = _fields(entry, error)
        fields["ms"] = round(seconds * 1000, 3)
        self._lines.append(self._line(fields))
        if len(self._lines) >= FLUSH_LINES:
            self.flush()
        elif self._flushing is None:
            loop = asyncio.get_running_loop()
            self._flushing = loop.call_later(FLUSH_SECONDS, self.flush)

    def _line(self, fields: dict[str, Any]) -> str:
        now = timestamp(time.time())
        if self._as_json:
            start = {"time": now, "level": "INFO", "logger": "requests"}
            return orjson.dumps({**start, **fields}).decode() + "\n"
        words = " ".join(f"{name}={value}" for name, value in fields.items())
        return f"{now} INFO requests: {words}\n"


async def _count(
    chunks: AsyncGenerator[bytes, None], entry: _Entry
) -> AsyncGenerator[bytes, None]:
    """Yield the chunks of a body, and note its size."""
    async with aclosing(chunks):
        async for chunk in chunks:
            entry.size += len(chunk)
            yield chunk


def _fields(entry: _Entry, error: RpcError | None) -> dict[str, Any]:
    """Return a line's fields in order, without the duration."""
    headers = entry.headers
    fields: dict[str, Any] = {"request_id": _request_id(entry, headers)}
    trace = headers.get(b"traceparent", b"").decode("latin-1")
    if _TRACEPARENT.fullmatch(trace):
        fields["traceparent"] = trace
    context = entry.context
    if context is not None:
        names = [method or UNKNOWN_METHOD for method, _ in entry.record]
        fields["key"] = context.grant.hint
        fields["network"] = context.network.slug
        fields["methods"] = list(dict.fromkeys(names))[:NAMED_METHODS]
        fields["calls"] = len(names)
    elif entry.error is None:
        fields["page"] = f"{entry.method} {_route(entry.path)}"
    if entry.is_frame:
        fields["transport"] = "websocket"
    else:
        fields["status"] = entry.status
    if error is not None:
        fields["code"] = error.code
        if error.reason:
            fields["reason"] = error.reason
    fields["bytes"] = entry.size
    return fields


def _request_id(entry: _Entry, headers: Mapping[bytes, bytes]) -> str:
    request_id = entry.request_id
    if request_id is None:  # a page
        request_id = RequestId(headers.get(b"x-request-id"))
    return str(request_id)


def _route(path: str) -> str:
    """Return the route of a page's path, because the path may contain a secret."""
    try:
        return "/" + resolve(path).route
    except Resolver404:
        return "(no such page)"
