"""Faults, in one thread for each kind. The seed determines their order and times."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from random import Random
from typing import Any

import psycopg

from tests.outbox.model.cluster import Cluster
from tests.outbox.model.facts import (
    BUSY,
    INSERT,
    STREAMS,
    WITHOUT_MESSAGES,
    Facts,
    follower_name,
)

_PRUNE = """
    WITH gone AS (DELETE FROM outbox_entry RETURNING stream, number, subject)
    INSERT INTO model_gone SELECT *, false FROM gone
"""

_SET_BACK = """
    UPDATE outbox_stream SET last_number = last_number - %(count)s, origin = 'other'
    WHERE name = %(stream)s AND last_number > %(count)s RETURNING last_number
"""

_LOSE = """
    WITH gone AS (
        DELETE FROM outbox_entry WHERE stream = %(stream)s AND number > %(last)s
        RETURNING stream, number, subject
    ),
    noted AS (INSERT INTO model_gone SELECT *, true FROM gone)
    DELETE FROM model_fact WHERE (stream, subject) IN (SELECT stream, subject FROM gone)
"""

_PIDS = "SELECT pid FROM pg_stat_activity WHERE application_name = %s"


class Faults:
    """Faults of a cluster, from the call of `run` until its end."""

    def __init__(self, cluster: Cluster, members: int) -> None:
        self._cluster = cluster
        self._members = members
        self._over = threading.Event()
        self._numbers = count()
        self.counts: dict[str, int] = {}
        self.committed: dict[tuple[str, str], float] = {}

    def run(self, seconds: float) -> None:
        """Cause faults, and return when all of them have been repaired."""
        kinds: list[Callable[[Random], None]] = [
            *(self._member, self._redis, self._postgres),
            *(self._connections, self._data, self._write),
        ]
        with ThreadPoolExecutor(len(kinds)) as pool:
            threads = [pool.submit(self._repeat, kind) for kind in kinds]
            self._over.wait(seconds)
            self._over.set()
            for thread in threads:
                thread.result()

    def _repeat(self, kind: Callable[[Random], None]) -> None:
        random = Random(f"{self._cluster.seed} {kind.__name__}")
        try:
            while not self._over.is_set():
                kind(random)
        except BaseException:
            self._over.set()
            raise

    def _count(self, fault: str) -> None:
        self.counts[fault] = self.counts.get(fault, 0) + 1

    def _is_over_after(self, seconds: float) -> bool:
        return self._over.wait(seconds)

    def _member(self, random: Random) -> None:
        """Kill a member, and start it again."""
        if self._is_over_after(random.uniform(0.2, 1.5)):
            return
        index = random.randrange(self._members)
        self._count("members killed")
        self._cluster.kill_member(index)
        time.sleep(random.uniform(0, 0.5))
        self._cluster.start_member(index)
        self._cluster.wait_for_member(index)

    def _redis(self, random: Random) -> None:
        """Kill Redis, or suspend it."""
        if self._is_over_after(random.uniform(0.2, 2)):
            return
        if random.random() < 0.6:
            self._count("Redis killed")
            self._cluster.kill_redis()
            self._is_over_after(random.uniform(0, 3))
            self._cluster.redis.start()
        else:
            self._count("Redis suspended")
            pid = self._cluster.redis_pid()
            os.kill(pid, signal.SIGSTOP)
            self._is_over_after(random.uniform(0.1, 4))
            os.kill(pid, signal.SIGCONT)

    def _postgres(self, random: Random) -> None:
        """Kill PostgreSQL, or restart it."""
        if self._is_over_after(random.uniform(0.2, 3)):
            return
        with self._cluster.outage():
            if random.random() < 0.5:
                self._count("PostgreSQL killed")
                self._cluster.kill_postgres()
                self._is_over_after(random.uniform(0, 1.5))
            else:
                self._count("PostgreSQL restarted")
                self._cluster.postgres.stop()
            self._cluster.postgres.start()

    def _connections(self, random: Random) -> None:
        """Suspend the processes of PostgreSQL that serve a member's subscriber."""
        if self._is_over_after(random.uniform(0.1, 0.5)):
            return
        member, seconds = random.randrange(self._members), random.uniform(2, 4)
        try:
            with self._cluster.connect() as opened:
                found = opened.execute(_PIDS, (follower_name(member),)).fetchall()
        except psycopg.OperationalError:
            return
        if found:
            self._count("connections suspended")
            pids = [int(row[0]) for row in found]
            with self._cluster.outage(member):
                _signal(pids, signal.SIGSTOP)
                self._is_over_after(seconds)
                _signal(pids, signal.SIGCONT)

    def _data(self, random: Random) -> None:
        """Prune all entries, or lose the last ones as a failover does."""
        if self._is_over_after(random.uniform(0.1, 0.7)):
            return
        if random.random() < 0.2:
            self._count("entries pruned")
            self._cluster.repeat(lambda opened: _run(opened, _PRUNE))
            return
        self._count("entries lost")
        stream, lost = random.choice(STREAMS), random.randrange(1, 4)
        appended = lost + random.choice((0, 0, 1))
        self._commit(partial(self._lose, stream=stream, lost=lost, appended=appended))

    def _write(self, random: Random) -> None:
        """Commit facts without sending messages."""
        if self._is_over_after(random.uniform(0.1, 0.4)):
            return
        self._count("commits in SQL")
        stream = random.choice((*BUSY, *3 * [WITHOUT_MESSAGES]))
        self._commit(partial(self._append, stream=stream))

    def _commit(self, change: Callable[..., None]) -> None:
        """Run a change, and record the time at which its facts were committed."""
        facts: Facts = []
        self._cluster.repeat(lambda opened: change(opened, facts=facts))
        self.committed.update(dict.fromkeys(facts, time.monotonic()))

    def _append(
        self, opened: psycopg.Connection[Any], stream: str, facts: Facts
    ) -> None:
        """Add a fact. Its subject is new, because an earlier attempt may have worked."""
        subject = f"sql.{next(self._numbers)}"
        facts.append((stream, subject))
        opened.execute(INSERT, (stream, subject))
        opened.execute("SELECT outbox_append(%s, %s)", (stream, subject))

    def _lose(
        self,
        opened: psycopg.Connection[Any],
        stream: str,
        lost: int,
        appended: int,
        facts: Facts,
    ) -> None:
        """Replace the last entries of a stream by others, with the same numbers."""
        parameters: dict[str, Any] = {"stream": stream, "count": lost}
        row = opened.execute(_SET_BACK, parameters).fetchone()
        if row is not None:
            opened.execute(_LOSE, parameters | {"last": row[0]})
            for _ in range(appended):
                self._append(opened, stream, facts)


def _run(opened: psycopg.Connection[Any], sql: str) -> None:
    opened.execute(sql.encode())


def _signal(pids: list[int], kind: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, kind)
