"""The follower's loop: choose a forkchoice, import its line of blocks, make it canonical."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import dropwhile
from typing import TYPE_CHECKING, Any

from eth_typing import Hash32

from evm.chain_config import UnsupportedFork
from evm.errors import InvalidBlock
from evm.rlp import RlpError
from networks.services import show_prepared
from nodeapi.chain.errors import UnknownParent
from nodeapi.chain.forkchoice import BelowFinalized, Forkchoice, ForkchoiceMismatch
from nodeapi.follower.choice import Choice, Own, Point, choose, reached
from nodeapi.follower.line import (
    MAX_LINE,
    SEGMENT_BLOCKS,
    Download,
    Step,
    ancestry,
    line_to,
)
from nodeapi.follower.pool import BlockUnavailable, UpstreamPool
from nodeapi.follower.status import Situation, StatusWriter, Timing
from nodeapi.follower.stored import Settings, own_forkchoice, read_settings
from nodeapi.follower.thread import IDLE_SECONDS, Stopped
from nodeapi.upstreams.errors import UnsupportedBlock

if TYPE_CHECKING:
    import psycopg

    from nodeapi.chain.importer import Importer
    from nodeapi.follower.thread import LoopThread
    from nodeapi.upstreams.source import BlockRef

logger = logging.getLogger(__name__)

HOUSEKEEPING_SECONDS = 1.0
"""Interval at which settings are read again and the connection is tested."""

REFUSED_SECONDS = 30.0
"""Time after which the import of a rejected block is retried, unless the block is
invalid."""

REFUSED_KEPT = 4096

PATIENCE_SECONDS = 10.0
"""Time after which a missing block or a disagreement of the upstreams is reported."""


class Refused(Exception):
    """Raised for a line with a block that can't be imported or made canonical.

    blame: whether the block is invalid, so that its upstreams are at fault.
    """

    def __init__(self, block: Point, reason: str, *, blame: bool) -> None:
        super().__init__(reason)
        self.block = block
        self.reason = reason
        self.blame = blame


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A refused block. until: time of the next attempt, in seconds of the monotonic clock."""

    reason: str
    blame: bool
    until: float


