"""A body that comes in parts, through the endpoint's own loop."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any

import pytest

from jsonrpc.deadlines import Deadlines
from jsonrpc.errors import BodyTooLarge, BodyTooSlow
from nodeapi.exchange import AsgiExchange, read_body

LIMIT = 200_000


def reading(part: bytes, count: int, end: str = "http.request") -> bytes | None:
    """Read a body of so many equal parts behind a first one."""
    left = count + 1

    async def receive() -> dict[str, Any]:
        nonlocal left
        left -= 1
        if left:
            # Each part is an object of its own, as it is when it comes from a socket.
            return {"type": "http.request", "body": bytes([*part]), "more_body": True}
        return {"type": end, "body": part, "more_body": False}

    async def send(_: object) -> None:
        raise AssertionError("nothing is to be sent")

    async def read() -> bytes | None:
        return await read_body(AsgiExchange({}, receive, send), LIMIT, Deadlines(30))

    return asyncio.run(read())


@pytest.mark.parametrize("part", [b"ab", b"abc" * 1000, b""])
def test_parts_are_put_together(part: bytes) -> None:
    assert reading(part, 50) == part * 51


def test_client_that_leaves_amid_its_body_is_not_answered() -> None:
    assert reading(b"ab", 50, end="http.disconnect") is None


@pytest.mark.parametrize("over", [0, 1])
def test_limit_is_the_last_length_that_is_taken(over: int) -> None:
    count = LIMIT // 2 - 1
    if over:
        with pytest.raises(BodyTooLarge):
            reading(b"ab", count + 1)
    else:
        assert len(reading(b"ab", count) or b"") == LIMIT


def test_memory_is_bounded_by_the_limit_however_small_the_parts_are() -> None:
    reading(b"ab", 10)  # what is loaded at the first time
    tracemalloc.start()
    try:
        with pytest.raises(BodyTooLarge):
            reading(b"ab", LIMIT)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * LIMIT


def test_body_of_which_nothing_comes_is_not_waited_for_for_ever() -> None:
    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError("nothing comes")

    async def send(_: object) -> None:
        raise AssertionError("nothing is to be sent")

    async def read() -> bytes | None:
        return await read_body(AsgiExchange({}, receive, send), LIMIT, Deadlines(0.01))

    with pytest.raises(BodyTooSlow):
        asyncio.run(read())
