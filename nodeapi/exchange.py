"""A request's body on its way in, and its answer's on its way out."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Protocol

from jsonrpc.answers import Body
from jsonrpc.deadlines import Deadlines
from jsonrpc.errors import BodyTooLarge, BodyTooSlow
from nodeapi import http
from nodeapi.notes import Note


class Exchange(Protocol):
    """What the endpoint wants of a server, for each request."""

    @property
    def note(self) -> Note | None:
        """Puts the request on record; None where nobody does."""

    def take_body(self) -> bytes | None:
        """Return the body, once; None if not all of it has come.

        `receive` is to be asked for it then. Afterwards that waits for the client to
        hang up.
        """

    def answer_plainly(self, body: Body, more: bytes = b"") -> bool:
        """Send a whole answer of JSON with status 200; return whether it could be.

        more: headers besides its type and length, each with the end of its line.
        """

    def receive(self) -> Awaitable[Mapping[str, Any]]:
        """Return the next message from the client, as in ASGI."""

    def send(self, message: Mapping[str, Any], /) -> Awaitable[None]:
        """Send a message to the client, as in ASGI."""


class AsgiExchange:
    """An exchange with any ASGI server, in one go where that can do more than others."""

    __slots__ = ("_extensions", "note", "receive", "send")

    def __init__(
        self, scope: http.Scope, receive: http.Receive, send: http.Send
    ) -> None:
        self.note: Note | None = scope.get(http.NOTE)
        self.receive = receive
        self.send = send
        self._extensions: Mapping[str, Any] = scope.get("extensions", {})

    def take_body(self) -> bytes | None:
        """Return the body if the server can give it whole."""
        take = self._extensions.get(http.WHOLE_BODY)
        body: bytes | None = None if take is None else take()
        return body

    def answer_plainly(self, body: Body, more: bytes = b"") -> bool:
        """Send a whole answer if the server can."""
        answer = self._extensions.get(http.PLAIN_ANSWER)
        return answer is not None and bool(answer(body, more))


async def read_body(
    exchange: Exchange, limit: int, deadlines: Deadlines
) -> bytes | None:
    """Return the whole body, None when the client has gone.

    limit: bytes.
    Raises: BodyTooLarge as soon as it is longer than that; BodyTooSlow.
    """
    body = exchange.take_body()
    if body is not None:
        return _within(body, limit)
    try:
        with deadlines.deadline():
            return await _read_parts(exchange, limit)
    except TimeoutError as error:
        raise BodyTooSlow from error


async def _read_parts(exchange: Exchange, limit: int) -> bytes | None:
    """Return a body that comes in parts, None when the client has gone.

    What it holds is bounded by the limit, however small the parts are.
    Raises: BodyTooLarge.
    """
    whole = bytearray()
    while len(whole) <= limit:
        message = await exchange.receive()
        if message["type"] == "http.disconnect":
            return None
        whole += message.get("body", b"")
        if len(whole) <= limit and not message.get("more_body"):
            return bytes(whole)
    raise BodyTooLarge(limit)


def _within(body: bytes, limit: int) -> bytes:
    """Return a body that is not too long.

    Raises: BodyTooLarge.
    """
    if len(body) > limit:
        raise BodyTooLarge(limit)
    return body
