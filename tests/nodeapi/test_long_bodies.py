from __future__ import annotations

import asyncio
import gc
import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from jsonrpc.answers import Answer
from jsonrpc.later import Later
from nodeapi.long_bodies import LongBodies
from tests.support import chains, sample
from tests.support.live import Live, live_service
from tests.support.waiting import PATIENCE_SECONDS

JUNK = b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[%b1]}' % (
    b"[]," * 1_000_000
)
"""3 MB that are refused, and take long to parse."""


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    chains.import_blocks("sample", sample.genesis(), sample.raw_blocks()[:1])
    with live_service() as live:
        yield live


def test_loop_turns_between_two_long_bodies() -> None:
    turns = 0
    parsed_in: list[int] = []

    def respond() -> Later[Answer]:
        assert not gc.isenabled()
        parsed_in.append(turns)
        return Later(b"x")

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def scenario() -> list[Answer]:
        counting = asyncio.create_task(count_turns())
        bodies = LongBodies()
        answers = await asyncio.gather(*(bodies.respond(respond) for _ in range(5)))
        counting.cancel()
        return answers

    assert asyncio.run(scenario()) == [b"x"] * 5
    assert len(set(parsed_in)) == 5
    assert gc.isenabled()


def test_others_are_answered_between_long_bodies(live: Live) -> None:
    """All bodies are complete at once, but for their last byte."""
    head = (
        f"POST /v3/{live.new_key()} HTTP/1.1\r\nhost: x\r\n"
        f"content-type: application/json\r\ncontent-length: {len(JUNK)}\r\n\r\n"
    )
    longest = 0.0
    with live.api() as other, ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(address_of(live)))
            for _ in range(16)
        ]
        for client in clients:
            client.sendall(head.encode() + JUNK[:-1])
        started = time.monotonic()
        for client in clients:
            client.sendall(JUNK[-1:])
        unanswered = clients
        while unanswered:
            asked = time.monotonic()
            assert other.result("eth_chainId") == "0x31773"
            longest = max(longest, time.monotonic() - asked)
            ready, _, _ = select.select(unanswered, [], [], 0)
            for client in ready:
                assert client.recv(100).startswith(b"HTTP/1.1 200 ")
            unanswered = [each for each in unanswered if each not in ready]
            assert time.monotonic() - started < PATIENCE_SECONDS
        duration = time.monotonic() - started
    assert longest < duration / 3


def address_of(live: Live) -> tuple[str, int]:
    host, port = live.server.listeners[0].getsockname()
    return host, port
