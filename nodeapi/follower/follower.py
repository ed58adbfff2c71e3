"""The follower's loop: choose a forkchoice, import its line of blocks, make it canonical."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from evm import kzg
from networks.services import finish_preparing
from nodeapi.chain.forkchoice import BelowFinalized, ForkchoiceMismatch
from nodeapi.follower.choice import Choice, View, choose, reached
from nodeapi.follower.importing import (
    Fault,
    LineImport,
    Obstacle,
    OwnChain,
    Refusals,
)
from nodeapi.follower.pool import UpstreamPool
from nodeapi.follower.status import Situation, StatusWriter
from nodeapi.follower.stored import Settings, read_settings
from nodeapi.follower.thread import IDLE_SECONDS, Stopped
from nodeapi.proofs.values import NoProof

if TYPE_CHECKING:
    import psycopg

    from nodeapi.chain.importers import FollowingImporter
    from nodeapi.follower.thread import LoopThread

logger = logging.getLogger(__name__)

HOUSEKEEPING_SECONDS = 1.0
"""Interval at which settings are read again and the connection is tested."""

PATIENCE_SECONDS = 10.0
"""Time after which a missing block or a disagreement of the upstreams is reported."""

PREPARED_BLOCKS = 2
"""A network is prepared when at most this number of blocks are missing."""

SETTLED_SECONDS = 5.0
"""Time at the head after which what only rare blocks need is loaded."""

SEARCH_SECONDS = 6.0
"""Time in which upstreams have to show the ancestors of their head, if the other upstreams
have a chain to follow."""


class Follower:
    """Keeps one network at the head of its upstreams, as long as the database responds.

    Runs in one thread, which owns the importer. The pool runs in the event loop of
    another thread.
    """

    def __init__(
        self,
        importer: FollowingImporter,
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
        self._chain = OwnChain(importer, connection, network_id, pool, status)
        self._refusals = Refusals()
        self._line = LineImport(
            self._chain, thread, pool, status, self._refusals, self._between_blocks
        )
        self.idle = threading.Event()
        """Set while there is no block to import."""
        self._starting_number: int | None = None
        self._problem = ""
        self._disagreeing_since: float | None = None
        self._kept_house_at = 0.0
        self._deleted_at = 0.0
        self._is_prepared = False
        self._is_settled = False
        self._at_head_since: float | None = None
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
        choice = choose(views, self._chain.own, self._settings.agree)
        before = self._chain.own.head
        if choice is not None:
            if before != choice.head:
                self.idle.clear()
            self._problem = self._follow(choice, views, stop)
            if self._chain.own.head == choice.head:
                self.idle.set()
                self._delete_side_blocks()
                self._settle()
        self._finish_preparing()
        self._note_disagreement(choice)
        self._report(is_new_head=self._chain.own.head != before)

    def _follow(self, choice: Choice, views: list[View], stop: threading.Event) -> str:
        """Follow a choice as far as possible. Return the problem, or ""."""
        own = self._chain.own
        if (choice.head, choice.safe, choice.finalized) == (
            *(own.head, own.safe, own.finalized),
        ):
            return ""
        others = [view for view in views if view.upstream_id not in choice.supporters]
        has_other = choose(others, own, self._settings.agree) is not None
        obstacle = self._line.import_to(
            choice, stop, SEARCH_SECONDS if has_other else None
        )
        if obstacle is None and self._importer.is_known(choice.head.hash):
            obstacle = self._make_canonical(choice)
        if self._chain.own.head != choice.head:
            self._chain.synchronise()
        if obstacle is None:
            self._missing_since = None
            return ""
        return self._problem_of(obstacle, choice, has_other=has_other)

    def _make_canonical(self, choice: Choice) -> Obstacle | None:
        """Make the chosen head, which is stored, canonical.

        Its safe and finalized blocks are stored if they are on the head's chain.
        """
        refused = self._refusals.among([choice.head])
        if refused is not None:
            return refused
        own = self._chain.own
        try:
            try:
                self._chain.move(choice.head, choice.safe, choice.finalized)
            except ForkchoiceMismatch as error:
                # Our own safe block may be on the branch that is left. Then no upstream
                # has reported anything false.
                if (choice.safe, choice.finalized) != (own.safe, own.finalized):
                    self._thread.run(self._pool.blame(choice.supporters, str(error)))
                if choice.head != own.head:
                    self._chain.move(choice.head, own.finalized, own.finalized)
        except BelowFinalized as error:
            return self._refusals.add(Obstacle(choice.head, str(error), Fault.EXCLUDED))
        except NoProof as error:
            return Obstacle(choice.head, str(error), Fault.MISSING)
        return None

    def _problem_of(
        self, obstacle: Obstacle, choice: Choice, *, has_other: bool
    ) -> str:
        """Ignore the upstreams at fault for a while. Return the problem for staff, or "".

        has_other: whether the other upstreams have a chain to follow.
        """
        block = obstacle.block
        if obstacle.fault is Fault.INVALID:
            text = f"block {block.number} (0x{block.hash.hex()}) is invalid: "
            text += obstacle.reason
            logger.error("network %s: %s", self._network_id, text)
            senders = choice.supporters | obstacle.senders
            self._thread.run(self._pool.quarantine(senders, block, text))
            return ""
        if has_other:
            logger.warning("network %s: %s", self._network_id, obstacle.reason)
            self._thread.run(self._pool.suspend(choice.supporters, obstacle.reason))
        if obstacle.fault is Fault.EXCLUDED:
            return obstacle.reason
        now = time.monotonic()
        self._missing_since = self._missing_since or now
        is_reported = now > self._missing_since + PATIENCE_SECONDS and not has_other
        return obstacle.reason if is_reported else ""

    def _settle(self) -> None:
        """Load the setup of KZG while there is no block to import.

        Otherwise the first block that evaluates a point would wait for it, up to 2 s.
        """
        now = time.monotonic()
        if self._at_head_since is None:
            self._at_head_since = now
        elif not self._is_settled and now >= self._at_head_since + SETTLED_SECONDS:
            self._is_settled = True
            kzg.prepare()

    def _between_blocks(self) -> None:
        self._keep_house()
        self._report()

    def _finish_preparing(self) -> None:
        """End the network's first import when the head is close to the upstreams'."""
        best = reached(self._pool.views(), self._settings.agree)
        if self._is_prepared or best is None:
            return
        if best.number <= self._chain.own.head.number + PREPARED_BLOCKS:
            self._is_prepared = True
            finish_preparing(self._network_id)

    # Status, settings, and periodic tasks

    def _note_disagreement(self, choice: Choice | None) -> None:
        """Note when the upstreams got ahead of our head without agreeing on a block."""
        ahead = reached(self._pool.views(), self._settings.agree)
        if (
            choice is not None
            or ahead is None
            or ahead.number <= self._chain.own.head.number
        ):
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
            return ""  # the watchers have just been started
        usable = sum(watcher.is_usable for watcher in watchers)
        agree = self._settings.agree
        head = self._chain.own.head
        stops = [w.fork_stop for w in watchers if w.is_usable and w.fork_stop]
        if (
            usable - len(stops)
            < agree
            <= len([stop for stop in stops if stop.last.number <= head.number])
        ):
            return f"the chain can't be followed any further: {stops[0].text}"
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
        invalid = self._refusals.invalid()
        for block_hash in invalid - self._status.still_quarantined(invalid):
            self._refusals.release(block_hash)
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
