"""Requests whose heads have come before.

A client sends the same line and headers with each request, and other bodies. What a head
means has been found out when it came before: how long its body is, and by what function
of the application it is answered. A request that begins with the same bytes, at a place
where a request may begin, means the same, and needs neither to be parsed nor to be told
of in a scope.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable
from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from config.gateway import AnswerOne, Recognise, Scope
from config.plain_answers import write_plainly
from jsonrpc.answers import Body

MAX_HEADS = 2048
"""Of a process; the ones that were learned first are forgotten first."""

MAX_SEEN = 16_384
"""Heads of which no more is known than that they have come once."""

MAX_KNOWN_BYTES = 2048
MAX_KNOWN_HEADERS = 64
"""Of a head; more are parsed each time. Each header takes some 100 bytes besides itself."""

_OTHER_ENDS = frozenset({b"expect", b"transfer-encoding", b"upgrade"})
"""Headers by which more or less follows than a body of a known length."""

_NAMES = frozenset({b"traceparent", b"x-request-id"})
"""Headers that no two requests have alike: such heads need not be looked at."""

Peer = str | None
"""The address at the other end of a connection, which may be a proxy's."""


class KnownHead:
    """What is known of a head.

    scope: of a request with it, for reading.
    """

    __slots__ = ("answer", "body_bytes", "scope")

    def __init__(self, answer: AnswerOne, body_bytes: int, scope: Scope) -> None:
        self.answer = answer
        self.body_bytes = body_bytes
        self.scope = scope


class KnownHeads:
    """The heads that a process knows.

    recognise: the application's: returns what answers requests with the head that a
        scope tells of, once their bodies have come; None for one that it wants to be
        told of each time.
    """

    def __init__(self, recognise: Recognise) -> None:
        self._recognise = recognise
        self._heads: OrderedDict[tuple[Peer, bytes], KnownHead] = OrderedDict()
        self._seen: set[int] = set()
        self.find = self._heads.get
        """Return what is known of a head from a peer, or None."""

    def learn(self, peer: Peer, head: bytes, scope: Scope) -> None:
        """See a head; remember it when it comes for the second time.

        scope: as it was made of that.
        """
        if len(head) > MAX_KNOWN_BYTES or len(scope["headers"]) > MAX_KNOWN_HEADERS:
            return
        headers = dict(scope["headers"])
        if not (_OTHER_ENDS.isdisjoint(headers) and _NAMES.isdisjoint(headers)):
            return
        place = peer, head
        # Some proxies name each request in a header of their own: to learn a head takes
        # as long as parsing it, and would push out another one.
        if hash(place) not in self._seen:
            if len(self._seen) >= MAX_SEEN:
                self._seen.clear()
            self._seen.add(hash(place))
            return
        scope = {name: scope[name] for name in scope if name != "extensions"}
        answer = self._recognise(scope)
        if answer is None:
            return
        body_bytes = int(headers.get(b"content-length", b"0"))
        self._heads[place] = KnownHead(answer, body_bytes, scope)
        if len(self._heads) > MAX_HEADS:
            self._heads.popitem(last=False)


class KnownRequest(RequestResponseCycle):
    """A request whose head is known: uvicorn's, made when it is needed.

    Until then it has of that what a connection looks at in its current request, and is an
    `nodeapi.exchange.Exchange`.
    """

    # What a connection looks at; defaults in the class are free.
    note = None
    disconnected = False
    keep_alive = True
    more_body = False
    response_complete = False
    message_event: Any = asyncio.Event()  # nobody waits for it

    def __init__(self, connection: Any, known: KnownHead, body: bytes) -> None:
        self._connection = connection
        self._known = known
        self._body = body

    def begin(self) -> Awaitable[None]:
        """Have the application answer; return what it returns."""
        return self._known.answer(self)

    def take_body(self) -> bytes | None:
        """Return the body, once; None if nobody waits for an answer any more."""
        if self.disconnected:
            return None
        body, self._body = self._body, b""
        return body

    def answer_plainly(self, body: Body, more: bytes = b"") -> bool:
        """Send a whole answer of JSON with status 200; return whether it could be.

        more: headers, each with the end of its line.
        False, and nothing is sent: the answer needs `send`, which waits for slow readers,
        and knows of connections that are to be closed.
        """
        connection = self._connection
        if self.disconnected or not self.keep_alive or connection.flow.write_paused:
            return False
        headers = connection.server_state.default_headers
        write_plainly(connection.transport, headers, body, more)
        self.response_started = self.response_complete = True
        self.message_event.set()
        self._connection = None  # which leads to this
        connection.known_is_answered()
        return True

    async def run_asgi(self, app: Any) -> None:
        """Go on as any request does."""
        connection = self._connection
        disconnected = self.disconnected
        super().__init__(
            scope=self._known.scope,  # type: ignore[arg-type]
            transport=connection.transport,
            flow=connection.flow,
            logger=connection.logger,
            access_logger=connection.access_logger,
            access_log=connection.access_log,
            default_headers=connection.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=self.keep_alive,
            on_response=connection.on_response_complete,
        )
        self.disconnected = disconnected
        self.more_body = False
        try:
            await super().run_asgi(app)
        finally:
            self._connection = None
