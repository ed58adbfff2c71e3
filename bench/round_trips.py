"""A proxy before an upstream, which counts the round trips of requests about the state."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
import uvicorn

from samples.node import NOT_OFFERED

ACCESS_LIST = "portcullis_getBlockAccessList"
WITNESS = "debug_executionWitness"
TRACE = "debug_traceBlockByHash"
STATE_METHODS = {ACCESS_LIST, WITNESS, TRACE, "eth_getProof", "eth_getCode"}

_HEADERS = [(b"content-type", b"application/json")]


class Proxy:
    """Forwards requests to an upstream.

    refused: methods that are answered as if the upstream did not offer them.
    delay: seconds by which each request is delayed. A delay that is longer than the work
    for an answer lets all requests of a round trip overlap.
    requests: when those about the state began and ended, by `time.monotonic`.
    """

    def __init__(self, upstream: str) -> None:
        self.refused: set[str] = set()
        self.delay = 0.0
        self.requests: list[tuple[float, float]] = []
        self._upstream = upstream
        self._client = httpx.AsyncClient(timeout=60)

    def take_round_trips(self) -> int:
        """Return the number of round trips, and forget the requests.

        Requests are of one round trip if each began before any of them ended.
        """
        count, end = 0, 0.0
        for began, ended in sorted(self.requests):
            if began >= end:
                count, end = count + 1, ended
            end = min(end, ended)
        self.requests.clear()
        return count

    async def __call__(
        self,
        scope: Mapping[str, Any],
        receive: Callable[[], Awaitable[Mapping[str, Any]]],
        send: Callable[[Mapping[str, Any]], Awaitable[None]],
    ) -> None:
        """Answer an HTTP request."""
        began = time.monotonic()
        body, is_complete = b"", False
        while not is_complete:
            message = await receive()
            body += message.get("body", b"")
            is_complete = not message.get("more_body")
        found = json.loads(body)
        call = found[0] if isinstance(found, list) else found
        if call["method"] in self.refused:
            error = {"code": NOT_OFFERED, "message": "the method does not exist"}
            answer = json.dumps({"jsonrpc": "2.0", "id": call["id"], "error": error})
            content = answer.encode()
        else:
            await asyncio.sleep(self.delay)
            response = await self._client.post(
                self._upstream,
                content=body,
                headers={"content-type": "application/json"},
            )
            content = response.content
            if call["method"] in STATE_METHODS:
                self.requests.append((began, time.monotonic()))
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": content})


@contextmanager
def proxy(upstream: str, port: int) -> Iterator[Proxy]:
    """Run a proxy in a thread during a `with` block, at a port of loopback."""
    application = Proxy(upstream)
    server = uvicorn.Server(
        uvicorn.Config(
            application, port=port, lifespan="off", ws="none", log_level="warning"
        )
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield application
    finally:
        server.should_exit = True
        thread.join()
