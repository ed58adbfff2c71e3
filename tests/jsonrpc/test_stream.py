from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import orjson
import pytest

from jsonrpc.answers import Parts, Reply
from jsonrpc.dispatch import Dispatcher, Limits
from jsonrpc.errors import InvalidParams
from jsonrpc.params import Param
from jsonrpc.registry import MethodRegistry
from jsonrpc.stream import CHUNK_BYTES, BrokenStream, Stream
from tests.jsonrpc.support import GENEROUS, Caller, call, error, number

LONG = 5 * CHUNK_BYTES


async def letters(
    size: int, chunk: int, closed: list[int], fault_at: int = -1, missing: int = 0
) -> AsyncGenerator[bytes, None]:
    """Yield a JSON string. Record the number of bytes read when it is closed."""
    given = 0
    try:
        while given < size - missing:
            if 0 <= fault_at <= given:
                raise InvalidParams("a fault of the chunks")
            part = b"x" * min(chunk, size - missing - given)
            if given == 0:
                part = b'"' + part[1:]
            given += len(part)
            if given == size:
                part = part[:-1] + b'"'
            yield part
    finally:
        closed.append(given)


class Source:
    """A registry with one method, and the number of bytes read of its streams."""

    def __init__(self, chunk: int = 1000, fault_at: int = -1, missing: int = 0) -> None:
        self.closed: list[int] = []
        self.registry = MethodRegistry()

        @self.registry.method(
            "long", params=[Param("size", number)], result={}, summary="Streams."
        )
        def give(context: Caller, size: int) -> Stream:
            chunks = letters(size, chunk, self.closed, fault_at, missing)
            return Stream(size, chunks, "ask for less")

        @self.registry.method(
            "longLater", params=[Param("size", number)], result={}, summary="Streams."
        )
        async def give_later(context: Caller, size: int) -> Stream:
            await asyncio.sleep(0)
            return give(context, size)

        @self.registry.method("never", result={}, summary="Waits.", is_slow=True)
        async def wait(context: Caller) -> bytes:
            try:
                return await asyncio.Event().wait() and b""
            finally:
                self.closed.append(-1)

    async def answer(
        self, body: object, limits: Limits = GENEROUS, **given: Any
    ) -> Any:
        dispatcher = Dispatcher(self.registry, limits, {})
        return await dispatcher.respond(orjson.dumps(body), Caller(), **given)

    def told(self, body: object, limits: Limits = GENEROUS) -> Any:
        """Return the decoded JSON of the response to a body."""

        async def read() -> bytes:
            answer = await self.answer(body, limits)
            if isinstance(answer, Stream):
                size = answer.size
                answer = await answer.read()
                assert len(answer) == size
            return answer.body if isinstance(answer, Reply) else bytes(answer)

        return orjson.loads(asyncio.run(read()))


@pytest.mark.parametrize("method", ["long", "longLater"])
@pytest.mark.parametrize("chunk", [1000, CHUNK_BYTES, LONG])
@pytest.mark.parametrize("size", [2, 1000, CHUNK_BYTES, CHUNK_BYTES + 1, LONG])
def test_stream_is_the_result_of_a_call(method: str, size: int, chunk: int) -> None:
    source = Source(chunk)
    answer = source.told(call(method, size, call_id="mine"))
    assert answer == {"jsonrpc": "2.0", "id": "mine", "result": "x" * (size - 2)}
    assert source.closed == [size]


def test_short_stream_becomes_bytes_and_a_long_one_stays_a_stream() -> None:
    source = Source()
    short = asyncio.run(source.answer(call("long", CHUNK_BYTES)))
    assert isinstance(short, Parts)
    assert len(bytes(short)) > CHUNK_BYTES
    assert isinstance(asyncio.run(source.answer(call("long", LONG))), Stream)


@pytest.mark.parametrize("chunk", [1, 1000, 40_000, CHUNK_BYTES])
def test_parts_have_about_the_size_that_is_good_for_their_way(chunk: int) -> None:
    async def sizes() -> list[int]:
        stream = await Source(chunk).answer(call("long", LONG))
        return [len(part) async for part in stream]

    found = asyncio.run(sizes())
    assert max(found) < 2 * CHUNK_BYTES
    assert min(found[:-1]) >= CHUNK_BYTES


@pytest.mark.parametrize("size", [1000, LONG])
def test_fault_of_the_first_chunk_is_reported(size: int) -> None:
    answer = Source(fault_at=0).told(call("long", size))
    assert answer == error(-32602, "a fault of the chunks")


def test_later_fault_breaks_the_stream_off() -> None:
    async def read() -> None:
        stream = await Source(fault_at=2 * CHUNK_BYTES).answer(call("long", LONG))
        parts = []
        with pytest.raises(InvalidParams):
            async for part in stream:
                parts.append(part)
        assert b"".join(parts).startswith(b'{"jsonrpc":"2.0","id":1,"result":"xxx')
        assert not b"".join(parts).endswith(b"}")

    asyncio.run(read())


