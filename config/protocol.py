"""HTTP as the workers speak it: uvicorn's protocol, with bounds to all but bodies.

uvicorn limits neither how long the head of a request, its line and headers, may take
nor how long it and a chunked body's trailers may be: a client could hold connections
for ever, or fill the memory with one. Bodies have their limits in the applications.

An application that need not wait for anything answers a request as it is called, and
needs no task, which would cost as much as making a small answer does. It finds two
extensions in its scope for that: `WHOLE_BODY` returns what has come, and `PLAIN_ANSWER`
sends an answer, without messages and headers looked at one by one. Then it returns
`DONE` where others return something to await; or `GoOn`, if it waits for one future.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any
from weakref import ref

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from config.running import STATE, Running
from jsonrpc.answers import Body, Parts
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

_NOWHERE: Any = deque(maxlen=0)
"""Takes trailers, for which nobody asks."""


_COPIED_BYTES = 2**14
"""Bodies up to here are joined with their heads: copying them costs less than a write."""


class Protocol(HttpToolsProtocol):
    """One connection."""

    _unfinished_bytes = 0
    _waits_since: float | None = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._process: Running | None = self.app_state.get(STATE)

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        """Have a request answered, by an application that may do so in one go."""
        if self._process is not None and self._process.is_draining:
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
        """Take what has come; hang up upon a head or trailers that do not end."""
        super().data_received(data)
        if self._is_amid_headers():
            # What has come first may have been the end of something else.
            self._unfinished_bytes += len(data) if self._unfinished_bytes else 1
            if self._unfinished_bytes > MAX_HEAD_BYTES:
                self._refuse_head()
        elif self._unfinished_bytes:
            self._unfinished_bytes = 0
            self._waits_since = None

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
        if not self._waits_for_head():
            self._waits_since = None
        elif self._waits_since is None:
            self._waits_since = now
        elif now - self._waits_since >= HEAD_SECONDS:
            self.transport.close()

    def _waits_for_head(self) -> bool:
        """Return whether uvicorn waits without a limit of its own."""
        cycle: Any = self.cycle  # None before the first request, like the scope
        is_answering = cycle is not None and not cycle.response_complete
        return not is_answering and self.timeout_keep_alive_task is None


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
    start = _plain_head(cycle.default_headers)
    head = b"%b%d\r\n%b\r\n" % (start, len(body), more)
    parts = body.parts if isinstance(body, Parts) else (body,)
    if len(body) <= _COPIED_BYTES:
        cycle.transport.write(b"".join((head, *parts)))
    else:
        cycle.transport.writelines((head, *parts))
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


_plain_heads: tuple[Any, bytes] = (None, b"")
"""The server's headers, which are other ones every second, and what is made of them."""


def _plain_head(default_headers: list[tuple[bytes, bytes]]) -> bytes:
    """Return how every plain answer begins, up to its length."""
    global _plain_heads
    known_for, head = _plain_heads
    if known_for is not default_headers:
        lines = [*default_headers, *http.PLAIN_HEADERS, (b"content-length", b"")]
        head = b"HTTP/1.1 200 OK\r\n" + b"\r\n".join(map(b": ".join, lines))
        _plain_heads = default_headers, head
    return head


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
