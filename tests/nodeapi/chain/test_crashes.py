"""Imports that are killed or lose the database. The next import continues them."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
import psycopg
import pytest
from django.db import connection as django_connection

from networks.models import Network
from nodeapi.chain.database import import_lock, importer_connection
from nodeapi.chain.forkchoice import Forkchoice
from server import forking
from server.forking import Forked
from tests.nodeapi.chain.trees import genesis, tree
from tests.support import chains, commands, copies, sample
from tests.support.service import test_database_url
from tests.support.waiting import PATIENCE_SECONDS, wait_until

NETWORK = "--network", "net", "--second", "--genesis", str(sample.GENESIS_FILE)


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., Forked]:
    """Return a function that starts an import, whose messages are in `errors`."""

    def started(*options: str) -> Forked:
        return commands.start(
            *("import_chain", *NETWORK, *options, str(sample.CHAIN_FILE)),
            output=tmp_path / "output",
            errors=tmp_path / "errors",
            environ={"DATABASE_URL": test_database_url()},
        )

    return started


def wait_for_head(
    connection: psycopg.Connection[tuple[object, ...]], process: Forked, number: int
) -> None:
    """Wait until the head that a process imports has at least this number."""

    def is_reached() -> bool:
        row = connection.execute(
            "SELECT head_number FROM networks_network WHERE slug = 'net'"
        ).fetchone()
        assert process.poll() is None
        return bool(row and isinstance(row[0], int) and row[0] >= number)

    wait_until(is_reached)


HELD_UP = """
    CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NEW; END $$;
"""
BLOCK_41 = """
    CREATE TRIGGER held_up BEFORE INSERT ON nodeapi_block
        FOR EACH ROW WHEN (NEW.number = 41) EXECUTE FUNCTION wait()
"""
"""SQL: block the import before block 41 while another session holds the lock."""


@contextmanager
def held_up(
    connection: psycopg.Connection[tuple[object, ...]], trigger: str
) -> Iterator[None]:
    """Hold up what fires a trigger until the lock is released or the block ends."""
    connection.execute(HELD_UP + trigger)
    try:
        connection.execute("SELECT pg_advisory_lock(7)")
        yield
    finally:
        connection.execute("SELECT pg_advisory_unlock_all()")
        connection.execute("DROP FUNCTION wait CASCADE")


@contextmanager
def shut_down(connection: psycopg.Connection[tuple[object, ...]]) -> Iterator[None]:
    """End all other sessions of the database, and refuse new ones, as while it restarts."""
    allow = f'ALTER DATABASE "{connection.info.dbname}" ALLOW_CONNECTIONS'
    with psycopg.connect(
        test_database_url(), dbname="postgres", autocommit=True
    ) as outside:
        outside.execute(f"{allow} false")
        try:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            yield
        finally:
            outside.execute(f"{allow} true")


@pytest.mark.django_db(transaction=True)
def test_an_import_that_is_killed_or_loses_its_database_goes_on_at_the_next_block(
    start: Callable[..., Forked], tmp_path: Path
) -> None:
    copies.sample_chain("sample")
    expected = chains.rows("sample")
    errors = tmp_path / "errors"
    with importer_connection() as connection:
        process = start("--batch", "1")
        wait_for_head(connection, process, 1)
        process.kill()
        process.wait()
        with held_up(connection, BLOCK_41):
            process = start("--batch", "1")
            wait_for_head(connection, process, 40)
            with shut_down(connection):
                assert process.wait(PATIENCE_SECONDS) == 1
                django_connection.close()
        assert "the database failed: " in errors.read_text()
        assert "Traceback" not in errors.read_text()
        process = start("--batch", "1")
        wait_for_head(connection, process, 60)
        process.kill()
        process.wait()
    assert start().wait(PATIENCE_SECONDS) == 0, errors.read_text()
    assert f"the head is {sample.head()}" in errors.read_text()
    assert chains.rows("net") == expected
    assert chains.audit_all("net") == sample.head() + 1


def open_if_read(pipe: Path) -> int | None:
    """Open a pipe for writing; None if no process reads it yet."""
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        assert error.errno == errno.ENXIO
        return None


def is_blocked(process: Forked) -> bool:
    """Return whether a process sleeps for 0.1 s, as in a system call that blocks."""
    for _ in range(10):
        if psutil.Process(process.pid).status() != psutil.STATUS_SLEEPING:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("kind", "networks"), [(signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, 1)]
)
def test_a_first_import_that_is_stopped_before_its_first_block(
    kind: signal.Signals, networks: int, tmp_path: Path
) -> None:
    """It removes the network that it has created, unless it is killed."""
    pipe = tmp_path / "chain.rlp"
    os.mkfifo(pipe)  # the import waits for its first byte
    process = forking.shared.start(
        "tests.support.forked:manage_in_terminal",
        *("import_chain", *NETWORK, str(pipe)),
        environ={**os.environ, "DATABASE_URL": test_database_url()},
    )
    writer = wait_until(partial(open_if_read, pipe))
    # A signal just before a blocking call would only be handled after the call.
    wait_until(partial(is_blocked, process))
    process.send_signal(kind)
    assert process.wait(PATIENCE_SECONDS) != 0
    os.close(writer)
    assert Network.objects.count() == networks
    chains.import_blocks("net", sample.genesis(), sample.raw_blocks()[:3])
    assert chains.head("net")[0] == 3


HOLD_UP = {
    "insert": "CREATE TRIGGER held_up BEFORE INSERT ON nodeapi_reorganisation"
    " FOR EACH ROW EXECUTE FUNCTION wait()",
    "commit": "CREATE CONSTRAINT TRIGGER held_up AFTER INSERT ON nodeapi_reorganisation"
    " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait()",
}
"""SQL: block a reorganisation before its last row, and during its commit."""


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("where", HOLD_UP)
@pytest.mark.parametrize("head", ["b5", "t1"])
def test_a_reorganisation_that_is_killed_is_made_completely_or_not_at_all(
    where: str, head: str
) -> None:
    """Another process then gets the import lock."""
    nodes = tree()
    names = ("t1", "b2", "b3", "b4", "b5", "a2", "a3")
    chains.import_blocks(
        "net",
        genesis(),
        [nodes[name].raw for name in names],
        forkchoice=Forkchoice(nodes["a3"].hash, None, None),
    )
    before = chains.rows("net")
    wanted = Forkchoice(nodes[head].hash, None, None)
    with importer_connection() as connection, held_up(connection, HOLD_UP[where]):
        process = forking.shared.start(
            "tests.support.forked:follow",
            *("net", nodes[head].hash.hex()),
            environ={**os.environ, "DATABASE_URL": test_database_url()},
        )
        wait_until(lambda: waits_for_lock(connection))
        process.kill()
        process.wait()
        connection.execute("SELECT pg_advisory_unlock(7)")
        network = chains.network_id(connection, "net")
        with import_lock(connection, network, wait=True):
            after = chains.rows("net")
    if where == "insert":
        assert after == before
    with chains.following_importer("net", None) as importer:
        importer.follow(wanted)
    if where == "commit":
        # PostgreSQL completes a commit even if the client has disconnected.
        assert after == chains.rows("net")
    assert chains.head("net")[1] == nodes[head].hash
    assert chains.audit_all("net") == nodes[head].number + 1


def waits_for_lock(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    row = connection.execute(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        " AND objid = 7"
    ).fetchone()
    return row is not None and bool(row[0])
