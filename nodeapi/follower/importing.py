"""The import of the blocks between our chain and a chosen head."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from enum import Enum
from itertools import dropwhile
from typing import TYPE_CHECKING, Any, TypeVar

from eth_typing import Hash32

from evm.chain_config import UnsupportedFork
from evm.errors import InvalidBlock
from evm.rlp import RlpError
from nodeapi.chain.errors import UnknownParent
from nodeapi.chain.forkchoice import Forkchoice
from nodeapi.follower.choice import Choice, Own, Point
from nodeapi.follower.line import (
    MAX_LINE,
    SEGMENT_BLOCKS,
    Download,
    Step,
    ancestry,
    line_to,
)
from nodeapi.follower.pool import BlockUnavailable, UpstreamPool
from nodeapi.follower.status import StatusWriter, Timing
from nodeapi.follower.stored import own_forkchoice
from nodeapi.proofs.values import NoProof
from nodeapi.upstreams.errors import UnsupportedBlock

if TYPE_CHECKING:
    import threading

    import psycopg

    from nodeapi.chain.importers import FollowingImporter
    from nodeapi.follower.thread import LoopThread
    from nodeapi.upstreams.source import BlockRef

logger = logging.getLogger(__name__)

REFUSED_SECONDS = 30.0
"""Time after which the import of a rejected block is retried, unless the block is
invalid."""

REFUSED_KEPT = 4096

Result = TypeVar("Result")


class Fault(Enum):
    """The kinds of failures of a block's import."""

    INVALID = "invalid"
    """The block breaks a rule, so that the upstreams that have it are at fault."""
    MISSING = "missing"
    """No upstream sends the block, or not in time."""
    EXCLUDED = "excluded"
    """The block is on a chain that can't be followed: it branches off below the finalized block,
    has an unsupported format, or is too far away."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """The block at which the import of a line ends, and the reason as text.

    senders: ids of the upstreams that have sent the block just now, if it is invalid.
    """

    block: Point
    reason: str
    fault: Fault
    senders: frozenset[int] = frozenset()


class Refusals:
    """Blocks that are not imported again: invalid ones never, others not for 30 s."""

    def __init__(self) -> None:
        self._found: dict[Hash32, tuple[Obstacle, float]] = {}
        """Hash → obstacle, and its end in seconds of the monotonic clock."""

    def add(self, obstacle: Obstacle) -> Obstacle:
        """Reject the obstacle's block from now on, and return the obstacle."""
        is_invalid = obstacle.fault is Fault.INVALID
        end = float("inf") if is_invalid else time.monotonic() + REFUSED_SECONDS
        self._found[obstacle.block.hash] = replace(obstacle, senders=frozenset()), end
        while len(self._found) > REFUSED_KEPT:
            del self._found[next(iter(self._found))]
        return obstacle

    def among(self, line: Iterable[BlockRef | Point]) -> Obstacle | None:
        """Return the obstacle of the first refused block of a line."""
        now = time.monotonic()
        for ref in line:
            found = self._found.get(ref.hash)
            if found is not None and now < found[1]:
                return found[0]
        return None

    def invalid(self) -> set[Hash32]:
        """Return the hashes of the invalid blocks."""
        return {
            block_hash
            for block_hash, (obstacle, _) in self._found.items()
            if obstacle.fault is Fault.INVALID
        }

    def release(self, block_hash: Hash32) -> None:
        """Allow the import of a block again."""
        del self._found[block_hash]


class OwnChain:
    """Our canonical chain and its forkchoice, which only this process moves."""

    def __init__(
        self,
        importer: FollowingImporter,
        connection: psycopg.Connection[Any],
        network_id: int,
        pool: UpstreamPool,
        status: StatusWriter,
    ) -> None:
        """Read the stored forkchoice. connection: the one that holds the import lock."""
        self.importer = importer
        self._connection = connection
        self._network_id = network_id
        self._pool = pool
        self._status = status
        self.own = self._read()

    def move(self, head: Point, safe: Point | None, finalized: Point | None) -> None:
        """Make a stored block the head.

        Raises: BelowFinalized, ForkchoiceMismatch; NoProof on a sparse network.
        """
        started = time.perf_counter()
        move = self.importer.follow(
            Forkchoice(head.hash, safe and safe.hash, finalized and finalized.hash)
        )
        if move.depth:
            logger.warning(
                "network %s: %s blocks were reverted, %s added; the head is %s",
                self._network_id,
                move.depth,
                move.added,
                head.number,
            )
        self._status.committed(time.perf_counter() - started)
        self.own = Own(head, safe, finalized)
        self._pool.set_own_number(head.number)

    def synchronise(self) -> None:
        """Commit the imported blocks of a line that ended before its last block."""
        self.importer.commit()
        self.own = self._read()

    def _read(self) -> Own:
        own = own_forkchoice(self._connection, self._network_id)
        self._pool.set_own_number(own.head.number)
        return own


