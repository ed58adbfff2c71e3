"""The ceiling: an ASGI application on uvicorn that does the minimum for each request.

It reads the body, does not parse it, and returns a constant response whose size in
bytes is the path: `POST /1800`.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import uvicorn

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
    """Answer one HTTP request, or handle the ASGI lifespan events."""
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


def main(descriptor: int) -> None:
    """Serve the application on a listening TCP socket, with uvicorn's fastest parts.

    uvicorn's own option `--fd` takes every socket for a Unix socket. It would not set
    TCP_NODELAY, and most responses would wait 40 ms for a delayed acknowledgement.
    """
    config = uvicorn.Config(
        application,
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="warning",
    )
    uvicorn.Server(config).run([socket.socket(fileno=descriptor)])


if __name__ == "__main__":
    main(int(sys.argv[1]))
