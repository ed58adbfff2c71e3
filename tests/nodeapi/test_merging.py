"""Merging of arrays of logs, in memory and in files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import orjson
import pytest

from jsonrpc.stream import CHUNK_BYTES, Stream
from nodeapi.filters.filters import MergedArray
from nodeapi.results.spool import Spool, SpoolCount

LONG = orjson.dumps(["x" * 1000] * (3 * CHUNK_BYTES // 1000))


def streamed(text: bytes, first: int) -> Stream:
    """Return JSON as a stream. first: size of its first chunk."""

    async def chunks() -> AsyncGenerator[bytes, None]:
        yield text[:first]
        for start in range(first, len(text), CHUNK_BYTES):
            yield text[start : start + CHUNK_BYTES]

    return Stream(len(text), chunks())


@pytest.mark.parametrize("first", [1, CHUNK_BYTES])
def test_elements_of_all_arrays_are_written(first: int) -> None:
    async def merge() -> bytes:
        spool = Spool(2**24, SpoolCount())
        merged = MergedArray(spool)
        for array in (b"[]", b"[1,2]", streamed(LONG, first), b"[]", b"[3]"):
            await merged.add(array)
        await merged.add(streamed(LONG, first))
        merged.close()
        answer = spool.answer("")
        assert isinstance(answer, bytes)
        return answer

    long = orjson.loads(LONG)
    assert orjson.loads(asyncio.run(merge())) == [1, 2, *long, 3, *long]


def test_nothing_is_an_empty_array() -> None:
    async def merge() -> bytes | Stream:
        spool = Spool(2**24, SpoolCount())
        merged = MergedArray(spool)
        await merged.add(b"[]")
        merged.close()
        return spool.answer("")

    assert asyncio.run(merge()) == b"[]"
