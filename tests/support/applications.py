"""Small ASGI applications, to see how the server treats the ones it runs."""

from __future__ import annotations

import os


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
