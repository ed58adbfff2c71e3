"""Appending entries to streams, in the transaction of the change."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from channels.layers import get_channel_layer
from django.db import connection, transaction

from outbox.publisher import Publisher

logger = logging.getLogger(__name__)

publisher = Publisher(get_channel_layer)
"""The publisher of this process."""

_APPEND = "SELECT outbox_append(%s, %s)"
_LAST_NUMBERS = "SELECT name, last_number FROM outbox_stream WHERE name = ANY(%s)"


class _Appended(threading.local):
    """The streams to which a thread has appended since its last commit.

    Streams of transactions that were rolled back remain in it until the next commit. A
    message about them is without effect, because subscribers know the number already.
    """

    def __init__(self) -> None:
        self.streams: set[str] = set()


_appended = _Appended()


def append(stream: str, subject: str = "") -> None:
    """Append an entry in the current transaction of Django's connection.

    Several entries with the same subject in one transaction become one. After the commit
    the subscribers of all processes are notified.
    """
    with connection.cursor() as cursor:
        cursor.execute(_APPEND, [stream, subject])
    _appended.streams.add(stream)
    transaction.on_commit(_publish_appended, robust=True)


def _publish_appended() -> None:
    """Publish all committed entries. Each entry schedules a call; the first does the work."""
    streams, _appended.streams = _appended.streams, set()
    if streams:
        with connection.cursor() as cursor:
            cursor.execute(_LAST_NUMBERS, [list(streams)])
            publisher.publish(dict(cursor.fetchall()))


class Transaction:
    """Appends entries in a transaction of a psycopg connection."""

    def __init__(self, opened: psycopg.Connection[Any]) -> None:
        self._connection = opened
        self.streams: set[str] = set()
        """The streams that have new entries."""

    def append(self, stream: str, subject: str = "") -> None:
        """Append an entry; see `append` of this module."""
        self._connection.execute(_APPEND, (stream, subject))
        self.streams.add(stream)


@contextmanager
def begin(opened: psycopg.Connection[Any]) -> Iterator[Transaction]:
    """Run a transaction on a psycopg connection that is in no transaction yet.

    The entries that were appended in it are published after the commit. An error at that
    time is logged, because an exception would mean that nothing was committed.
    """
    changes = Transaction(opened)
    with opened.transaction():
        yield changes
    try:
        _publish_committed(opened, changes.streams)
    except psycopg.Error as error:
        logger.warning("other processes have to poll for changes: %s", error)


def _publish_committed(
    opened: psycopg.Connection[Any], streams: Collection[str]
) -> None:
    """Publish the newest numbers of streams after a commit."""
    if streams:
        rows = opened.execute(_LAST_NUMBERS, (list(streams),), binary=False)
        publisher.publish(dict(rows.fetchall()))
