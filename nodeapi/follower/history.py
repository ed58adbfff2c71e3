"""The blocks up to a checkpoint, fetched from upstreams: at the start, and in the background.

Before a network is followed, the checkpoint and its 255 ancestors are stored. The blocks
below them are stored while it is followed, by another thread of the same process, or by
`manage.py backfill`. A process that is stopped continues where it was.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import psycopg
from django.db import Error as DjangoDatabaseError
from django.db import connection as django_connection

from networks.directory import UpstreamView
from networks.models import Network
from nodeapi.chain.database import importer_connection
from nodeapi.chain.networks import stored_config
from nodeapi.chain.proved_blocks import ProvedBlocks, history_lock
from nodeapi.follower.choice import Point
from nodeapi.follower.status import Situation
from nodeapi.follower.stored import read_settings
from nodeapi.follower.thread import LoopThread, Stopped
from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.proved_blocks import BlocksUnavailable, proved_blocks
from nodeapi.upstreams.source import BlockSource

if TYPE_CHECKING:
    from types import TracebackType

    from nodeapi.follower.status import StatusWriter

logger = logging.getLogger(__name__)

BLOCKS_AT_ONCE = 16
"""Number of blocks that are fetched concurrently and stored in one transaction."""

BACKGROUND_BLOCKS = 2
"""The same in the background, where storing them must not delay a new block for long."""

BACKGROUND_SHARE = 0.25
"""Share of the time that the background takes, at most."""

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 60.0
"""Pauses after failures: each is twice as long as the one before."""

LOCKED_SECONDS = 5.0
"""Pause while another process stores the history."""

ATTEMPTS = 5
"""Number of failures in succession after which `store_history` gives up."""


class HistoryRunning(Exception):
    """Raised when another process stores the history of the same network."""


class HistoryImport:
    """Fetches and stores the blocks below the oldest stored one, in one thread."""

    def __init__(
        self, connection: psycopg.Connection[Any], network_id: int, loop: LoopThread
    ) -> None:
        """Read the checkpoint. Raises: LookupError for a network without one."""
        self.blocks = ProvedBlocks(connection, network_id, stored_config(network_id))
        self._network_id = network_id
        self._loop = loop
        self._upstreams: Sequence[UpstreamView] = ()
        self._sources: list[BlockSource] = []

    def missing(self, first: int) -> int:
        """Return the number of blocks from number `first` on that are not stored."""
        return max(self.blocks.gap().newest.number - max(first, 1) + 1, 0)

    def step(
        self, first: int, stop: threading.Event, most: int = BLOCKS_AT_ONCE
    ) -> int:
        """Store the next blocks, down to number `first`. Return how many are missing then.

        most: maximum number of blocks.

        Raises: BlocksUnavailable; Stopped; psycopg.Error and Django's database errors.
        """
        count = min(self.missing(first), most)
        if count:
            self._configure()
            work = proved_blocks(self._sources, self.blocks.gap().newest, count)
            self.blocks.store(self._loop.run(work, stop))
        return self.missing(first)

    def close(self) -> None:
        """Close the connections to upstreams."""
        for source in self._sources:
            self._loop.run(source.client.close())
        self._sources = []

    def _configure(self) -> None:
        """Read the upstreams again. They have connections of their own.

        So the blocks of the history don't wait in the same queue as new ones.
        """
        upstreams = read_settings(self._network_id).upstreams
        if upstreams != self._upstreams:
            self.close()
            self._upstreams = upstreams
            self._sources = [
                BlockSource(UpstreamClient(each.url, each.headers))
                for each in upstreams
            ]


class Pause:
    """The pause after failures, which grows with each failure in succession."""

    def __init__(self) -> None:
        self._seconds = FIRST_PAUSE_SECONDS

    def reset(self) -> None:
        """Begin with the shortest pause again."""
        self._seconds = FIRST_PAUSE_SECONDS

    def wait(self, stop: threading.Event) -> None:
        """Wait, or until `stop` is set."""
        stop.wait(self._seconds)
        self._seconds = min(2 * self._seconds, LONGEST_PAUSE_SECONDS)


def store_checkpoint(
    connection: psycopg.Connection[Any],
    network_id: int,
    status: StatusWriter,
    stop: threading.Event,
) -> bool:
    """Store the checkpoint with its ancestors and make it the head, if that is missing.

    connection: the one that holds the import lock.

    Return False if `stop` was set before. Failures of upstreams are reported as the
    follower's alarm. Raises: psycopg.Error and Django's database errors.
    """
    if Network.objects.get(pk=network_id).checkpoint_number is None:
        return True
    with LoopThread("checkpoint") as loop:
        history, pause = HistoryImport(connection, network_id, loop), Pause()
        blocks = history.blocks
        if blocks.is_started:
            return True
        best = Point(*blocks.checkpoint)
        first, alarm = blocks.first_needed, ""
        while not stop.is_set():
            status.write(Situation(best, 0, alarm), ())
            try:
                left = history.step(first, stop)
            except Stopped:
                break
            except BlocksUnavailable as error:
                alarm = f"the checkpoint can't be stored: {error}"
                logger.warning("network %s: %s", network_id, alarm)
                pause.wait(stop)
                continue
            alarm = ""
            pause.reset()
            logger.info(
                "network %s: the checkpoint, block %s, needs %s more blocks",
                *(network_id, best.number, left),
            )
            if not left:
                blocks.start()
                history.close()
                return True
        history.close()
    return False


class BackgroundHistory:
    """A thread that stores the history of a network while a `with` block follows it."""

    def __init__(self, network_id: int, idle: threading.Event) -> None:
        """Set the network. idle: set while the follower has nothing to import."""
        self._network_id = network_id
        self._idle = idle
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)

    def __enter__(self) -> BackgroundHistory:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        pause, stop = Pause(), self._stop
        while not stop.is_set():
            try:
                if self._is_complete(pause):
                    return
            except (Stopped, Network.DoesNotExist):
                return
            except BlocksUnavailable as error:
                logger.warning("network %s: history: %s", self._network_id, error)
                pause.wait(stop)
            except (psycopg.Error, DjangoDatabaseError) as error:
                logger.warning("network %s: history: %s", self._network_id, error)
                pause.wait(stop)
            except Exception:
                logger.exception("network %s: the history failed", self._network_id)
                pause.wait(stop)
            finally:
                django_connection.close()

    def _is_complete(self, pause: Pause) -> bool:
        """Store all blocks, unless another process is doing so. Return whether all are."""
        with ExitStack() as stack:
            connection = stack.enter_context(importer_connection())
            if not stack.enter_context(history_lock(connection, self._network_id)):
                self._stop.wait(LOCKED_SECONDS)
                return False
            loop = stack.enter_context(LoopThread("history"))
            history = HistoryImport(connection, self._network_id, loop)
            stack.callback(history.close)
            first = history.blocks.first_wanted
            while history.missing(first):
                self._wait_until_idle()
                started = time.monotonic()
                history.step(first, self._stop, BACKGROUND_BLOCKS)
                pause.reset()
                taken = time.monotonic() - started
                self._stop.wait(taken * (1 / BACKGROUND_SHARE - 1))
        logger.info("network %s: the history is complete", self._network_id)
        return True

    def _wait_until_idle(self) -> None:
        """Raises: Stopped."""
        while not self._idle.wait(0.25):
            if self._stop.is_set():
                raise Stopped
        if self._stop.is_set():
            raise Stopped


Progress = Callable[[int], None]
"""Is called with the number of the oldest stored block."""


def store_history(
    network_id: int,
    first: int,
    stop: threading.Event,
    *,
    blocks_per_second: float,
    progress: Progress,
) -> None:
    """Store the blocks of a network down to number `first`, for a command.

    Raises: HistoryRunning if another process is doing so; BlocksUnavailable after some
        attempts; Stopped; LookupError for a network without a started checkpoint.
    """
    with ExitStack() as stack:
        connection = stack.enter_context(importer_connection())
        if not stack.enter_context(history_lock(connection, network_id)):
            raise HistoryRunning
        loop = stack.enter_context(LoopThread("history"))
        history = HistoryImport(connection, network_id, loop)
        stack.callback(history.close)
        if not history.blocks.is_started:
            raise LookupError("the checkpoint is not stored yet; `follow` stores it")
        pause, failures = Pause(), 0
        while before := history.missing(first):
            started = time.monotonic()
            try:
                after = history.step(first, stop)
            except BlocksUnavailable:
                failures += 1
                if failures == ATTEMPTS:
                    raise
                pause.wait(stop)
                continue
            failures = 0
            pause.reset()
            progress(history.blocks.gap().newest.number + 1)
            due = (before - after) / blocks_per_second
            stop.wait(max(due - (time.monotonic() - started), 0.0))
