"""Polls one upstream's head, and keeps the upstream's view, health and quarantine."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from eth_typing import Hash32

from evm.chain_config import ChainConfig, UnscheduledFork, UnsupportedFork
from networks.directory import UpstreamView
from nodeapi.follower.choice import Point, View, polled_view
from nodeapi.follower.health import Health, Pace
from nodeapi.forks.check import ForkCheck, InvalidForkConfig, check_forks, date
from nodeapi.upstreams.chain import fork_config
from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.errors import (
    LaterFork,
    MethodUnavailable,
    UpstreamError,
    UpstreamUnavailable,
    WrongBlock,
)
from nodeapi.upstreams.source import BlockRef, BlockSource

logger = logging.getLogger(__name__)

CHECK_SECONDS = 60.0
"""Interval at which the chain of an upstream is verified again."""

FORKS_SECONDS = 2.0
"""Time limit for reading an upstream's fork schedule. The upstream is used even if this
fails."""

EXCLUDED_SECONDS = 5.0
"""Interval at which an upstream with another chain is asked again."""

FORK_STOP_SECONDS = 150.0
"""Interval at which an upstream is polled whose newest block is of an unsupported fork."""

FIRST_QUARANTINE_SECONDS = 2.0
"""Shortest quarantine of an upstream. Each further one is twice as long."""

LONGEST_QUARANTINE_SECONDS = 600.0

TEXT_LIMIT = 200
"""Characters kept of a text that an upstream has sent."""


class WrongChain(Exception):
    """Raised if an upstream has another chain id or genesis than the network."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A network's chain id, genesis hash and fork schedule."""

    config: ChainConfig
    genesis_hash: Hash32

    @property
    def chain_id(self) -> int:
        """The EIP-155 chain id."""
        return self.config.chain_id


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The reason and the end of the time for which an upstream is ignored.

    block: the invalid block on the upstream's chain. None if no block was found invalid.
    until: earliest end, in seconds of the monotonic clock. The quarantine ends later if
        the block is still on the upstream's chain.
    """

    block: Point | None
    reason: str
    until: float


class Watcher:
    """Polls an upstream at regular intervals, and when a notification arrives.

    A poll asks for `latest`, `safe` and `finalized`. Everything but `quarantine` runs in
    one event loop. Other threads may read the attributes, which are replaced as a whole.
    """

    def __init__(
        self,
        upstream: UpstreamView,
        expected: Expected,
        own_number: Callable[[], int],
        polled: Callable[[], None],
    ) -> None:
        """Start without a view.

        own_number: returns the number of our head.
        polled: called after each poll, whether it succeeded or not.
        """
        self.upstream = upstream
        self.view: View | None = None
        """The last view. It is not current after a failure."""
        self.viewed_at = 0.0
        """When `view` was last current, in seconds of the monotonic clock."""
        self.head: BlockRef | None = None
        """The head of the last successful poll."""
        self.health = Health()
        self.excluded = ""
        """Reason for never requesting blocks from the upstream; empty if there is none."""
        self.quarantined: Quarantine | None = None
        self.fork_stop: ForkStop | None = None
        """Set while the newest block is of an unsupported fork. `head` is then the last
        block before the fork."""
        self.client_version = ""
        self.forks = ForkCheck()
        """The differences between the upstream's fork schedule and ours."""
        self.checked_at: float | None = None
        """Unix time of the end of the last poll. None: none has ended."""
        self.failed_at: float | None = None
        """Unix time of the last failure."""
        self.client = UpstreamClient(upstream.url, upstream.headers)
        self.source = BlockSource(self.client)
        self._expected = expected
        self._own_number = own_number
        self._polled = polled
        self._pace = Pace()
        self._wake = asyncio.Event()
        self._is_notified = False
        """Whether the last new head was announced by a notification."""
        self._quarantines = 0
        self._verified_at: float | None = None

    @property
    def trouble(self) -> str:
        """The reason for which the upstream is ignored, or an empty text."""
        quarantined = self.quarantined
        return self.excluded or ("" if quarantined is None else quarantined.reason)

    @property
    def is_usable(self) -> bool:
        """Whether the upstream's view is considered, and blocks are requested from it."""
        return (
            not self.excluded
            and self.quarantined is None
            and self.view is not None
            and self.view.is_current
        )

    async def run(self) -> None:
        """Poll the upstream until cancelled."""
        subscription = asyncio.create_task(self._subscribe())
        try:
            while True:
                was_woken, before = self._wake.is_set(), self.head
                self._wake.clear()
                pause = await self._poll()
                self.checked_at = time.time()
                if self.head != before:
                    self._is_notified = was_woken or self._wake.is_set()
                self._polled()
                if self.fork_stop is not None:  # notifications are of no use
                    await asyncio.sleep(pause)
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._wake.wait()
        finally:
            subscription.cancel()
            await asyncio.gather(subscription, return_exceptions=True)
            await self.client.close()

    @asynccontextmanager
    async def measured(
        self, requests: int = 1, seconds: float | None = None
    ) -> AsyncIterator[None]:
        """Count the requests that the `with` block makes, and measure their time.

        UpstreamError does not count as a failure, because the upstream has responded.

        seconds: time limit in addition to the client's. Raises: TimeoutError.
        """
        started = time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                yield
        except UpstreamUnavailable as error:
            self.failed(error.reason, is_unreachable=error.is_unreachable)
            raise
        except WrongBlock as error:
            self.failed(error.reason)
            raise
        except TimeoutError:
            self.failed("timeout")
            raise
        except UpstreamError:
            self.health = self.health.succeeded(time.monotonic() - started, requests)
            raise
        self.health = self.health.succeeded(time.monotonic() - started, requests)

    def failed(self, reason: str, *, is_unreachable: bool = False) -> None:
        """Count a failure.

        reason: a text without secrets. is_unreachable: see `Health.failed`.
        """
        self.health = self.health.failed(
            time.monotonic(),
            reason[:TEXT_LIMIT],
            random.random(),
            is_unreachable=is_unreachable,
        )
        self.failed_at = time.time()

    def quarantine(self, block: Point | None, reason: str) -> None:
        """Ignore the upstream for a while, and as long as `block` is on its chain."""
        pause = FIRST_QUARANTINE_SECONDS * 2 ** min(self._quarantines, 20)
        self._quarantines += 1
        self.quarantined = Quarantine(
            block, reason, time.monotonic() + min(pause, LONGEST_QUARANTINE_SECONDS)
        )

    def release(self, block_hash: Hash32) -> None:
        """End the quarantine if this block is its reason."""
        quarantined = self.quarantined
        if quarantined is None or quarantined.block is None:
            return
        if quarantined.block.hash == block_hash:
            self.quarantined = None

    async def point(self, number: int, seconds: float | None = None) -> BlockRef | None:
        """Return the block with a number on the upstream's chain, or None.

        seconds: see `measured`.

        Raises: UpstreamUnavailable, UpstreamError, WrongBlock, TimeoutError.
        """
        async with self.measured(1, seconds):
            return await self.source.at(number)

    # A poll

    async def _poll(self) -> float:
        """Poll the upstream. Return the seconds until the next poll."""
        try:
            if self.fork_stop is None or self._verified_at is None:
                await self._verify_chain()
            await self._read_heads()
            await self._review_quarantine()
        except WrongChain as error:
            self.excluded, self.view = str(error), None
            self.failed(self.excluded)
            return EXCLUDED_SECONDS
        except UpstreamUnavailable as error:
            return self._became_unavailable(error.retry_after or 0.0)
        except UpstreamError as error:
            self.failed(str(error))
            return self._became_unavailable(0.0)
        except (WrongBlock, TimeoutError):
            return self._became_unavailable(0.0)
        except Exception as error:
            # An internal error must not stop the polls.
            logger.exception("polling upstream %s failed", self.upstream.id)
            self.failed(type(error).__name__)
            return self._became_unavailable(0.0)
        self.excluded = ""
        if self.fork_stop is not None:
            return FORK_STOP_SECONDS
        return self._pace.seconds(is_notified=self._is_notified)

    def _became_unavailable(self, retry_after: float) -> float:
        """Mark the view as not current. Return the seconds until the next poll."""
        self._verified_at = None
        if self.view is not None and self.view.is_current:
            self.view, self.viewed_at = self.view.outdated(), time.monotonic()
        pause = self.health.backing_off_until - time.monotonic()
        return max(pause, retry_after, 0.0)

    async def _verify_chain(self) -> None:
        """Check chain id and genesis hash before the first poll and after each failure.

        Raises: WrongChain.
        """
        now = time.monotonic()
        if self._verified_at is not None and now < self._verified_at + CHECK_SECONDS:
            return
        async with self.measured(2):
            chain_id, genesis = await asyncio.gather(
                self.client.call("eth_chainId"), self.source.at(0)
            )
        expected = self._expected
        if chain_id != hex(expected.chain_id):
            shown = str(chain_id)[:TEXT_LIMIT]
            raise WrongChain(f"chain id {shown} instead of {hex(expected.chain_id)}")
        if genesis is None or genesis.hash != expected.genesis_hash:
            shown = "none" if genesis is None else f"0x{genesis.hash.hex()}"
            raise WrongChain(
                f"genesis {shown} instead of 0x{expected.genesis_hash.hex()}"
            )
        with suppress(UpstreamError):
            version = await self.client.call("web3_clientVersion")
            self.client_version = str(version)[:TEXT_LIMIT]
        await self._check_forks(genesis.timestamp)
        self._verified_at = now

    async def _check_forks(self, genesis_time: int) -> None:
        """Compare the upstream's fork schedule with ours, and log new differences.

        An upstream without eth_config, or with a malformed result, is used nevertheless.
        """
        try:
            async with asyncio.timeout(FORKS_SECONDS):
                answer = await fork_config(self.client)
            found = check_forks(answer, self._expected.config, genesis_time)
        except (UpstreamUnavailable, UpstreamError, InvalidForkConfig, TimeoutError):
            return
        if found == self.forks:
            return
        self.forks = found
        for text in found.sentences:
            logger.warning("upstream %s: %s", self.upstream.id, text)

    async def _read_heads(self) -> None:
        if self.fork_stop is not None:
            async with self.measured():
                head, safe, finalized = await self._newest(), None, None
        else:
            async with self.measured(3):
                head, safe, finalized = await asyncio.gather(
                    self._newest(), self._tagged("safe"), self._tagged("finalized")
                )
        if isinstance(head, LaterFork):
            await self._stop_before_fork(head)
            return
        self.fork_stop = None
        self.head = head
        self._pace.head(head.number, head.timestamp)
        self.view = polled_view(
            self.view,
            self.upstream.id,
            head,
            _point(safe),
            _point(finalized),
            self._own_number(),
        )
        for name, tagged in (("safe", safe), ("finalized", finalized)):
            point = _point(tagged)
            if point and point.number <= head.number and not self.view.has(point):
                self.failed(f"the {name} block is not on the chain of the head")

    async def _newest(self) -> BlockRef | LaterFork:
        """Return the upstream's head. A LaterFork is returned, because it is no failure."""
        try:
            head = await self.source.head("latest")
        except LaterFork as error:
            return error
        if head is None:
            raise UpstreamUnavailable("no latest block")
        return later_fork(head, self._expected.config) or head

    async def _tagged(self, tag: str) -> BlockRef | None:
        """Return the upstream's safe or finalized block, or None if it has none."""
        try:
            return await self.source.head(tag)
        except (UpstreamError, LaterFork):
            return None  # the node or gateway does not support the tag

    # Forks that are not supported

    async def _stop_before_fork(self, newest: LaterFork) -> None:
        """Take the last block before an unsupported fork as the upstream's head."""
        config, point = self._expected.config, Point(newest.number, Hash32(newest.hash))
        stop = self.fork_stop
        if stop is None or await self._before_fork(stop.last.number) != stop.last:
            last, first = await search_fork(self._before_fork, newest)
            text = str(unsupported_fork(first, config, self.forks))
            logger.warning("upstream %s: %s", self.upstream.id, text)
            stop = ForkStop(last, point, text)
        view = polled_view(
            self.view, self.upstream.id, stop.last, None, None, self._own_number()
        )
        self.head, self.fork_stop = stop.last, replace(stop, newest=point)
        self.view = replace(view, newest=point)

    async def _before_fork(self, number: int) -> BlockRef | LaterFork:
        """Return the block with a number, or a LaterFork if it is of the fork."""
        async with self.measured():
            try:
                found = await self.source.at(number)
            except LaterFork as error:
                return error
            if found is None:
                raise UpstreamUnavailable(f"no block {number}")
            return later_fork(found, self._expected.config) or found

    async def _review_quarantine(self) -> None:
        """End the quarantine after its time, unless the invalid block is still there."""
        quarantined = self.quarantined
        if quarantined is None or time.monotonic() < quarantined.until:
            return
        block = quarantined.block
        if block is not None:
            found = await self.point(block.number)
            if found is not None and found.hash == block.hash:
                return
        self.quarantined = None

    # Notifications

    async def _subscribe(self) -> None:
        """Keep a subscription to new heads if the upstream offers subscriptions."""
        with suppress(MethodUnavailable):
            await self.client.subscribe_heads(self._notified)

    def _notified(self, _: object) -> None:
        self._wake.set()


