"""An endpoint with long answers, to be served from a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from config.limits import read_limits
from config.variables import site
from jsonrpc.dispatch import Limits
from jsonrpc.params import Param
from jsonrpc.registry import MethodRegistry
from jsonrpc.stream import CHUNK_BYTES, Stream
from nodeapi.endpoint.endpoint import Endpoint
from tests.support import edge

registry = MethodRegistry()
open_streams: set[object] = set()

_NUMBER = Param("number", int)
_DIGITS = b"0123456789abcdef" * (CHUNK_BYTES // 16)


async def _hex(size: int, end: int) -> AsyncGenerator[bytes, None]:
    """Yield a JSON string of some size. Fail after `end` bytes."""
    mark = object()
    open_streams.add(mark)
    try:
        yield b'"'
        left = size - 2
        while left:
            if size - left > end:
                raise KeyError("a bug that shows midway")
            part = _DIGITS[:left]
            left -= len(part)
            yield part
        yield b'"'
    finally:
        open_streams.remove(mark)


@registry.method("long", params=[_NUMBER], result={}, summary="Streams.")
def long(context: object, size: int) -> Stream:
    return Stream(size, _hex(size, size))


@registry.method("broken", params=[_NUMBER, _NUMBER], result={}, summary="Breaks off.")
def broken(context: object, size: int, end: int) -> Stream:
    return Stream(size, _hex(size, end))


@registry.method("openStreams", result={}, summary="Counts.")
def count(context: object) -> bytes:
    return b"%d" % len(open_streams)


@registry.method("hang", result={}, summary="Waits.", is_slow=True)
async def hang(context: object) -> bytes:
    mark = object()
    open_streams.add(mark)
    try:
        await asyncio.Event().wait()
    finally:
        open_streams.remove(mark)
    return b"null"


endpoint = Endpoint(edge.Service(), registry, limits=Limits(), max_body_bytes=100_000)


application = edge.Application(
    endpoint,
    limits=read_limits(),
    trusted_proxies=site.FORWARDED_ALLOW_IPS.value(),
)
