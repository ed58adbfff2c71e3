"""Entries get their numbers at the commit: without gaps, in the order of the commits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.core.exceptions import ValidationError
from django.db import connection, transaction

from nodeapi.node import database_conninfo
from outbox import append as module
from outbox.append import append, begin, publisher
from outbox.models import Entry, Stream
from outbox.streams import ACCESS, blocks
from tests.support.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def other() -> Iterator[psycopg.Connection[Any]]:
    """Another connection to the test database."""
    with psycopg.connect(database_conninfo(), autocommit=True) as opened:
        yield opened


def entries(stream: str) -> list[tuple[int, str]]:
    found = Entry.objects.filter(stream=stream).order_by("number")
    return list(found.values_list("number", "subject"))


def pending(opened: psycopg.Connection[Any]) -> int:
    row = opened.execute("SELECT count(*) FROM outbox_pending").fetchone()
    assert row is not None
    return int(row[0])


def test_entries_of_a_transaction_are_numbered_in_their_order(other) -> None:
    with transaction.atomic():
        for subject in ("a", "b", "a", "c"):
            append("s", subject)
        append("t", "a")
        assert entries("s") == []
        assert Stream.objects.count() == 0
    append("s", "a")
    assert entries("s") == [(1, "a"), (2, "b"), (3, "c"), (4, "a")]
    assert entries("t") == [(1, "a")]
    assert Stream.objects.get(name="s").last_number == 4
    assert pending(other) == 0


def test_entries_of_what_is_rolled_back_are_gone(other) -> None:
    append("s", "first")
    with pytest.raises(ValidationError), transaction.atomic():
        append("s", "lost")
        raise ValidationError("no")
    with transaction.atomic():
        append("s", "kept")
        with pytest.raises(ValidationError), transaction.atomic():
            append("s", "lost")
            append("s", "kept")
            raise ValidationError("no")
    assert entries("s") == [(1, "first"), (2, "kept")]
    assert pending(other) == 0


def test_numbers_are_in_the_order_of_the_commits(other) -> None:
    """The order in which the transactions appended entries does not matter."""
    with other.transaction():
        other.execute("SELECT outbox_append('s', 'began first')")
        append("s", "ended first")
        assert entries("s") == [(1, "ended first")]
    assert entries("s") == [(1, "ended first"), (2, "began first")]


def test_constraints_that_are_checked_early_number_early(other) -> None:
    """Django does this at the end of a test, and in `loaddata`."""
    with transaction.atomic():
        append("s", "a")
        connection.check_constraints()
        append("s", "a")
    assert entries("s") == [(1, "a"), (2, "a")]
    assert pending(other) == 0


def test_many_commits_at_once_leave_no_gap_and_no_deadlock() -> None:
    """Each transaction appends to all streams, in a different order."""
    names = [f"s{number}" for number in range(5)]
    failures: list[Exception] = []

    def commit(shift: int) -> None:
        try:
            with psycopg.connect(database_conninfo(), autocommit=True) as opened:
                for _ in range(20):
                    with begin(opened) as changes:
                        for number in range(5):
                            name = names[(number + shift) % 5]
                            changes.append(name, f"by {shift}")
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=commit, args=(shift,)) for shift in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert failures == []
    for name in names:
        assert [number for number, _ in entries(name)] == list(range(1, 161))


def test_no_foreign_key_waits_while_a_stream_is_locked(other) -> None:
    """Deferred checks, which may wait, are made before the numbers are assigned."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE parent (id int PRIMARY KEY)")
        cursor.execute(
            "CREATE TABLE child (id int REFERENCES parent DEFERRABLE INITIALLY DEFERRED)"
        )
        cursor.execute("INSERT INTO parent VALUES (1)")
    try:
        waiting = threading.Thread(target=_insert_child)
        with other.transaction():
            other.execute("SELECT FROM parent FOR UPDATE")
            waiting.start()
            wait_until(lambda: _blocks_another(other))
            append("s", "concurrent")  # hangs if the stream is locked
            assert entries("s") == [(1, "concurrent")]
        waiting.join(PATIENCE_SECONDS)
        assert entries("s") == [(1, "concurrent"), (2, "child")]
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE child, parent")


def _insert_child() -> None:
    with (
        psycopg.connect(database_conninfo(), autocommit=True) as opened,
        begin(opened) as changes,
    ):
        changes.append("s", "child")  # its trigger runs first at the commit
        opened.execute("INSERT INTO child VALUES (1)")


def _blocks_another(opened: psycopg.Connection[Any]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))",
            [opened.info.backend_pid],
        )
        return cursor.rowcount == 1


def test_another_origin_begins_another_epoch() -> None:
    """This happens after the promotion of a standby, and in a restored copy."""
    append("s", "a")
    before = Stream.objects.get()
    append("s", "b")
    assert Stream.objects.get().epoch == before.epoch
    Stream.objects.update(origin="1.00000001")
    append("s", "c")
    after = Stream.objects.get()
    assert after.epoch != before.epoch
    assert (after.last_number, after.origin) == (3, before.origin)


def test_commit_publishes_the_newest_number_of_each_stream(monkeypatch, other) -> None:
    published: list[dict[str, int]] = []
    monkeypatch.setattr(publisher, "publish", published.append)
    with transaction.atomic():
        append(ACCESS, "key:1")
        append(ACCESS, "key:2")
        append(blocks(7))
        assert published == []
    assert published == [{ACCESS: 2, "blocks.7": 1}]
    with pytest.raises(ValidationError), transaction.atomic():
        append(ACCESS, "key:1")
        raise ValidationError("no")
    assert len(published) == 1
    with begin(other) as changes:
        changes.append(blocks(7))
        assert len(published) == 1
    assert published[1:] == [{"blocks.7": 2}]
    with pytest.raises(ValueError, match="no"), begin(other) as changes:
        changes.append(blocks(7))
        raise ValueError("no")
    assert len(published) == 2


def test_connection_lost_after_the_commit_is_no_failure(
    monkeypatch, caplog, other
) -> None:
    """Otherwise, the caller would repeat a transaction that is committed."""
    lose = "SELECT pg_terminate_backend(pg_backend_pid()), %s::text[]"
    monkeypatch.setattr(module, "_LAST_NUMBERS", lose)
    with begin(other) as changes:
        changes.append("s", "a")
    assert other.broken
    assert entries("s") == [(1, "a")]
    assert "terminating connection" in caplog.text
