"""Pages that wait for data of the chain while other pages are served."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import pytest

from config.pages import AT_ONCE
from keys.grants import Grant
from tests.support.waiting import PATIENCE_SECONDS, wait_until
from wallets.errors import InternalError
from wallets.nodes.page_node import MAX_WAITING, PageNode
from wallets.serving.wallet import Wallet
from wallets.upstream import ChainNode


class _Ungranted(Wallet):
    """A wallet that returns its grant without the event loop."""

    def __init__(self) -> None: ...

    async def grant(self) -> None:  # type: ignore[override]
        return None


class _Revoked(Wallet):
    """A wallet whose API key staff have revoked."""

    def __init__(self) -> None: ...

    async def grant(self) -> Grant:
        raise InternalError


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_slow_questions_of_a_user_leave_places_for_other_pages(
    loop: asyncio.AbstractEventLoop,
):
    node = PageNode(_Ungranted(), loop)
    finished = asyncio.Event()
    asked: list[Mapping[str, ChainNode]] = []

    async def slow(nodes: Mapping[str, ChainNode]) -> str:
        asked.append(nodes)
        await finished.wait()
        return "late"

    async def quick(_: Mapping[str, ChainNode]) -> str:
        return "now"

    def ask_slowly() -> str | None:
        return node.of(1).ask([], slow, PATIENCE_SECONDS)

    refused = AT_ONCE - 1 - MAX_WAITING
    with ThreadPoolExecutor(AT_ONCE + 1) as pages:
        try:
            many = [pages.submit(ask_slowly) for _ in range(AT_ONCE)]
            wait_until(lambda: sum(one.done() for one in many) >= refused)
            other = pages.submit(node.of(2).ask, [], quick, PATIENCE_SECONDS)
            assert other.result(PATIENCE_SECONDS) == "now"
            assert len(asked) == 1
        finally:
            loop.call_soon_threadsafe(finished.set)
    assert refused >= AT_ONCE / 2


def test_pages_go_without_the_chain_when_the_wallets_key_is_revoked(
    loop: asyncio.AbstractEventLoop,
):
    async def read(nodes: Mapping[str, ChainNode]) -> int:
        return len(nodes)

    assert PageNode(_Revoked(), loop).ask([], read, PATIENCE_SECONDS) is None
