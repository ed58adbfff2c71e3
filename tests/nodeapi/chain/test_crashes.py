"""Imports that are killed or lose the database. The next import continues them."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import psutil
import psycopg
import pytest

from networks.models import Network
from nodeapi.chain.database import import_lock, importer_connection
from nodeapi.chain.forkchoice import Forkchoice
from tests.nodeapi.chain.trees import genesis, tree
from tests.support import chains, sample
from tests.support.installation import installation
from tests.support.service import test_database_url
from tests.support.waiting import PATIENCE_SECONDS, wait_until

MANAGE = Path(__file__).resolve().parents[3] / "manage.py"


def start_import(*options: str, env: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            *(sys.executable, str(MANAGE), "import_chain", "--network", "net"),
            *("--genesis", str(sample.GENESIS_FILE), *options),
            str(sample.CHAIN_FILE),
        ],
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_head(
    connection: psycopg.Connection[tuple[object, ...]], number: int
) -> None:
    """Wait until the network's head has at least this number."""

    def is_reached() -> bool:
        row = connection.execute(
            "SELECT head_number FROM networks_network WHERE slug = 'net'"
        ).fetchone()
        return bool(row and isinstance(row[0], int) and row[0] >= number)

    wait_until(is_reached)


@pytest.mark.django_db(transaction=True)
def test_a_killed_import_goes_on_at_the_next_block() -> None:
    env = {"DATABASE_URL": test_database_url()}
    with importer_connection() as connection:
        for target in (1, 50):
            process = start_import("--batch", "1", env=env)
            wait_for_head(connection, target)
            process.kill()
            process.communicate()
    last = start_import(env=env)
    _, lines = last.communicate()
    assert last.returncode == 0, lines
    chains.import_blocks("straight", sample.genesis(), sample.raw_blocks())
    assert chains.rows("net") == chains.rows("straight")
    assert chains.audit_all("net") == 101


HELD_UP = """
    CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NEW; END $$;
    CREATE TRIGGER held_up BEFORE INSERT ON nodeapi_block
        FOR EACH ROW WHEN (NEW.number = 41) EXECUTE FUNCTION wait()
"""
"""SQL: block the import before block 40 while another session holds the lock."""


def test_an_import_whose_database_restarts_says_so_and_goes_on() -> None:
    with installation() as own:
        with own.connect() as connection:
            connection.execute(HELD_UP)
            connection.execute("SELECT pg_advisory_lock(7)")
            process = own.start_import("net", "--batch", "1")
            wait_for_head(connection, 40)
            own.database.stop()
        _, lines = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 1
        assert "the database failed: " in lines
        assert "Traceback" not in lines
        own.database.start()
        again = own.start_import("net")
        _, lines = again.communicate(timeout=PATIENCE_SECONDS)
        assert again.returncode == 0, lines
        assert "the head is 100" in lines
        audited = own.manage("audit_state", "--network", "net")
    assert "101 blocks of net audited, all state roots are correct" in audited


def open_if_read(pipe: Path) -> int | None:
    """Open a pipe for writing; None if no process reads it yet."""
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        assert error.errno == errno.ENXIO
        return None


def handle_interrupts() -> None:
    """Handle SIGINT in a new process, although a shell's background job ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def is_blocked(process: subprocess.Popen[bytes]) -> bool:
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
    env = {"DATABASE_URL": test_database_url()}
    options = "--network", "net", "--genesis", str(sample.GENESIS_FILE)
    process = subprocess.Popen(
        [sys.executable, str(MANAGE), "import_chain", *options, str(pipe)],
        env={**os.environ, **env},
        stderr=subprocess.DEVNULL,
        preexec_fn=handle_interrupts,
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


FOLLOW = """
import sys
import django
django.setup()
from nodeapi.chain.forkchoice import Forkchoice
from tests.support import chains
with chains.following_importer("net", None) as importer:
    importer.follow(Forkchoice(bytes.fromhex(sys.argv[1]), None, None))
"""

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
    with importer_connection() as connection:
        connection.execute(HELD_UP.split("CREATE TRIGGER")[0] + HOLD_UP[where])
        try:
            connection.execute("SELECT pg_advisory_lock(7)")
            process = subprocess.Popen(
                [sys.executable, "-c", FOLLOW, nodes[head].hash.hex()],
                env={**os.environ, "DATABASE_URL": test_database_url()},
                cwd=MANAGE.parent,
            )
            wait_until(lambda: waits_for_lock(connection))
            process.kill()
            process.wait()
            connection.execute("SELECT pg_advisory_unlock(7)")
            network = chains.network_id(connection, "net")
            with import_lock(connection, network, wait=True):
                after = chains.rows("net")
        finally:
            connection.execute("DROP FUNCTION wait CASCADE")
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