@pytest.mark.parametrize("missing", [1, 70_000, -1])
def test_stream_of_another_size_never_ends_in_json(missing: int) -> None:
    async def read() -> None:
        stream = await Source(missing=missing).answer(call("long", LONG))
        parts = []
        with pytest.raises(BrokenStream):
            async for part in stream:
                parts.append(part)
        with pytest.raises(orjson.JSONDecodeError):
            orjson.loads(b"".join(parts))

    asyncio.run(read())


def test_short_stream_of_another_size_is_a_crash_that_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer = Source(missing=1).told(call("long", 1000))
    assert answer == error(-32603, "method handler crashed")
    assert "1 bytes shorter" in caplog.text


def test_stream_that_is_left_lets_go() -> None:
    source = Source()

    async def leave() -> None:
        stream = await source.answer(call("long", LONG))
        await stream.aclose()

    asyncio.run(leave())
    assert source.closed == [1000]


def test_streams_of_a_batch_are_collected_within_its_response() -> None:
    source = Source()
    sizes = [600_000, 500_000, 300_000, 200_000, 90_000]
    batch = [
        call(method, size, call_id=size)
        for size, method in zip(sizes, ["long", "longLater"] * 3, strict=False)
    ]
    answers = source.told(batch, Limits(response_bytes=1_000_000))
    assert [answer["id"] for answer in answers] == sizes
    results = [len(answer.get("result", "")) + 2 for answer in answers]
    assert results == [600_000, 2, 300_000, 2, 90_000]
    assert answers[1]["error"] == {
        "code": -32003,
        "message": "response too large: the result has 500000 bytes, "
        "but at most 400000 are possible; ask for less",
        "data": {
            "reason": "response_too_large",
            "see": "https://node.example/docs/errors#response_too_large",
            "size": 500_000,
            "limit": 400_000,
        },
    }
    assert source.closed == [600_000, 300_000, 90_000]


def test_fault_of_a_stream_in_a_batch_is_reported() -> None:
    answers = Source(fault_at=100_000).told([call("long", size) for size in (LONG, 9)])
    assert answers == [
        error(-32602, "a fault of the chunks"),
        {"jsonrpc": "2.0", "id": 1, "result": "x" * 7},
    ]


@pytest.mark.parametrize("in_batch", [False, True])
def test_slow_method_has_a_deadline_of_its_own(in_batch: bool) -> None:
    body = [call("never")] if in_batch else call("never")
    told = error(-32002, "request timed out")
    answer = Source().told(body, Limits(seconds=60, slow_seconds=0.02))
    assert answer == ([told] if in_batch else told)


@pytest.mark.parametrize("in_batch", [False, True])
def test_slow_method_is_given_up_when_the_caller_has_gone(in_batch: bool) -> None:
    source = Source()
    body = [call("long", 9), call("never")] if in_batch else call("never")

    async def ask() -> bytes:
        gone = asyncio.Event()
        asyncio.get_running_loop().call_later(0.02, gone.set)
        answer: bytes = await source.answer(body, gone=gone.wait)
        await asyncio.sleep(0)
        return answer

    assert asyncio.run(ask()) == b""
    assert source.closed == [-1]


def test_few_slow_calls_of_a_batch_are_under_way_together() -> None:
    source = Source()
    under_way = most = 0

    @source.registry.method("slow", result={}, summary="Takes time.", is_slow=True)
    async def slow(context: Caller) -> bytes:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001)
        under_way -= 1
        return b"1"

    batch = [call("slow", call_id=i) for i in range(30)]
    batch[5:5] = [call("long", 9, call_id="fast")]
    answers = source.told(batch)
    ids = [answer["id"] for answer in answers]
    assert ids == [*range(5), "fast", *range(5, 30)]
    assert {str(answer["result"]) for answer in answers} == {"1", "xxxxxxx"}
    assert 1 < most <= 8


def test_slow_calls_of_a_long_batch_are_answered_while_the_caller_stays() -> None:
    source = Source()

    @source.registry.method("slow", result={}, summary="Takes time.", is_slow=True)
    async def slow(context: Caller) -> bytes:
        await asyncio.sleep(0.001)
        return b"1"

    async def ask() -> bytes:
        departure = asyncio.get_running_loop().create_future()
        batch = [call("slow", call_id=i) for i in range(30)]
        return bytes(await source.answer(batch, gone=lambda: departure))

    assert len(orjson.loads(asyncio.run(ask()))) == 30


def test_slow_calls_are_not_begun_once_the_response_is_full() -> None:
    source = Source()
    begun = 0

    @source.registry.method("slow", result={}, summary="Takes time.", is_slow=True)
    async def slow(context: Caller) -> bytes:
        nonlocal begun
        begun += 1
        return b'"' + b"1" * 998 + b'"'

    answers = source.told([call("slow")] * 100, Limits(response_bytes=5000))
    assert [answer.get("error", {}).get("code") for answer in answers] == (
        [None] * 6 + [-32003] * 94
    )
    assert begun == 8
