"""Long answers on their way to the reader, at the reader's pace."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing

from jsonrpc.stream import Stream
from nodeapi import http
from nodeapi.http import Receive, Send


async def send_stream(
    stream: Stream, headers: http.Headers, gzip: bool, receive: Receive, send: Send
) -> None:
    """Send an answer as it is made; give it up when the client has gone.

    gzip: compress it, in chunks of a length that nobody knows beforehand.
    Whatever the stream raises is raised, and the answer is not brought to its end, so
    that the server closes the connection upon it: its reader sees a broken transfer.
    """
    if gzip:
        headers += http.GZIP_HEADERS
        parts = _compress(stream)
    else:
        headers.append((b"content-length", b"%d" % stream.size))
        parts = aiter(stream)
    gone = asyncio.ensure_future(receive())
    try:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async with aclosing(parts):
            async for part in parts:
                if gone.done():
                    return
                # Waits while the socket's buffers are full.
                await send(
                    {"type": "http.response.body", "body": part, "more_body": True}
                )
                # They may never be with a quick reader, and others want their turn.
                await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b""})
    finally:
        gone.cancel()
        await stream.aclose()


async def _compress(parts: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
    """Compress in a thread: a part would hold the event loop up for half a millisecond."""
    compressor = zlib.compressobj(level=1, wbits=31)
    loop = asyncio.get_running_loop()
    async for part in parts:
        packed = await loop.run_in_executor(None, compressor.compress, part)
        if packed:
            yield packed
    yield compressor.flush()
