"""Small ASGI applications, to see how the server treats the ones it runs."""

from __future__ import annotations

import os

from nodeapi.http import PLAIN_ANSWER, start_of_plain_answer


async def live(receive, send):
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})


async def process_id(scope, receive, send):
    """Answer with the number of the process that answers."""
    if scope["type"] == "lifespan":
        await live(receive, send)
        return
    body = str(os.getpid()).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def broken(scope, receive, send):
    """Fail to start."""
    raise RuntimeError("no start today")


async def sized(scope, receive, send):
    """Answer `/plain/SIZE` and `/sent/SIZE` alike, the first all at once if it can be."""
    if scope["type"] == "lifespan":
        await live(receive, send)
        return
    while (await receive()).get("more_body"):
        pass
    _, kind, *rest = scope["path"].split("/")
    body = b"x" * int(rest[0] if rest else 0)
    if kind == "plain" and scope["extensions"][PLAIN_ANSWER](body):
        return  # else it is sent as messages
    await send(start_of_plain_answer(len(body)))
    await send({"type": "http.response.body", "body": body})
