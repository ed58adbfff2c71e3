"""All upstreams of a network: their views, and blocks from any of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from eth_typing import Hash32

from networks.directory import UpstreamView
from nodeapi.follower.choice import Point, View, questions
from nodeapi.follower.watcher import Expected, Watcher
from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.errors import (
    UnsupportedBlock,
    UpstreamError,
    UpstreamUnavailable,
    WrongBlock,
)
from nodeapi.upstreams.source import BlockRef

VIEW_SECONDS = 60.0
"""Time for which the view of an unavailable upstream still counts."""

FETCH_SECONDS = 3.0
"""Time limit for reading a block from one upstream, before the next one is asked."""

ROUNDS = 5
"""Maximum number of times that every upstream is asked for a block."""

ALL_SECONDS = 5.0
"""Time after which no further upstream is asked for a block."""

FIRST_PAUSE_SECONDS = 0.05
"""Pause after the first round. Each further pause is twice as long."""

REFS_KEPT = 4096
"""Number of cached `BlockRef`s."""

MAX_QUESTIONS = 64
"""Maximum number of `questions` that are asked at once. The highest block numbers have
priority."""

Answer = TypeVar("Answer")

_ERRORS = (UpstreamUnavailable, UpstreamError, WrongBlock, TimeoutError)


class BlockUnavailable(Exception):
    """Raised if no upstream returns a requested block."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A block that hashes to the requested hash."""

    ref: BlockRef
    raw: bytes
    upstream_id: int
    seconds: float
    """Time from the request to the end of the response."""


