"""Streams on a physical standby, before and after its promotion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from config.embedded import places, postgres, processes
from outbox.append import begin
from tests.outbox.conftest import following
from tests.support import commands
from tests.support.coroutines import scenario
from tests.support.waiting import until


class Server(postgres.PostgresServer):
    """An embedded server that standbys can replicate."""

    def _command(self) -> list[str]:
        return [*super()._command(), "--wal_level=replica", "--max_wal_senders=4"]

    @property
    def conninfo(self) -> str:
        return postgres.address(self.folder.parent)

    def append(self, stream: str, subject: str) -> None:
        with (
            psycopg.connect(self.conninfo, autocommit=True) as connection,
            begin(connection) as changes,
        ):
            changes.append(stream, subject)


@dataclass
class Pair:
    primary: Server
    standby: Server


def outbox_tables() -> bytes:
    """Return the SQL of the outbox's migration."""
    return commands.checked("sqlmigrate", "outbox", "0001").encode()


@pytest.fixture
def pair(tmp_path: Path, running_services: None) -> Iterator[Pair]:
    """Run a primary with the tables of the outbox, and a standby that follows it."""
    pair = Pair(Server(tmp_path / "primary"), Server(tmp_path / "standby"))
    primary, standby = pair.primary, pair.standby
    try:
        primary.start()
        with primary.connect(postgres.NAME) as connection:
            connection.execute(outbox_tables())
        user = places.service_user(standby.folder)
        places.make_private(standby.folder, user)
        done = processes.run(
            [
                *(str(Path(primary._command()[0]).with_name("pg_basebackup")), "-R"),
                *("-d", primary.conninfo, "-D", str(standby.data_dir)),
                *("--checkpoint=fast", "--wal-method=stream"),
            ],
            user,
            standby.folder,
        )
        assert done.returncode == 0, done.stdout
        standby.start()
        yield pair
    finally:
        standby.stop()
        primary.stop()


@scenario
async def test_subscribers_of_a_standby_follow_it_through_its_promotion(
    pair: Pair, redis_url: str
) -> None:
    primary, standby = pair.primary, pair.standby
    async with following("s", conninfo=standby.conninfo) as follower:
        received = follower.received["s"]
        primary.append("s", "a")
        await until(lambda: received == ["a"])
        primary.stop()
        with standby.connect(postgres.NAME) as connection:
            connection.execute("SELECT pg_promote()")
        # The primary may have assigned the same number to a lost entry: the
        # subscriber reads everything again.
        standby.append("s", "b")
        await until(lambda: received[-1:] == [None])
        standby.append("s", "c")
        await until(lambda: received[-1:] == ["c"])
