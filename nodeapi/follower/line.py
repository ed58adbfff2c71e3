"""The line of blocks between our chain and a chosen head: its hashes and its data."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from eth_typing import Hash32

from nodeapi.follower.choice import Point
from nodeapi.follower.pool import Fetched
from nodeapi.follower.thread import IDLE_SECONDS, LoopThread
from nodeapi.upstreams.source import BlockRef

SEGMENT_BLOCKS = 128
"""Number of blocks after which the upstreams have to agree on a block again."""

BLOCKS_AHEAD = 16
"""Maximum number of blocks that are downloaded in advance."""

FIRST_PARALLEL = 2
"""Downloads in progress at first. Whenever the import has to wait, there is one more, up to
`BLOCKS_AHEAD`: more than needed would only take time from the import."""

BYTES_AHEAD = 64 * 2**20
"""Maximum size of all downloaded blocks that are not imported yet."""

TYPICAL_BYTES = 2**20
"""Assumed size of a block that is being downloaded, or the size of the largest block so far
if that is larger."""

MAX_LINE = 200_000
"""Greatest number of hashes that are followed back to a known block."""


class Refs(Protocol):
    """A source of block references: an `UpstreamPool`."""

    def cached(self, block_hash: Hash32) -> BlockRef | None:
        """Return the block with a hash if it was seen before."""

    async def ref(self, block_hash: Hash32) -> BlockRef:
        """Return the block with a hash."""

    async def refs_by_number(self, numbers: Sequence[int]) -> list[BlockRef | None]:
        """Return the blocks with these numbers on the chain of one upstream."""

    async def agreed_at(self, number: int) -> BlockRef | None:
        """Return the block with a number on which enough upstreams agree, or None."""


async def ancestry(refs: Refs, newest: Point, count: int) -> list[BlockRef]:
    """Return a block and its ancestors, the oldest first.

    count: number of blocks, at most `newest.number + 1`.

    Blocks are requested by number, many at once. Those that are not ancestors of the newest
    block are requested again by hash, one after the other.

    Raises: BlockUnavailable.
    """
    lowest = newest.number - count + 1
    line = [await refs.ref(newest.hash)]
    while line[-1].number > lowest and (parent := refs.cached(line[-1].parent_hash)):
        line.append(parent)
    by_number: dict[int, BlockRef] = {}
    if line[-1].number > lowest + 1:
        found = await refs.refs_by_number(range(lowest, line[-1].number))
        by_number = {ref.number: ref for ref in found if ref is not None}
    while line[-1].number > lowest:
        oldest = line[-1]
        parent = by_number.get(oldest.number - 1)
        if parent is None or parent.hash != oldest.parent_hash:
            parent = await refs.ref(oldest.parent_hash)
        line.append(parent)
    return line[::-1]


async def line_to(
    refs: Refs, start: Sequence[BlockRef], target: Point
) -> AsyncIterator[tuple[BlockRef, bool]]:
    """Yield the blocks of a line from its first segment to a target, the oldest first.

    start: the first segment, the oldest block first.

    The boolean is true for the last block of each segment, on which the upstreams have
    agreed. The line ends early if they don't agree, or if the next segment does not
    continue this one because the chain was reorganised in the meantime.
    """
    segment = start
    while True:
        for ref in segment[:-1]:
            yield ref, False
        last = segment[-1]
        yield last, True
        left = target.number - last.number
        if left <= 0:
            return
        end: Point | None = target
        if left > SEGMENT_BLOCKS:
            agreed = await refs.agreed_at(last.number + SEGMENT_BLOCKS)
            end = Point(agreed.number, agreed.hash) if agreed else None
        if end is None:
            return
        segment = await ancestry(refs, end, end.number - last.number)
        if segment[0].parent_hash != last.hash:
            return


@dataclass(slots=True)
class Step:
    """A downloaded block of a line. is_agreed: see `line_to`."""

    block: Fetched
    is_agreed: bool
    following: bytes | None = None
    """The RLP of the next block, if it is downloaded already."""


class Download:
    """Downloads the blocks of a line ahead of their import.

    The tasks run in an event loop. Another thread iterates over the blocks in the order of
    the line. The iteration raises the error of the line or of a download after it has
    yielded the preceding blocks.
    """

    def __init__(
        self,
        thread: LoopThread,
        line: AsyncIterator[tuple[BlockRef, bool]],
        fetch: Callable[[BlockRef], Awaitable[Fetched]],
    ) -> None:
        """Start the downloads."""
        self._thread = thread
        self._line = line
        self._fetch = fetch
        self._ready = threading.Condition()
        self._steps: deque[Step] = deque()
        """Downloaded blocks that have not been taken, in order."""
        self._is_finished = False
        self._error: BaseException | None = None
        self._bytes = 0
        self._largest = TYPICAL_BYTES
        self._parallel = FIRST_PARALLEL
        self._has_changed = asyncio.Event()
        """Set when a block was taken, or when the number of downloads was raised."""
        self._done = thread.submit(self._run())

    def __iter__(self) -> Iterator[Step | None]:
        """Yield each block, and None whenever no block was completed for 0.25 s."""
        while True:
            step = None
            with self._ready:
                if not self._steps and not self._is_finished:
                    self._parallel = min(self._parallel + 1, BLOCKS_AHEAD)
                    self._ready.wait(IDLE_SECONDS)
                if self._steps:
                    step = self._steps.popleft()
                    self._bytes -= len(step.block.raw)
                    if self._steps:
                        step.following = self._steps[0].block.raw
                elif self._is_finished:
                    if self._error is not None:
                        raise self._error
                    return
            self._thread.loop.call_soon_threadsafe(self._has_changed.set)
            yield step

    def close(self) -> None:
        """Cancel the downloads in progress."""
        self._done.cancel()

    async def _run(self) -> None:
        tasks: deque[tuple[asyncio.Task[Fetched], bool]] = deque()
        error: BaseException | None = None
        try:
            await self._download(tasks)
        except BaseException as caught:
            error = caught
            raise
        finally:
            for task, _ in tasks:
                task.cancel()
            with self._ready:
                self._error, self._is_finished = error, True
                self._ready.notify()

    async def _download(self, tasks: deque[tuple[asyncio.Task[Fetched], bool]]) -> None:
        """Keep as many downloads in progress as the limits allow."""
        is_complete = False
        failure: Exception | None = None
        while True:
            self._has_changed.clear()
            while not is_complete and self._has_room(len(tasks)):
                try:
                    ref, is_agreed = await anext(self._line)
                except StopAsyncIteration:
                    is_complete = True
                except Exception as error:
                    # Raised after the blocks before it.
                    is_complete, failure = True, error
                else:
                    tasks.append((asyncio.ensure_future(self._fetch(ref)), is_agreed))
                self._take_completed(tasks)
            if not tasks:
                if is_complete:
                    if failure is not None:
                        raise failure
                    return
                await self._has_changed.wait()
                continue
            changed = asyncio.ensure_future(self._has_changed.wait())
            try:
                await asyncio.wait(
                    [tasks[0][0], changed], return_when=asyncio.FIRST_COMPLETED
                )
            finally:
                changed.cancel()
            self._take_completed(tasks)

    def _take_completed(self, tasks: deque[tuple[asyncio.Task[Fetched], bool]]) -> None:
        """Queue the completed downloads for the importing thread, in order.

        Raises: the error of the first failed download.
        """
        while tasks and tasks[0][0].done():
            task, is_agreed = tasks.popleft()
            fetched = task.result()
            with self._ready:
                self._largest = max(self._largest, len(fetched.raw))
                self._bytes += len(fetched.raw)
                self._steps.append(Step(fetched, is_agreed))
                self._ready.notify()

    def _has_room(self, in_flight: int) -> bool:
        """Return whether one more download may begin."""
        if in_flight + len(self._steps) == 0:
            return True
        reserved = self._bytes + (in_flight + 1) * self._largest
        return (
            in_flight < self._parallel
            and in_flight + len(self._steps) < BLOCKS_AHEAD
            and reserved <= BYTES_AHEAD
        )
