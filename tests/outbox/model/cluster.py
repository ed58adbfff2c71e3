"""PostgreSQL, Redis and the members of the model, which can be killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import psycopg

from config.embedded import places
from config.embedded.postgres import NAME, PostgresServer
from config.embedded.postgres import address as postgres_address
from config.embedded.redis import RedisServer
from config.embedded.redis import address as redis_address
from server.forking import Forked, ForkServer
from tests.outbox.model.facts import QUIET, is_outage
from tests.outbox.model.history import Incarnation, Outage
from tests.support import leftovers
from tests.support.waiting import PATIENCE_SECONDS, wait_until

_MEMBER = "tests.outbox.model.member"

_TABLES = """
CREATE TABLE model_fact (stream text NOT NULL, subject text NOT NULL);
CREATE INDEX ON model_fact (stream);
CREATE TABLE model_gone (
    stream text NOT NULL, number bigint NOT NULL, subject text NOT NULL,
    is_lost boolean NOT NULL
);
"""
"""`model_gone`: entries that were pruned, and those that a failover has lost."""


@dataclass
class Running:
    """A member's process."""

    process: Forked
    commands: int
    """Descriptor of the pipe for its commands, which is closed when it has to end."""
    log: Path
    starts: int

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.end_commands()

    def end_commands(self) -> None:
        if self.commands >= 0:
            os.close(self.commands)
            self.commands = -1


@dataclass
class Cluster:
    """The services in a folder of their own.

    rate: share of disturbed messages; 0 also turns other faults of members off.
    """

    folder: Path
    seed: str
    rate: float = 0.0
    outages: list[Outage] = field(default_factory=list)
    _members: dict[int, Running] = field(default_factory=dict)
    _incarnations: list[Incarnation] = field(default_factory=list)
    _logs: int = 0

    def __post_init__(self) -> None:
        self.postgres = PostgresServer(self.folder)
        self.redis = RedisServer(self.folder)
        self._forks = ForkServer(_MEMBER, self._environ())

    # Services

    def connect(self) -> psycopg.Connection[Any]:
        return self.postgres.connect(NAME)

    def kill_postgres(self) -> None:
        pid = self.postgres.pid()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    def kill_redis(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.redis_pid(), signal.SIGKILL)
        wait_until(lambda: not self.redis.is_running())

    def redis_pid(self) -> int:
        with self.redis.client() as client:
            return int(client.info("server")["process_id"])

    @contextmanager
    def outage(self, member: int | None = None) -> Iterator[None]:
        """Record that a member, or all of them, can't read the database."""
        outage = Outage(time.monotonic(), inf, member)
        self.outages.append(outage)
        yield
        outage.end = time.monotonic()

    def repeat(self, change: Callable[[psycopg.Connection[Any]], None]) -> None:
        """Run a change of the database. Repeat it after each outage."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            try:
                with self.connect() as opened, opened.transaction():
                    change(opened)
                return
            except psycopg.Error as error:
                if not is_outage(error):
                    raise
                time.sleep(0.05)
        raise AssertionError("the database remains unavailable")

    # Members

    def start_members(self, count: int, rate: float) -> None:
        """Start all members, and wait until they follow their streams."""
        self.rate = rate
        self.outages.clear()
        self.kill_members()
        self._members.clear()
        self._incarnations = []
        self.redis.start()
        for index in range(count):
            self.start_member(index)
        for index in range(count):
            self.wait_for_member(index)

    def start_member(self, index: int) -> None:
        starts = self._members[index].starts + 1 if index in self._members else 1
        seed = f"{self.seed} {self.rate:g} {index} {starts}"
        self._logs += 1
        log = self.folder / f"member-{index}-{self._logs}.log"
        errors = log.with_suffix(".stderr")
        environ = {
            **self._environ(),
            "MODEL_SEED": seed,
            "MODEL_MESSAGE_FAULTS": str(self.rate),
        }
        theirs, commands = os.pipe()
        with errors.open("wb") as output:
            process = self._forks.start(
                f"{_MEMBER}:main",
                *(index, seed, str(log), self.rate),
                descriptors=[theirs],
                environ=environ,
                errors=output.fileno(),
            )
        os.close(theirs)
        self._members[index] = Running(process, commands, log, starts)
        self._incarnations.append(Incarnation(index, log))

    def wait_for_member(self, index: int) -> None:
        """Wait until a member follows its streams."""
        running = self._members[index]
        wait_until(lambda: running.process.poll() is not None or _has_text(running.log))
        assert running.process.poll() is None, self._errors(running)

    def kill_member(self, index: int) -> None:
        running = self._members[index]
        incarnation = next(i for i in self._incarnations if i.log == running.log)
        incarnation.killed_at = time.monotonic()
        running.kill()

    def kill_members(self) -> None:
        for running in self._members.values():
            running.kill()

    def stop_writing(self) -> None:
        for running in self._members.values():
            os.write(running.commands, QUIET.encode() + b"\n")

    def stop_members(self) -> list[Incarnation]:
        """Stop all members. Return all their processes, in the order of their starts."""
        for running in self._members.values():
            running.end_commands()
        for running in self._members.values():
            assert running.process.wait(PATIENCE_SECONDS) == 0, self._errors(running)
        return self._incarnations

    def errors(self) -> str:
        """Return the members' output on standard error."""
        return "\n".join(
            f"{path.name}: {path.read_text()[-3000:]}"
            for path in sorted(self.folder.glob("*.stderr"))
        )

    def _errors(self, running: Running) -> str:
        return running.log.with_suffix(".stderr").read_text()[-5000:]

    def start(self) -> None:
        with contextlib.ExitStack() as stack:
            starting = threading.Thread(target=self.redis.start)
            starting.start()
            stack.callback(starting.join)
            self.postgres.start()
            migrated = self._forks.start(
                "django.core.management:call_command",
                *("migrate", "--skip-checks", "-v0"),
                environ=self._environ(),
            )
            assert migrated.wait(PATIENCE_SECONDS) == 0
        with self.connect() as opened:
            opened.execute(_TABLES)

    def clear(self) -> None:
        """Kill the members that still run, and stop the services."""
        self.kill_members()
        self._forks.close()
        self.redis.stop()
        self.postgres.stop()

    def _environ(self) -> dict[str, str]:
        return {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.outbox.model.settings",
            "DATABASE_URL": postgres_address(self.folder),
            "REDIS_URL": redis_address(self.folder),
        }


@contextmanager
def run_cluster(seed: str) -> Iterator[Cluster]:
    """Run PostgreSQL, Redis and no member yet, in a folder that is removed."""
    folder = Path(tempfile.mkdtemp(prefix=leftovers.PREFIX))
    claim = leftovers.claim(str(folder))
    running = Cluster(folder, seed)
    try:
        running.start()
        yield running
    finally:
        running.clear()
        os.close(claim)
        places.forget_socket_dir(folder)
        shutil.rmtree(folder)


def _has_text(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0
