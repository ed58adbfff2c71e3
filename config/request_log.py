"""A line for each request: who asked what, what came of it and how long it took.

It names a key by its hint, and methods that exist by their names; parameters and
answers are never in it. Lines are written some at a time: a call of the logging module
for each would cost more than most answers.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Literal

import orjson
from django.urls import Resolver404, resolve

from config.gateway import AnswerOne, Application, Recognise
from config.logs import redact, timestamp
from jsonrpc.answers import Body
from jsonrpc.errors import RpcError
from keys.metering import UNKNOWN_METHOD
from nodeapi.exchange import Exchange
from nodeapi.http import (
    DONE,
    NOTE,
    PLAIN_ANSWER,
    GoOn,
    Receive,
    RequestId,
    Scope,
    Send,
)
from nodeapi.methods.context import Context

FLUSH_SECONDS = 0.2
"""How long a line waits at most for others, to be written with them."""

FLUSH_LINES = 500
"""How many wait at most."""

NAMED_METHODS = 10
"""Of a batch; the line says how many calls it had."""

Which = Literal["problems", "all"]

# Source: https://www.w3.org/TR/trace-context/#traceparent-header-field-values
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


class _Entry:
    """What becomes known of a request; a `nodeapi.notes.Note`."""

    __slots__ = ("began", "context", "error", "record", "request_id", "size", "status")

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.status: int | None = None
        self.size = 0
        self.request_id: RequestId | None = None
        self.context: Context | None = None
        self.error: RpcError | None = None
        self.record: list[tuple[str | None, RpcError | None]] = []

    def admitted(self, context: Context) -> None:
        """Take down who asks, of which network."""
        self.context = context
        self.request_id = context.request_id
        context.record = self.record

    def refused(self, request_id: RequestId, error: RpcError) -> None:
        """Take down why a request was not let in."""
        self.request_id = request_id
        self.error = error

    def first_error(self) -> RpcError | None:
        """Return what went wrong, with the first call with which anything did."""
        if self.error is not None:
            return self.error
        return next((error for _, error in self.record if error is not None), None)

    def answer_plainly(
        self, answer: Callable[[Body, bytes], bool], body: Body, more: bytes = b""
    ) -> bool:
        """Pass a whole answer on."""
        is_sent = answer(body, more)
        if is_sent:
            self.status, self.size = 200, len(body)
        return is_sent

    async def send(self, send: Send, message: Mapping[str, Any]) -> None:
        """Pass a message of an answer on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.size += len(message.get("body", b""))
        await send(message)


class RequestLog:
    """Writes lines about requests to standard error.

    which: all of them, or those with problems: an error, or slower than slow_seconds.
    as_json: else the same as text.
    """

    def __init__(self, which: Which, *, slow_seconds: float, as_json: bool) -> None:
        self._is_for_all = which == "all"
        self._slow_seconds = slow_seconds
        self._as_json = as_json
        self._lines: list[str] = []
        self._flushing: asyncio.TimerHandle | None = None

    def around(self, application: Application) -> Logged:
        """Return the application with its requests put on record."""
        return Logged(self, application)

    async def start(self) -> None:
        """Do nothing: the first line starts what is needed."""

    async def stop(self) -> None:
        """Write what waits."""
        self.flush()

    def flush(self) -> None:
        """Write the lines that wait."""
        lines, self._lines = self._lines, []
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        if lines:
            sys.stderr.write(redact("".join(lines)))
            sys.stderr.flush()

    def follow(
        self, scope: Scope, entry: _Entry, answer: Callable[[], Awaitable[None]]
    ) -> Awaitable[None]:
        """Have a request answered, and put it down when that is over."""
        try:
            rest = answer()
        except BaseException:
            self._put_down(scope, entry)
            raise
        if type(rest) is GoOn:
            go_on = partial(self.follow, scope, entry, rest.go_on)
            return GoOn(rest.future, go_on)
        if rest is DONE:
            self._put_down(scope, entry)
            return DONE
        return self._wait(rest, scope, entry)

    async def _wait(self, rest: Awaitable[None], scope: Scope, entry: _Entry) -> None:
        try:
            await rest
        finally:
            self._put_down(scope, entry)

    def _put_down(self, scope: Scope, entry: _Entry) -> None:
        seconds = time.perf_counter() - entry.began
        error = entry.first_error()
        has_problem = (
            error is not None
            or entry.status is None
            or entry.status >= 400
            or seconds >= self._slow_seconds
        )
        if not has_problem and not self._is_for_all:
            return
        fields = _fields(scope, entry, error)
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


class Logged:
    """An application whose requests are put on record."""

    def __init__(self, log: RequestLog, application: Application) -> None:
        self._log = log
        self._application = application
        recognise = getattr(application, "recognise", None)
        self.recognise: Recognise | None = (
            None if recognise is None else partial(self._recognise, recognise)
        )

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Have the application answer a request."""
        if scope["type"] != "http":
            return self._application(scope, receive, send)
        entry = scope[NOTE] = _Entry()
        extensions = scope.get("extensions", {})
        answer = extensions.get(PLAIN_ANSWER)
        if answer is not None:
            answer = partial(entry.answer_plainly, answer)
            scope["extensions"] = {**extensions, PLAIN_ANSWER: answer}
        send = partial(entry.send, send)
        return self._log.follow(
            scope, entry, partial(self._application, scope, receive, send)
        )

    def _recognise(self, recognise: Recognise, scope: Scope) -> AnswerOne | None:
        answer = recognise(scope)
        return None if answer is None else partial(self._answer, answer, scope)

    def _answer(
        self, answer: AnswerOne, scope: Scope, exchange: Exchange
    ) -> Awaitable[None]:
        """Have the application answer a request whose head is known."""
        entry = _Entry()
        noted = _NotedExchange(exchange, entry)
        return self._log.follow(scope, entry, partial(answer, noted))


class _NotedExchange:
    """An exchange that is put on record; a `nodeapi.exchange.Exchange`."""

    __slots__ = ("_exchange", "note", "receive", "send", "take_body")

    def __init__(self, exchange: Exchange, entry: _Entry) -> None:
        self._exchange = exchange
        self.note = entry
        self.take_body = exchange.take_body
        self.receive = exchange.receive
        self.send = partial(entry.send, exchange.send)

    def answer_plainly(self, body: Body, more: bytes = b"") -> bool:
        """Pass a whole answer on."""
        return self.note.answer_plainly(self._exchange.answer_plainly, body, more)


def _fields(scope: Scope, entry: _Entry, error: RpcError | None) -> dict[str, Any]:
    """Return what a line says, in its order, but for the time that it took."""
    headers = dict(scope["headers"])
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
        fields["page"] = f"{scope['method']} {_route(scope['path'])}"
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
        request_id = RequestId()
        request_id.take(headers.get(b"x-request-id", b""))
    return str(request_id)


def _route(path: str) -> str:
    """Return the pattern of a page's path: the path itself may hold a secret."""
    try:
        return "/" + resolve(path).route
    except Resolver404:
        return "(no such page)"
