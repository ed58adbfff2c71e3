"""HTTP as the workers speak it: uvicorn's protocol, with bounds to all but bodies.

uvicorn limits neither how long the head of a request, its line and headers, may take
nor how long it and a chunked body's trailers may be: a client could hold connections
for ever, or fill the memory with one. Bodies have their limits in the applications.

An application that need not wait for anything answers a request as it is called, and
needs no task, which would cost as much as making a small answer does. It finds two
extensions in its scope for that: `WHOLE_BODY` returns what has come, and `PLAIN_ANSWER`
sends an answer, without messages and headers looked at one by one. Then it returns
`DONE` where others return something to await; or `GoOn`, if it waits for one future.

One that recognises heads which have come before (see `config.known_heads`) need not be
told of such a request in a scope at all.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any
from weakref import ref

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from config.known_heads import (
    KnownHead,
    KnownHeads,
    KnownRequest,
    Peer,
)
from config.plain_answers import write_plainly
from config.running import STATE, Running
from jsonrpc.answers import Body
from nodeapi import http

MAX_HEAD_BYTES = 64 * 1024
"""Of a head, or of trailers, not counting the first read: nginx takes 32 KiB, and a
tenth of that is a lot."""

HEAD_SECONDS = 30.0
"""Until a request's last header has come; geth's limit."""

LOOK_SECONDS = 1.0
"""Pause between two looks at all connections."""

KEEP_ALIVE_SECONDS = 120
"""How long a connection may rest between two requests; geth's limit. Clients send
POSTs on pooled connections and do not repeat one that met a closed connection."""

_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)

_END_OF_HEAD = b"\r\n\r\n"

_NOWHERE: Any = deque(maxlen=0)
"""Takes trailers, for which nobody asks."""


class Protocol(HttpToolsProtocol):
    """One connection."""

    _unfinished_bytes = 0
    _waits_since: float | None = None
    _is_between = True
    """Whether the parser waits for a request's first byte."""
    _held: tuple[KnownHead, bytes] | None = None
    """A head that came without its body, and has not been parsed."""
    _answered_at = 0.0
    """When the last request with a known head was, by the loop's time."""

    def __init__(self, config: Any, *arguments: Any, **options: Any) -> None:
        super().__init__(config, *arguments, **options)
        self._heads: KnownHeads | None = getattr(config, "known_heads", None)
        self._process: Running | None = self.app_state.get(STATE)
        self._peer: Peer = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a new connection."""
        super().connection_made(transport)
        self._peer = self.client[0] if self.client else None

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        """Have a request answered, by an application that may do so in one go."""
        if self._is_draining():
            cycle.keep_alive = False  # the client's next request goes elsewhere
        # Weakly: a scope that held its own cycle would leave every request, with all that
        # belongs to it, to the garbage collector.
        of_cycle = ref(cycle)
        cycle.scope["extensions"] = {
            http.WHOLE_BODY: partial(_take_whole_body, of_cycle),
            http.PLAIN_ANSWER: partial(_answer_plainly, of_cycle),
        }
        # Not before the loop has read what else has come: one write after the other
        # finds a client awake that one write after each read would have to wake.
        answer = partial(app, cycle.scope, cycle.receive, cycle.send)
        self.loop.call_soon(self._run, cycle, answer)

    def _run(
        self,
        cycle: Any,
        answer: Callable[[], Awaitable[None]],
        future: asyncio.Future[Any] | None = None,
    ) -> None:
        """Have an application answer; wait for it, in a task if need be, until it is done.

        future: what it has waited for so far, which stood for it among the tasks.
        """
        tasks: set[Any] = self.tasks
        if future is not None:
            tasks.discard(future)
        try:
            rest = answer()
        except (Exception, asyncio.CancelledError) as error:
            rest = _fail(error)
        if type(rest) is http.GoOn:
            tasks.add(rest.future)
            rest.future.add_done_callback(partial(self._run, cycle, rest.go_on))
        elif rest is not http.DONE:
            super()._start_asgi_task(cycle, lambda *_: rest)

    def data_received(self, data: bytes) -> None:
        """Take what has come."""
        rest: bytes | None = data
        if self._is_between and self._heads is not None:
            rest = self._take_known(data, self._heads)
        if rest is not None:
            self._parse(rest)

    def _take_known(self, data: bytes, heads: KnownHeads) -> bytes | None:
        """Begin a request whose head is known; return what is to be parsed, if anything.

        Clients send head and body at once, or the one after the other.
        """
        if self._held is not None:
            (known, head), self._held = self._held, None
            body = data
        else:
            head = _head_of(data)
            found = heads.find((self._peer, head))
            if found is None or self._is_answering():
                return data
            known, body = found, data[len(head) :]
            if known.body_bytes and not body:
                self._held = known, head
                return None
        if len(body) != known.body_bytes or self._is_draining():
            return head + body
        self._unfinished_bytes = 0
        self.cycle = request = KnownRequest(self, known, body)
        self.loop.call_soon(self._run, request, request.begin)
        return None

    def _parse(self, data: bytes) -> None:
        """Have data parsed; hang up upon a head or trailers that do not end."""
        before, was_between = self.cycle, self._is_between
        super().data_received(data)
        if self._is_amid_headers():
            # What has come first may have been the end of something else.
            self._unfinished_bytes += len(data) if self._unfinished_bytes else 1
            if self._unfinished_bytes > MAX_HEAD_BYTES:
                self._refuse_head()
        elif self._unfinished_bytes:
            self._unfinished_bytes = 0
            self._waits_since = None
        if self._heads is not None and was_between and self.cycle is not before:
            self._learn(data, self._heads)

    def _learn(self, data: bytes, heads: KnownHeads) -> None:
        """Learn the head of the request with which data begins, if it is one alone."""
        cycle = self.cycle
        # Of two requests the second one would wait for the first.
        if data.startswith(b"POST ") and not self.pipeline and cycle.keep_alive:
            scope: Any = cycle.scope
            heads.learn(self._peer, _head_of(data), scope)

    def _parse_held(self) -> None:
        """Have a head parsed whose body has not come, so that it is waited for."""
        if self._held is not None:
            (_, head), self._held = self._held, None
            self._parse(head)

    def on_message_begin(self) -> None:
        """Note that a request has begun."""
        self._is_between = False
        super().on_message_begin()

    def on_message_complete(self) -> None:
        """Note that a request has ended."""
        self._is_between = True
        super().on_message_complete()

    def known_is_answered(self) -> None:
        """Note that a request with a known head has been answered."""
        if self.timeout_keep_alive_task is None:  # as when another one is waiting
            self.on_response_complete()
        else:  # the timer goes on, and sees when it is up
            self.server_state.total_requests += 1
            self._answered_at = self.loop.time()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that has rested for too long, if it has by now."""
        self.timeout_keep_alive_task = None
        if self._is_answering() or self._held is not None:
            return  # there will be another timer when it has been answered
        left = self._answered_at + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self.timeout_keep_alive_task = self.loop.call_later(
                left, self.timeout_keep_alive_handler
            )
        else:
            super().timeout_keep_alive_handler()

    def shutdown(self) -> None:
        """Finish what has begun, then close."""
        self._parse_held()
        super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of a connection, whichever way it has ended.

        uvicorn forgets the timer of one that was reset, which would hold it, and all that
        belongs to it, for as long as it could have rested.
        """
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def _is_amid_headers(self) -> bool:
        """Return whether the last read ended in a head, or behind a body's last byte."""
        scope: Any = self.scope  # None before the first request, whatever its type says
        if scope is None or "method" not in scope:  # entered when a head is complete
            return True
        cycle: Any = self.cycle  # None for an upgrade
        if cycle is None or not cycle.more_body:
            return False
        self.headers = _NOWHERE  # the scope has its own by now, what comes are trailers
        return not cycle.body and not cycle.response_complete

    def _refuse_head(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def hang_up_if_late(self, now: float) -> None:
        """Close a connection that has owed a head for too long.

        now: the event loop's time; to be told every now and then.
        """
        self._parse_held()
        if not self._waits_for_head():
            self._waits_since = None
        elif self._waits_since is None:
            self._waits_since = now
        elif now - self._waits_since >= HEAD_SECONDS:
            self.transport.close()

    def _waits_for_head(self) -> bool:
        """Return whether uvicorn waits without a limit of its own."""
        return not self._is_answering() and self.timeout_keep_alive_task is None

    def _is_answering(self) -> bool:
        cycle: Any = self.cycle  # None before the first request, like the scope
        return cycle is not None and not cycle.response_complete

    def _is_draining(self) -> bool:
        return self._process is not None and self._process.is_draining


def _head_of(data: bytes) -> bytes:
    """Return what data begins with up to the end of a head; little, if there is none."""
    return data[: data.find(_END_OF_HEAD) + len(_END_OF_HEAD)]


def _take_whole_body(of_cycle: ref[Any]) -> bytes | None:
    """Return a request's body, None if not all of it has come.

    of_cycle: refers to uvicorn's, of the request, which lasts as long as that.
    """
    cycle = of_cycle()
    if cycle is None or cycle.more_body or cycle.disconnected:
        return None
    body = bytes(cycle.body)
    cycle.body = bytearray()
    cycle.message_event.clear()  # what comes next is the end of the connection
    return body


def _answer_plainly(of_cycle: ref[Any], body: Body, more: bytes = b"") -> bool:
    """Send a whole answer of JSON with status 200.

    of_cycle: refers to uvicorn's, of the request, which lasts as long as that.
    more: headers, each with the end of its line.
    False, and nothing is sent: the answer needs `send`, which waits for slow readers,
    and knows of connections that are to be closed.
    """
    cycle = of_cycle()
    if cycle is None or cycle.disconnected:
        return False
    if cycle.flow.write_paused or not cycle.keep_alive:
        return False
    write_plainly(cycle.transport, cycle.default_headers, body, more)
    cycle.response_started = cycle.response_complete = True
    cycle.message_event.set()
    cycle.on_response()
    cycle.on_response = _nothing  # it leads to the connection, which leads to it
    return True


def _nothing() -> None:
    """Take the place of what is over."""


async def _fail(error: BaseException) -> None:
    """Raise what an application raised when it was called, for uvicorn to report."""
    raise error


async def hang_up_late(connections: Iterable[Any]) -> None:
    """Close the connections that owe a head for too long, for ever.

    A look at all of them now and then costs requests nothing, a timer for each would.
    """
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        now = loop.time()
        for connection in list(connections):
            if isinstance(connection, Protocol):
                connection.hang_up_if_late(now)
