"""The ceiling: the least that an application on this server can do for a request.

It reads the body, as any application must, and returns bytes that were made before, as
many as the path says: `POST /1800`. Nothing is parsed, nothing is decided.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Message = Mapping[str, Any]

_HEAD = b'{"jsonrpc":"2.0","id":1,"result":"'
_TAIL = b'"}'
SMALLEST = len(_HEAD) + len(_TAIL)

_answers: dict[str, tuple[Message, Message]] = {}
"""What to send, by path."""


def _make(path: str) -> tuple[Message, Message]:
    size = int(path[1:])
    body = _HEAD + b"0" * (size - SMALLEST) + _TAIL
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    answer = (
        {"type": "http.response.start", "status": 200, "headers": headers},
        {"type": "http.response.body", "body": body},
    )
    _answers[path] = answer
    return answer


async def application(
    scope: Message,
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None:
    """Answer one request, or live with the server."""
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    while (await receive()).get("more_body"):
        pass
    path = scope["path"]
    start, body = _answers.get(path) or _make(path)
    await send(start)
    await send(body)