def _point(block: BlockRef | None) -> Point | None:
    return None if block is None else Point(block.number, block.hash)


BlockAt = Callable[[int], Awaitable[BlockRef | LaterFork]]
"""Returns the upstream's block with a number, or a LaterFork if it is of the fork."""

MEMBERS_LIMIT = 200
"""Characters of the names of unknown header members in a text."""


@dataclass(frozen=True, slots=True)
class ForkStop:
    """The unsupported fork that an upstream's chain has reached.

    last: the last block before the fork. newest: the upstream's newest block, whose hash
        may not be verified.
    text: names the first block of the fork, and the fork.
    """

    last: BlockRef
    newest: Point
    text: str


def later_fork(block: BlockRef, config: ChainConfig) -> LaterFork | None:
    """Return a LaterFork if a block is of an unsupported or unscheduled fork."""
    place = block.number, block.timestamp
    is_unknown = any(fork.is_active(*place) for fork in config.unknown_forks)
    if is_unknown or (block.is_of_amsterdam and not config.schedules_amsterdam):
        return LaterFork(*place, block.hash, ())
    return None


async def search_fork(
    block_at: BlockAt, newest: LaterFork
) -> tuple[BlockRef, LaterFork]:
    """Return the last block before a fork, and the first one of the fork.

    newest: a block of the fork. Block 0 has to be before the fork, and all blocks from the
        first one of the fork on have to be of the fork.

    Raises: the errors of `block_at`; LaterFork if block 0 is of the fork.
    """
    last, first = await block_at(0), newest
    if isinstance(last, LaterFork):
        raise last
    while last.number + 1 < first.number:
        found = await block_at((last.number + first.number) // 2)
        if isinstance(found, LaterFork):
            first = found
        else:
            last = found
    return last, first


def unsupported_fork(
    first: LaterFork, config: ChainConfig, forks: ForkCheck
) -> UnsupportedFork:
    """Return the error that names or describes a fork.

    first: the first block of the fork. forks: the upstream's schedule.
    """
    block, scheduled = f"block {first.number}", forks.unsupported
    for fork in config.unknown_forks:
        if fork.is_active(first.number, first.timestamp):
            return UnsupportedFork(fork.name, block)
    if not first.members:
        return UnscheduledFork(first.number)
    if scheduled is not None and scheduled.time <= first.timestamp:
        name = scheduled.name or f"the fork at {date(scheduled.time)}"
        return UnsupportedFork(name, block)
    members = ", ".join(first.members)[:MEMBERS_LIMIT]
    return UnsupportedFork(f"a fork with the members {members}", block)
