"""The download of a line's blocks, and its limits ahead of the import."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import closing

import pytest
from eth_typing import Hash32

from nodeapi.follower import line
from nodeapi.follower.line import FIRST_PARALLEL, Download, Step
from nodeapi.follower.pool import BlockUnavailable, Fetched
from nodeapi.follower.thread import LoopThread
from nodeapi.upstreams.source import BlockRef
from tests.support.waiting import wait_until


class Blocks:
    """A line of blocks, which are sent while `is_open` is true.

    size: of each block in bytes. missing: number of a block that no upstream sends.
    """

    def __init__(self, count: int, *, size: int = 100, missing: int = -1) -> None:
        self.count = count
        self.size = size
        self.missing = missing
        self.asked: list[int] = []
        self.in_flight = 0
        self.cancelled = 0
        self.is_open = True

    async def line(self) -> AsyncIterator[tuple[BlockRef, bool]]:
        for number in range(self.count):
            yield ref(number), number == self.count - 1

    async def fetch(self, wanted: BlockRef) -> Fetched:
        self.asked.append(wanted.number)
        self.in_flight += 1
        try:
            while not self.is_open:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.in_flight -= 1
        if wanted.number == self.missing:
            raise BlockUnavailable(f"block {wanted.number}: no upstream has it")
        return Fetched(wanted, bytes(self.size), 1, 0.0)


def ref(number: int) -> BlockRef:
    return BlockRef(number, Hash32(number.to_bytes(32)), Hash32(bytes(32)), number)


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    with LoopThread("test") as running:
        yield running


def take(steps: Iterator[Step | None]) -> int:
    """Return the number of the next block."""
    return next(step.block.ref.number for step in steps if step is not None)


def test_blocks_come_in_order_each_with_the_next_one(thread: LoopThread) -> None:
    blocks = Blocks(40)
    with closing(Download(thread, blocks.line(), blocks.fetch)) as download:
        steps = [step for step in download if step is not None]
    assert [step.block.ref.number for step in steps] == list(range(40))
    assert [step.is_agreed for step in steps] == [False] * 39 + [True]
    assert all(step.following in (None, bytes(100)) for step in steps)
    assert steps[-1].following is None


@pytest.mark.parametrize(("size", "ahead"), [(100, 16), (1_000, 6), (7_000, 1)])
def test_downloads_ahead_are_limited_in_number_and_bytes(
    thread: LoopThread, monkeypatch: pytest.MonkeyPatch, size: int, ahead: int
) -> None:
    monkeypatch.setattr(line, "BYTES_AHEAD", 6_500)
    monkeypatch.setattr(line, "TYPICAL_BYTES", size)
    blocks = Blocks(60, size=size)
    with closing(Download(thread, blocks.line(), blocks.fetch)) as download:
        steps = iter(download)
        for taken in range(1, 20):
            assert take(steps) == taken - 1
            wait_until(lambda taken=taken: len(blocks.asked) >= taken + ahead)
            assert len(blocks.asked) == taken + ahead


def test_more_is_downloaded_at_once_while_the_import_waits(
    thread: LoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "IDLE_SECONDS", 0.01)
    blocks = Blocks(60)
    blocks.is_open = False
    with closing(Download(thread, blocks.line(), blocks.fetch)) as download:
        steps = iter(download)
        for count in range(FIRST_PARALLEL, 16):
            wait_until(lambda count=count: blocks.in_flight == count)
            assert next(steps) is None
        wait_until(lambda: blocks.in_flight == 16)
        assert [next(steps) for _ in range(5)] == [None] * 5
        assert blocks.in_flight == 16
        blocks.is_open = True
        assert [take(steps) for _ in range(60)] == list(range(60))


def test_an_error_is_raised_after_the_blocks_before_it(thread: LoopThread) -> None:
    blocks = Blocks(20, missing=5)
    with closing(Download(thread, blocks.line(), blocks.fetch)) as download:
        steps = iter(download)
        assert [take(steps) for _ in range(5)] == list(range(5))
        with pytest.raises(BlockUnavailable, match="block 5"):
            take(steps)


def test_closing_cancels_the_downloads_in_progress(thread: LoopThread) -> None:
    blocks = Blocks(20)
    blocks.is_open = False
    with closing(Download(thread, blocks.line(), blocks.fetch)):
        wait_until(lambda: blocks.in_flight == FIRST_PARALLEL)
    wait_until(lambda: blocks.in_flight == 0)
    assert blocks.cancelled == FIRST_PARALLEL
