"""Follows one network until it is stopped, and reconnects after database failures."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
from django.conf import settings
from django.db import Error as DjangoDatabaseError
from django.db import connection as django_connection

from networks.models import Network
from nodeapi.chain.database import (
    LOCK_POLL_SECONDS,
    ImportRunning,
    import_lock,
    importer_connection,
    pipeline,
)
from nodeapi.chain.importers import (
    BULK_BATCH_BLOCKS,
    FollowingImporter,
    spare_garbage_collector,
)
from nodeapi.chain.networks import stored_config
from nodeapi.chain.rows import HeadMoved
from nodeapi.follower.follower import Follower
from nodeapi.follower.history import BackgroundHistory, store_checkpoint
from nodeapi.follower.pool import UpstreamPool
from nodeapi.follower.proving import FollowerProver
from nodeapi.follower.status import StatusWriter
from nodeapi.follower.stored import is_sparse, read_expected
from nodeapi.follower.thread import LoopThread
from postgres.outages import AVAILABLE

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0
"""Pauses between attempts to reach the database: each is twice as long as the one before.
"""


def run_follower(network_id: int, stop: threading.Event) -> None:
    """Follow a network until `stop` is set, or until the network is deleted.

    If another process imports into the network, wait until it ends. If the database
    fails, continue when it is available again.
    """
    status = StatusWriter(network_id)
    pause, has_failed = FIRST_PAUSE_SECONDS, False

    def connected() -> None:
        nonlocal pause, has_failed
        pause = FIRST_PAUSE_SECONDS
        if has_failed:
            has_failed = False
            logger.warning("network %s is followed again", network_id, extra=AVAILABLE)

    while not stop.is_set():
        try:
            _follow(network_id, stop, status, connected)
        except Network.DoesNotExist:
            logger.info("network %s does not exist any more", network_id)
            return
        except (psycopg.Error, DjangoDatabaseError, HeadMoved) as error:
            logger.warning("network %s: the database failed: %s", network_id, error)
            has_failed = True
            stop.wait(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        finally:
            django_connection.close()


def _follow(
    network_id: int,
    stop: threading.Event,
    status: StatusWriter,
    connected: Callable[[], None],
) -> None:
    """Follow a network while the database is available.

    connected: called when the import begins.
    """
    with ExitStack() as stack:
        connection = stack.enter_context(importer_connection())
        if not stack.enter_context(_lock(connection, network_id, stop)):
            return
        if not store_checkpoint(connection, network_id, status, stop):
            return
        polled = threading.Event()
        thread = stack.enter_context(LoopThread("upstreams"))
        pool = UpstreamPool(read_expected(network_id), polled.set)
        stack.callback(lambda: thread.run(pool.close()))
        sparse = is_sparse(network_id)
        if sparse:
            prover = FollowerProver(connection, network_id, thread, pool, stop)
            options: dict[str, Any] = {"prover": prover}
        else:
            options = {
                "batch_blocks": BULK_BATCH_BLOCKS,
                "writer": stack.enter_context(importer_connection()),
                "pipeline": stack.enter_context(pipeline()),
            }
        importer = FollowingImporter(
            connection,
            network_id,
            stored_config(network_id),
            record_limit_bytes=settings.NODEAPI_RECORD_LIMIT_BYTES,
            **options,
        )
        stack.enter_context(closing(importer))
        spare_garbage_collector()
        connected()
        follower = Follower(
            importer, connection, network_id, thread, pool, polled, status
        )
        if sparse:
            stack.enter_context(BackgroundHistory(network_id, follower.idle))
        follower.run(stop)


@contextmanager
def _lock(
    connection: psycopg.Connection[Any], network_id: int, stop: threading.Event
) -> Iterator[bool]:
    """Wait for the import lock and hold it. Yield False if `stop` is set before."""
    is_waiting = False
    while not stop.is_set():
        with ExitStack() as stack:
            try:
                stack.enter_context(import_lock(connection, network_id))
            except ImportRunning:
                if not is_waiting:
                    is_waiting = True
                    logger.info("network %s: another import is running", network_id)
                stop.wait(LOCK_POLL_SECONDS)
                continue
            yield True
            return
    yield False
