"""Keeps the processes of networks running: their followers, and deletions."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from typing import NoReturn

from django.db import Error, connection

from config import services
from networks.models import Network, NetworkDeletion, NetworkState
from postgres.outages import AVAILABLE, outage_in
from server import forking
from server.children import KILL_SECONDS, TURN_SECONDS, Children, Started
from server.children import STOP_SECONDS as FOLLOWER_STOP_SECONDS
from server.forking import Forked

logger = logging.getLogger(__name__)

STOP_SECONDS = FOLLOWER_STOP_SECONDS + KILL_SECONDS + 3
"""Time after SIGTERM within which `manage.py follow` has stopped its followers."""

POLL_SECONDS = 1.0
"""Interval at which the networks with upstreams are read from the database."""


def start_command(title: str, *arguments: str) -> Forked:
    """Fork a process that runs a management command.

    title: the name of the process in `ps`. arguments: name and arguments of the command.

    Raises: OSError.
    """
    return forking.shared.start(
        "manage:main",
        *arguments,
        environ=services.child_environment(),
        title=title,
        # Ctrl-C in a terminal is for this process, which stops its children.
        has_own_group=True,
    )


def start_follower(slug: str) -> Forked:
    """Start the follower of a network, which ends with this process. Raises: OSError."""
    return start_command(f"follow {slug}", "follow", "--one", slug, "--lifeline")


def start_deletion(slug: str) -> Forked:
    """Start the deletion of a network, which ends with this process. Raises: OSError."""
    return start_command(
        f"delete {slug}", "delete_network", slug, "--resume", "--lifeline"
    )


def deleted_networks() -> set[str]:
    """Return the slugs of the networks that are being deleted.

    Raises: django.db.Error.
    """
    unfinished = NetworkDeletion.objects.filter(network__isnull=False)
    return set(unfinished.values_list("slug", flat=True))


def followed_networks() -> set[str]:
    """Return the slugs of the networks that have an enabled upstream and a genesis.

    Retired networks are not followed. Raises: django.db.Error.
    """
    served = Network.objects.exclude(state=NetworkState.RETIRED)
    found = served.filter(upstreams__is_enabled=True, head_hash__isnull=False)
    return set(found.values_list("slug", flat=True))


def keep_followers(
    slugs: Collection[str] = (),
    start: Callable[[str], Started] = start_follower,
) -> NoReturn:
    """Run the followers of networks until this thread is interrupted by an exception.

    slugs: the networks to follow. If empty, all networks with upstreams are followed.
    start: starts the follower of a network.

    A follower is started when its network gets its first enabled upstream, restarted
    when it ends, and stopped when its network has no enabled upstream any more. A
    deletion that was requested runs until it is finished, unless `slugs` are given. While
    the database does not answer, followers that have ended are not restarted; they are
    restarted without a pause when it answers again.
    """
    children = Children("follower", start)
    deletions = Children("deletion", start_deletion)
    networks = _Networks(slugs)
    try:
        while True:
            was_available = networks.is_available
            networks.poll(time.monotonic())
            if networks.is_available:
                if not was_available:
                    children.retry()
                    deletions.retry()
                children.keep(networks.followed)
                deletions.keep(networks.deleted)
            time.sleep(TURN_SECONDS)
    finally:
        deletions.stop()
        children.stop()


class _Networks:
    """The networks to follow, at the last read.

    slugs: the only networks to follow. If empty, all are followed.
    """

    def __init__(self, slugs: Collection[str]) -> None:
        self.followed: set[str] = set()
        self.deleted: set[str] = set()
        self.is_available = False
        """Whether the last read succeeded."""
        self._slugs = set(slugs)
        self._next_poll = 0.0
        self._problem = ""
        self._has_failed = False

    def poll(self, now: float) -> None:
        """Read the networks again if POLL_SECONDS have passed.

        now: monotonic seconds.
        """
        if now < self._next_poll:
            return
        self._next_poll = now + POLL_SECONDS
        try:
            found, deleted = followed_networks(), deleted_networks()
        except Error as error:
            self.is_available = False
            connection.close()  # the next read opens another one
            if outage_in(error) is None:
                self._report(
                    f"the networks can't be read: {str(error).splitlines()[0]}"
                )
            else:
                self._has_failed = True
                logger.warning("the networks can't be read: %s", error)  # `OutageLimit`
            return
        if self._has_failed:
            self._has_failed = False
            logger.warning("the networks can be read again", extra=AVAILABLE)
        self.is_available = True
        self.followed = found & self._slugs if self._slugs else found
        self.deleted = set() if self._slugs else deleted
        idle = ", ".join(sorted(self._slugs - found))
        self._report(
            f"not followed, because unknown, retired or without upstream: {idle}"
            if idle
            else ""
        )

    def _report(self, problem: str) -> None:
        """Log a problem once, until it changes. problem: "" for none."""
        if problem and problem != self._problem:
            logger.warning("%s", problem)
        self._problem = problem