class LineImport:
    """Imports lines of blocks. A line ends at its head, or at an obstacle.

    Expected failures are returned as an `Obstacle`. The errors of the database and of the
    importer itself are raised.
    """

    def __init__(
        self,
        chain: OwnChain,
        thread: LoopThread,
        pool: UpstreamPool,
        status: StatusWriter,
        refusals: Refusals,
        between: Callable[[], None],
    ) -> None:
        """Set the parts that the import uses.

        between: called between two blocks, and every 0.25 s while none arrives.
        """
        self._chain = chain
        self._importer = chain.importer
        self._thread = thread
        self._pool = pool
        self._status = status
        self._refusals = refusals
        self._between = between

    def import_to(
        self, choice: Choice, stop: threading.Event, seconds: float | None
    ) -> Obstacle | None:
        """Import the blocks up to the chosen head, every 128th of which becomes the head.

        Return None if the line is complete, or if it ended early because the chain was
        reorganised or the follower has to stop.

        seconds: time limit for each block, and for the first one with its ancestors back
            to a stored block.

        Raises: Stopped.
        """
        target = choice.head
        if self._importer.is_known(target.hash):
            return None
        self._pool.prefer(choice.supporters)
        refused = self._refusals.among(self._cached_line(target))
        if refused is not None:
            return refused
        deadline = None if seconds is None else time.monotonic() + seconds
        try:
            segment = self._first_segment(target, stop, deadline)
        except BlockUnavailable as error:
            return Obstacle(target, str(error), Fault.MISSING)
        except TimeoutError:
            return _late(target)
        if isinstance(segment, Obstacle):
            return segment
        return self._import_line(segment, choice, stop, seconds, deadline)

    def _cached_line(self, target: Point) -> Iterator[BlockRef]:
        """Yield the target and its ancestors as far as they are cached."""
        lowest = self._chain.own.head.number - SEGMENT_BLOCKS
        ref = self._pool.cached(target.hash)
        while ref is not None and ref.number > lowest:
            yield ref
            ref = self._pool.cached(ref.parent_hash)

    def _first_segment(
        self, target: Point, stop: threading.Event, deadline: float | None
    ) -> list[BlockRef] | Obstacle:
        """Return the unknown blocks up to the target, or up to 128 blocks above our head.

        The parent of the first block is stored.

        Raises: BlockUnavailable; TimeoutError after the deadline; Stopped.
        """

        def wait_for(work: Awaitable[Result]) -> Result:
            left = None if deadline is None else max(deadline - time.monotonic(), 0)
            return self._thread.run(_within(work, left), stop)

        head, own = self._importer.head.header, self._chain.own
        end = target
        if target.number > head.number + SEGMENT_BLOCKS:
            number = head.number + SEGMENT_BLOCKS
            agreed = wait_for(self._pool.agreed_at(number))
            if agreed is None:
                return Obstacle(
                    target,
                    f"too few upstreams have block {number}, an ancestor of the head "
                    f"{_text(target)}",
                    Fault.MISSING,
                )
            end = Point(agreed.number, agreed.hash)
        count = max(end.number - head.number, 1)
        line = wait_for(ancestry(self._pool, end, count))
        lowest = own.finalized.number if own.finalized else 0
        refused = self._refusals.among(line)
        while refused is None and not self._importer.is_known(line[0].parent_hash):
            oldest = line[0]
            if oldest.number <= lowest + 1:
                return self._below_finalized(target, lowest)
            if len(line) > MAX_LINE:
                return self._exclude(
                    target,
                    f"the upstreams' head {_text(target)} is on a branch that begins "
                    f"below block {oldest.number}, but the follower goes back by at most "
                    f"{MAX_LINE} blocks",
                )
            parent = Point(oldest.number - 1, oldest.parent_hash)
            more = min(len(line), SEGMENT_BLOCKS, parent.number - lowest)
            older = wait_for(ancestry(self._pool, parent, more))
            refused = self._refusals.among(older)
            line = older + line
        if refused is not None:
            return refused
        if line[0].number <= lowest:
            return self._below_finalized(target, lowest)
        return list(dropwhile(lambda ref: self._importer.is_known(ref.hash), line))

    def _import_line(
        self,
        segment: list[BlockRef],
        choice: Choice,
        stop: threading.Event,
        seconds: float | None,
        deadline: float | None,
    ) -> Obstacle | None:
        """Import the blocks of a line, which begins with a segment.

        seconds, deadline: the time limits of each block, and of the first one.
        """
        target = choice.head
        line = line_to(self._pool, segment, target)
        is_short = target.number - segment[0].number < SEGMENT_BLOCKS
        with closing(Download(self._thread, line, self._pool.block)) as download:
            try:
                for step in download:
                    self._between()
                    if stop.is_set():
                        return None
                    if step is None:
                        if deadline is not None and time.monotonic() > deadline:
                            return _late(target)
                        continue
                    obstacle = self._add(step, choice, is_timed=is_short)
                    if obstacle is not None:
                        return obstacle
                    ref = step.block.ref
                    if step.is_agreed and ref.hash != target.hash:
                        tag = self._chain.own.finalized
                        self._chain.move(Point(ref.number, ref.hash), tag, tag)
                    if seconds is not None:
                        deadline = time.monotonic() + seconds
            except (BlockUnavailable, NoProof) as error:
                return Obstacle(target, str(error), Fault.MISSING)
            except UnsupportedBlock as error:
                return self._unsupported(target, str(error))
        return None

    def _add(self, step: Step, choice: Choice, *, is_timed: bool) -> Obstacle | None:
        """Import a block of the line, which becomes canonical with the next move."""
        fetched = step.block
        ref = fetched.ref
        refused = self._refusals.among([ref])
        if refused is not None:
            return refused
        point = Point(ref.number, ref.hash)
        started = time.perf_counter()
        try:
            block = self._importer.add(fetched.raw, step.following)
        except UnknownParent:
            # The line is linked by verified hashes. Therefore this is an internal error.
            raise
        except InvalidBlock as error:
            self._status.quarantined(point, fetched.upstream_id, error.summary)
            senders = choice.supporters | {fetched.upstream_id}
            return self._refusals.add(
                Obstacle(point, error.summary, Fault.INVALID, senders)
            )
        except (RlpError, UnsupportedFork) as error:
            return self._unsupported(point, str(error))
        except NoProof as error:
            return Obstacle(point, str(error), Fault.MISSING)
        if is_timed and block is not None:
            executed = time.perf_counter() - started
            self._status.imported(
                Timing(
                    ref.number,
                    fetched.seconds,
                    executed,
                    len(block.transactions),
                    block.header.gas_used,
                )
            )
        return None

    def _below_finalized(self, target: Point, finalized: int) -> Obstacle:
        return self._exclude(
            target,
            f"the upstreams' head {_text(target)} does not descend from the finalized "
            f"block {finalized}",
        )

    def _unsupported(self, block: Point, reason: str) -> Obstacle:
        return self._exclude(
            block, f"the chain up to block {block.number} is not supported: {reason}"
        )

    def _exclude(self, block: Point, reason: str) -> Obstacle:
        return self._refusals.add(Obstacle(block, reason, Fault.EXCLUDED))


async def _within(work: Awaitable[Result], seconds: float | None) -> Result:
    async with asyncio.timeout(seconds):
        return await work


def _late(head: Point) -> Obstacle:
    reason = f"the ancestors of the head {_text(head)} were not sent in time"
    return Obstacle(head, reason, Fault.MISSING)


def _text(block: Point) -> str:
    return f"{block.number} (0x{block.hash.hex()})"