class UpstreamPool:
    """Watches all upstreams of a network. Runs in one event loop.

    `views`, `watchers`, `prefer` and `set_own_number` may be used by another thread.
    """

    def __init__(self, expected: Expected, polled: Callable[[], None]) -> None:
        """Start without upstreams. polled: called after each poll of an upstream."""
        self._expected = expected
        self._polled = polled
        self._agree = 1
        self._own_number = 0
        self._preferred: frozenset[int] = frozenset()
        self._watchers: dict[int, tuple[Watcher, asyncio.Task[None]]] = {}
        self._asking: asyncio.Task[None] | None = None
        self._refs: dict[Hash32, BlockRef] = {}

    def watchers(self) -> list[Watcher]:
        """Return the watchers in the order in which the upstreams are preferred."""
        return [watcher for watcher, _ in self._watchers.values()]

    def views(self) -> list[View]:
        """Return the views of the upstreams that are not excluded or in quarantine.

        That of an unavailable upstream counts for `VIEW_SECONDS`.
        """
        oldest = time.monotonic() - VIEW_SECONDS
        return [
            watcher.view
            for watcher in self.watchers()
            if watcher.view is not None
            and not watcher.excluded
            and watcher.quarantined is None
            and (watcher.view.is_current or watcher.viewed_at > oldest)
        ]

    def set_own_number(self, number: int) -> None:
        """Set the number of the network's own head.

        An upstream whose head has a lower number counts as behind.
        """
        self._own_number = number

    def prefer(self, upstream_ids: frozenset[int]) -> None:
        """Ask these upstreams first: those that have the chosen head on their chain."""
        self._preferred = upstream_ids

    async def configure(self, upstreams: Sequence[UpstreamView], agree: int) -> None:
        """Replace the upstreams. The watchers of unchanged upstreams keep running."""
        self._agree = agree
        wanted = {upstream.id: upstream for upstream in upstreams}
        before, self._watchers = self._watchers, {}
        gone = []
        watchers: dict[int, tuple[Watcher, asyncio.Task[None]]] = {}
        for key, upstream in wanted.items():
            found = before.get(key)
            if found is not None and found[0].upstream == upstream:
                watchers[key] = before.pop(key)
                continue
            watcher = Watcher(
                upstream, self._expected, lambda: self._own_number, self._after_look
            )
            watchers[key] = watcher, asyncio.create_task(watcher.run())
        self._watchers = watchers
        for _, task in before.values():
            task.cancel()
            gone.append(task)
        await asyncio.gather(*gone, return_exceptions=True)

    async def close(self) -> None:
        """Stop watching."""
        await self.configure([], 1)
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    async def quarantine(
        self, upstream_ids: Collection[int], block: Point, reason: str
    ) -> None:
        """Ignore upstreams while an invalid block is on their chains."""
        for key in upstream_ids:
            if key in self._watchers:
                self._watchers[key][0].quarantine(block, reason)

    async def suspend(self, upstream_ids: Collection[int], reason: str) -> None:
        """Count a failure of upstreams, and ignore them for a while."""
        for key in upstream_ids:
            if key in self._watchers:
                self._watchers[key][0].failed(reason)
                self._watchers[key][0].quarantine(None, reason)

    async def release(self, block_hash: Hash32) -> None:
        """End the quarantine of all upstreams that have sent a block."""
        for watcher, _ in self._watchers.values():
            watcher.release(block_hash)

    async def blame(self, upstream_ids: Collection[int], reason: str) -> None:
        """Count a failure of upstreams that have returned wrong data."""
        for key in upstream_ids:
            if key in self._watchers:
                self._watchers[key][0].failed(reason)

    # Blocks

    def clients(self, number: int) -> list[UpstreamClient]:
        """Return the clients of the usable upstreams, the best one for a block first.

        May be called by any thread.
        """
        return [watcher.client for watcher in self._ordered(number)]

    def blame_client(self, client: UpstreamClient, reason: str) -> None:
        """Count a failure of the upstream with this client. Runs in the event loop."""
        for watcher in self.watchers():
            if watcher.client is client:
                watcher.failed(reason)

    def cached(self, block_hash: Hash32) -> BlockRef | None:
        """Return the block with a hash if it was seen before.

        May be called by any thread.
        """
        return self._refs.get(block_hash)

    async def ref(self, block_hash: Hash32) -> BlockRef:
        """Return the block with a hash. Raises: BlockUnavailable."""
        known = self._refs.get(block_hash)
        if known is not None:
            return known

        async def ask(watcher: Watcher) -> BlockRef | None:
            async with watcher.measured(1, FETCH_SECONDS):
                return await watcher.source.reference(block_hash)

        found = await self._from_any(ask, f"block 0x{block_hash.hex()}", 0)
        self._keep(found)
        return found

    async def refs_by_number(self, numbers: Sequence[int]) -> list[BlockRef | None]:
        """Return the blocks with these numbers on the chain of one upstream.

        After a reorganisation, one may not be the parent of the next. None stands for a
        block that the upstream does not have.

        Raises: BlockUnavailable.
        """

        async def ask(watcher: Watcher) -> list[BlockRef | None]:
            async with watcher.measured(len(numbers)):
                return await watcher.source.at_each(numbers)

        found = await self._from_any(ask, f"block {numbers[-1]}", numbers[-1])
        for ref in found:
            if ref is not None:
                self._keep(ref)
        return found

    async def agreed_at(self, number: int) -> BlockRef | None:
        """Return the block with a number on which enough upstreams agree, or None."""
        usable = [each for each in self._ordered(number) if each.is_usable]
        if self._agree == 1:
            usable = usable[:1]
        answers = await asyncio.gather(
            *(watcher.point(number, FETCH_SECONDS) for watcher in usable),
            return_exceptions=True,
        )
        found: dict[BlockRef, int] = {}
        for answer in answers:
            if isinstance(answer, BlockRef):
                found[answer] = found.get(answer, 0) + 1
        agreed = [ref for ref, count in found.items() if count >= self._agree]
        for ref in agreed:
            self._keep(ref)
        return agreed[0] if agreed else None

    async def block(self, ref: BlockRef) -> Fetched:
        """Return a block. Raises: BlockUnavailable, UnsupportedBlock."""

        async def ask(watcher: Watcher) -> Fetched | None:
            started = time.monotonic()
            async with watcher.measured(1, FETCH_SECONDS):
                raw = await watcher.source.block(ref.hash, ref.number)
            if raw is None:
                return None
            elapsed = time.monotonic() - started
            return Fetched(ref, raw, watcher.upstream.id, elapsed)

        what = f"block {ref.number} (0x{ref.hash.hex()})"
        return await self._from_any(ask, what, ref.number)

    async def _from_any(
        self,
        ask: Callable[[Watcher], Awaitable[Answer | None]],
        what: str,
        number: int,
    ) -> Answer:
        """Ask one upstream after another, the best one first, and return the first result.

        ask: returns None if the upstream does not have the block yet.
        what: names the block in the error.
        number: the block's number. Upstreams with a lower head are asked last.

        Raises: BlockUnavailable, UnsupportedBlock.
        """
        reason = "no upstream is available"
        deadline = time.monotonic() + ALL_SECONDS
        for attempt in range(ROUNDS):
            unsupported = None
            for watcher in self._ordered(number):
                if time.monotonic() > deadline:
                    break
                try:
                    found = await ask(watcher)
                except UnsupportedBlock as error:
                    unsupported = (
                        error  # another upstream may return it in another form
                    )
                except UpstreamError as error:
                    reason = str(error)
                    watcher.failed(reason)
                except _ERRORS as error:
                    reason = str(error) or "timeout"
                else:
                    if found is not None:
                        return found
                    reason = "no upstream has it"
            if unsupported is not None:
                raise unsupported
            if time.monotonic() > deadline:
                break
            await asyncio.sleep(FIRST_PAUSE_SECONDS * 2**attempt)
        raise BlockUnavailable(f"{what}: {reason}")

    def _ordered(self, number: int) -> list[Watcher]:
        """Return the upstreams to ask for a block, the best one first."""
        heads = [view.head.number for view in self.views() if view.is_current]
        highest = max(heads, default=0)

        def rank(watcher: Watcher) -> tuple[bool, bool, float]:
            head = watcher.view.head.number if watcher.view else 0
            return (
                watcher.upstream.id not in self._preferred,
                head < number,
                watcher.health.score(highest - head),
            )

        return sorted(filter(lambda each: each.is_usable, self.watchers()), key=rank)

    def _keep(self, ref: BlockRef) -> None:
        self._refs[ref.hash] = ref
        while len(self._refs) > REFS_KEPT:
            del self._refs[next(iter(self._refs))]

    # Whether one upstream has the blocks that others report

    def _after_look(self) -> None:
        for watcher in self.watchers():
            if watcher.head is not None:
                self._keep(watcher.head)
        self._polled()
        wanted = questions(self.views(), self._agree)
        if wanted and self._asking is None:
            self._asking = asyncio.create_task(self._ask(wanted))
            self._asking.add_done_callback(self._asked)

    async def _ask(self, wanted: set[tuple[int, int]]) -> None:
        """Add the answers to `questions` to the views."""

        async def ask(key: int, number: int) -> None:
            found = self._watchers.get(key)
            if found is None:
                return
            watcher = found[0]
            before = watcher.head
            with suppress(*_ERRORS):
                ref = await watcher.point(number)
                # A new head may belong to another branch.
                if ref is not None and watcher.view and watcher.head == before:
                    watcher.view = watcher.view.with_block(Point(number, ref.hash))

        await asyncio.gather(*(ask(*each) for each in sorted(wanted)[-MAX_QUESTIONS:]))

    def _asked(self, task: asyncio.Task[None]) -> None:
        self._asking = None
        if not task.cancelled() and task.exception() is None:
            self._polled()