class Follower:
    """Keeps one network at the head of its upstreams, as long as the database responds.

    Runs in one thread, which owns the importer. The pool runs in the event loop of
    another thread.
    """

    def __init__(
        self,
        importer: Importer,
        connection: psycopg.Connection[Any],
        network_id: int,
        thread: LoopThread,
        pool: UpstreamPool,
        polled: threading.Event,
        status: StatusWriter,
    ) -> None:
        """Start from the importer's head.

        connection: the one that holds the import lock.
        polled: set by the pool after each poll of an upstream.
        """
        self._importer = importer
        self._connection = connection
        self._network_id = network_id
        self._thread = thread
        self._pool = pool
        self._polled = polled
        self._status = status
        self._settings = Settings()
        self._own = own_forkchoice(connection, network_id)
        self._pool.set_own_number(self._own.head.number)
        self._starting_number: int | None = None
        self._refused: dict[Hash32, _Refusal] = {}
        self._problem = ""
        self._disagreeing_since: float | None = None
        self._kept_house_at = 0.0
        self._deleted_at = 0.0
        self._has_started = False
        """Whether a chosen head was followed without a problem."""
        self._missing_since: float | None = None
        """Since when a block of the chosen line could not be fetched."""

    def run(self, stop: threading.Event) -> None:
        """Follow until `stop` is set.

        Raises: psycopg.Error and Django's database errors, after which a new importer is
            needed; HeadMoved if another process has imported.
        """
        while not stop.is_set():
            self._keep_house()
            with suppress(Stopped):
                self._step(stop)
            self._polled.wait(IDLE_SECONDS)
            self._polled.clear()

    # One step

    def _step(self, stop: threading.Event) -> None:
        """Choose a forkchoice from the present views, and follow it."""
        views = self._pool.views()
        choice = choose(views, self._own, self._settings.agree)
        before = self._own
        if choice is not None:
            if (choice.head, choice.safe, choice.finalized) != self._own_state():
                self._problem = self._attempt(choice, stop)
            else:
                self._problem = ""
            if not self._problem and not self._has_started:
                self._has_started = True
                show_prepared(self._network_id)
            if self._own.head == choice.head:
                self._delete_side_blocks()
        self._note_disagreement(choice)
        self._report(is_new_head=self._own.head != before.head)

    def _own_state(self) -> tuple[Point, Point | None, Point | None]:
        return self._own.head, self._own.safe, self._own.finalized

    def _attempt(self, choice: Choice, stop: threading.Event) -> str:
        """Follow a choice as far as possible. Return the problem, or ""."""
        try:
            if not self._importer.is_known(choice.head.hash) and not self._import_line(
                choice, stop
            ):
                self._synchronise()
                return ""
            self._raise_if_refused([choice.head])
            self._follow_tags(choice)
        except Refused as error:
            self._synchronise()
            if not error.blame:
                return error.reason
            self._quarantine(choice.supporters, error.block, error.reason)
        except BelowFinalized as error:
            self._synchronise()
            self._refuse(choice.head, str(error), blame=False)
            return str(error)
        except BlockUnavailable as error:
            self._synchronise()
            now = time.monotonic()
            self._missing_since = self._missing_since or now
            if now > self._missing_since + PATIENCE_SECONDS:
                return str(error)
        else:
            self._missing_since = None
        return ""

    def _synchronise(self) -> None:
        """Commit the imported blocks of a line that ended before its last block."""
        self._importer.commit()
        self._own = own_forkchoice(self._connection, self._network_id)
        self._pool.set_own_number(self._own.head.number)

    def _follow_tags(self, choice: Choice) -> None:
        """Make the chosen head canonical.

        Its safe and finalized blocks are stored if they are on the head's chain.
        """
        try:
            self._follow(choice.head, choice.safe, choice.finalized)
        except ForkchoiceMismatch as error:
            # Our own safe block may be on the branch that is left. Then no upstream has
            # reported anything false.
            if (choice.safe, choice.finalized) != (self._own.safe, self._own.finalized):
                self._thread.run(self._pool.blame(choice.supporters, str(error)))
            if choice.head != self._own.head:
                self._follow(choice.head, self._own.finalized, self._own.finalized)

    def _follow(self, head: Point, safe: Point | None, finalized: Point | None) -> None:
        """Make a stored block the head.

        Raises: BelowFinalized, ForkchoiceMismatch.
        """
        started = time.perf_counter()
        move = self._importer.follow(
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
        self._own = Own(head, safe, finalized)
        self._pool.set_own_number(head.number)

    # The line of blocks

    def _import_line(self, choice: Choice, stop: threading.Event) -> bool:
        """Import the blocks up to the chosen head.

        Return False if the line ended before the chosen head, because the chain was
        reorganised or the follower has to stop.

        Raises: Refused, BlockUnavailable, BelowFinalized, Stopped.
        """
        target = choice.head
        self._pool.prefer(choice.supporters)
        self._raise_if_cached_line_is_refused(target)
        first_segment = self._first_segment(target, stop)
        if not first_segment:
            return False
        line = line_to(self._pool, first_segment, target)
        is_short = target.number - first_segment[0].number < SEGMENT_BLOCKS
        reached_target = False
        with closing(Download(self._thread, line, self._pool.block)) as download:
            try:
                for step in download:
                    self._keep_house()
                    self._report()
                    if stop.is_set():
                        return False
                    if step is None:
                        continue
                    self._add(step, choice, is_timed=is_short)
                    ref = step.block.ref
                    reached_target = ref.hash == target.hash
                    if step.is_agreed and not reached_target:
                        tag = self._own.finalized
                        self._follow(Point(ref.number, ref.hash), tag, tag)
            except UnsupportedBlock as error:
                raise self._unsupported(target, str(error)) from error
        return reached_target

    def _first_segment(self, target: Point, stop: threading.Event) -> list[BlockRef]:
        """Return the unknown blocks up to the target, or up to 128 blocks above our head.

        The parent of the first block is stored. The list is empty if the upstreams don't
        agree on the last block.

        Raises: Refused, BlockUnavailable, BelowFinalized, Stopped.
        """
        head = self._importer.head.header
        end = target
        if target.number > head.number + SEGMENT_BLOCKS:
            agreed = self._thread.run(
                self._pool.agreed_at(head.number + SEGMENT_BLOCKS), stop
            )
            if agreed is None:
                return []
            end = Point(agreed.number, agreed.hash)
        count = max(end.number - head.number, 1)
        line = self._thread.run(ancestry(self._pool, end, count), stop)
        lowest = self._own.finalized.number if self._own.finalized else 0
        self._raise_if_refused(line)
        while not self._importer.is_known(line[0].parent_hash):
            oldest = line[0]
            if oldest.number <= lowest + 1:
                raise self._below_finalized(target, lowest)
            if len(line) > MAX_LINE:
                raise self._left_out(
                    target,
                    f"the upstreams' head {target.number} (0x{target.hash.hex()}) is on a "
                    f"branch that begins below block {oldest.number}, but the follower "
                    f"goes back by at most {MAX_LINE} blocks",
                )
            parent = Point(oldest.number - 1, oldest.parent_hash)
            more = min(len(line), SEGMENT_BLOCKS, parent.number - lowest)
            older = self._thread.run(ancestry(self._pool, parent, more), stop)
            self._raise_if_refused(older)
            line = older + line
        if line[0].number <= lowest:
            raise self._below_finalized(target, lowest)
        return list(dropwhile(lambda ref: self._importer.is_known(ref.hash), line))

    def _add(self, step: Step, choice: Choice, *, is_timed: bool) -> None:
        """Import a block of the line. It becomes canonical with the next `_follow`.

        Raises: Refused.
        """
        fetched = step.block
        ref = fetched.ref
        self._raise_if_refused([ref])
        started = time.perf_counter()
        try:
            block = self._importer.add(fetched.raw, step.following)
        except UnknownParent:
            # The line is linked by verified hashes, so that this is an error of ours.
            raise
        except InvalidBlock as error:
            point = Point(ref.number, ref.hash)
            self._refuse(point, error.summary, blame=True)
            self._status.quarantined(point, fetched.upstream_id, error.summary)
            self._quarantine(
                choice.supporters | {fetched.upstream_id}, point, error.summary
            )
            raise Refused(point, error.summary, blame=True) from error
        except (RlpError, UnsupportedFork) as error:
            raise self._unsupported(Point(ref.number, ref.hash), str(error)) from error
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

    # Blocks that are not followed

    def _raise_if_refused(self, line: Iterable[BlockRef | Point]) -> None:
        """Raise Refused if the line contains a block that was refused before."""
        now = time.monotonic()
        for ref in line:
            found = self._refused.get(ref.hash)
            if found is not None and now < found.until:
                point = Point(ref.number, ref.hash)
                raise Refused(point, found.reason, blame=found.blame)

    def _raise_if_cached_line_is_refused(self, target: Point) -> None:
        """Raise Refused if the target is or descends from a refused block.

        Only cached references are followed, without requests to upstreams.
        """
        ref = self._pool.cached(target.hash)
        while ref is not None and ref.number > self._own.head.number - SEGMENT_BLOCKS:
            self._raise_if_refused([ref])
            ref = self._pool.cached(ref.parent_hash)

    def _refuse(self, block: Point, reason: str, *, blame: bool) -> None:
        until = float("inf") if blame else time.monotonic() + REFUSED_SECONDS
        self._refused[block.hash] = _Refusal(reason, blame, until)
        while len(self._refused) > REFUSED_KEPT:
            del self._refused[next(iter(self._refused))]

    def _quarantine(
        self, upstream_ids: Iterable[int], block: Point, reason: str
    ) -> None:
        text = f"block {block.number} (0x{block.hash.hex()}) is invalid: {reason}"
        logger.error("network %s: %s", self._network_id, text)
        self._thread.run(self._pool.quarantine(set(upstream_ids), block, text))

    def _below_finalized(self, target: Point, finalized: int) -> Refused:
        return self._left_out(
            target,
            f"the upstreams' head {target.number} (0x{target.hash.hex()}) does not "
            f"descend from the finalized block {finalized}",
        )

    def _unsupported(self, block: Point, reason: str) -> Refused:
        return self._left_out(
            block, f"the chain up to block {block.number} is not supported: {reason}"
        )

    def _left_out(self, block: Point, reason: str) -> Refused:
        """Refuse a block for which no upstream is to blame, and return the error."""
        self._refuse(block, reason, blame=False)
        return Refused(block, reason, blame=False)

    # Status, settings, and periodic tasks

    def _note_disagreement(self, choice: Choice | None) -> None:
        """Note when the upstreams got ahead of our head without agreeing on a block."""
        ahead = reached(self._pool.views(), self._settings.agree)
        if choice is not None or ahead is None or ahead.number <= self._own.head.number:
            self._disagreeing_since = None
        elif self._disagreeing_since is None:
            self._disagreeing_since = time.monotonic()

    def _alarm(self) -> str:
        """Return the problem that staff have to solve, or an empty text."""
        if self._problem:
            return self._problem
        watchers = self._pool.watchers()
        if not watchers:
            return "no upstream is enabled"
        if any(watcher.checked_at is None for watcher in watchers):
            return ""  # they have just been started
        usable = sum(watcher.is_usable for watcher in watchers)
        agree = self._settings.agree
        if usable == 0:
            return "no upstream is usable"
        if usable < agree:
            verb = "is" if usable == 1 else "are"
            return f"{agree} upstreams have to agree, but only {usable} {verb} usable"
        since = self._disagreeing_since
        if since is not None and time.monotonic() > since + PATIENCE_SECONDS:
            return "the upstreams do not agree on a head"
        return ""

    def _report(self, *, is_new_head: bool = False) -> None:
        """Write the status, at most once a second unless there is a new head."""
        if not is_new_head and not self._status.is_due:
            return
        best = reached(self._pool.views(), self._settings.agree)
        number = self._importer.head.header.number
        if best is None or best.number <= number:
            self._starting_number = None
        elif self._starting_number is None:
            self._starting_number = number
        self._status.write(
            Situation(best, self._starting_number, self._alarm()), self._pool.watchers()
        )

    def _keep_house(self) -> None:
        """Read the settings again, and test the connection that holds the lock."""
        now = time.monotonic()
        if now < self._kept_house_at + HOUSEKEEPING_SECONDS:
            return
        self._kept_house_at = now
        # The import lock is held exactly as long as this connection is open.
        self._connection.execute("SELECT 1")
        settings = read_settings(self._network_id)
        if settings != self._settings:
            self._settings = settings
            self._thread.run(self._pool.configure(settings.upstreams, settings.agree))
        self._release_blocks()
        self._status.prune()

    def _release_blocks(self) -> None:
        """Allow the import of blocks that staff have released from quarantine."""
        refused = {
            block_hash for block_hash, found in self._refused.items() if found.blame
        }
        for block_hash in refused - self._status.still_quarantined(refused):
            del self._refused[block_hash]
            self._thread.run(self._pool.release(block_hash))
            logger.info(
                "network %s: block 0x%s was released",
                self._network_id,
                block_hash.hex(),
            )

    def _delete_side_blocks(self) -> None:
        """Delete old side blocks. Not while a part of a line is imported: it is a branch."""
        keep, now = self._settings.keep_side_blocks, time.monotonic()
        if keep is not None and now >= self._deleted_at + HOUSEKEEPING_SECONDS:
            self._deleted_at = now
            self._importer.delete_side_blocks(keep)
