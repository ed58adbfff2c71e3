"""Imports that are killed, or lose their database: the next one goes on, row by row."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from config.embedded import places
from config.embedded.postgres import PostgresServer
from config.embedded.redis import RedisServer
from nodeapi.chain.database import importer_connection
from tests.support import chains, sample
from tests.support.service import test_database_url

MANAGE = Path(__file__).resolve().parents[3] / "manage.py"
PATIENCE_SECONDS = 60.0


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
    """Wait until the network's head has come so far."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        row = connection.execute(
            "SELECT head_number FROM networks_network WHERE slug = 'net'"
        ).fetchone()
        if row and isinstance(row[0], int) and row[0] >= number:
            return
        time.sleep(0.002)
    pytest.fail(f"the import did not reach block {number}")


@pytest.mark.django_db(transaction=True)
def test_a_killed_import_goes_on_at_the_next_block() -> None:
    env = {"DATABASE_URL": test_database_url()}
    with importer_connection() as connection:
        for target in (1, 30, 60, 90):
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
"""Lets an import come no further than block 40 as long as somebody holds the lock."""


@pytest.fixture
def own_var_dir() -> Iterator[Path]:
    """Yield a VAR_DIR with its own, running, empty database."""
    folder = Path(tempfile.mkdtemp(prefix="portcullis-crash-"))
    server = PostgresServer(folder)
    server.start()
    yield folder
    RedisServer(folder).stop()
    server.stop()
    places.forget_socket_dir(folder)
    shutil.rmtree(folder)


def test_an_import_whose_database_restarts_says_so_and_goes_on(
    own_var_dir: Path,
) -> None:
    server = PostgresServer(own_var_dir)
    env = {"VAR_DIR": str(own_var_dir), "DATABASE_URL": ""}
    subprocess.run(
        [sys.executable, str(MANAGE), "migrate", "--verbosity", "0"],
        env={**os.environ, **env},
        check=True,
    )
    server.start()  # the command was its last user
    with server._connect("portcullis") as connection:
        connection.execute(HELD_UP)
        connection.execute("SELECT pg_advisory_lock(7)")
        process = start_import("--batch", "1", env=env)
        wait_for_head(connection, 40)
        server.stop()
    _, lines = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 1
    assert "the database failed: " in lines
    assert "Traceback" not in lines
    again = start_import(env=env)
    _, lines = again.communicate(timeout=PATIENCE_SECONDS)
    assert again.returncode == 0, lines
    assert "the head is 100" in lines
    audit = subprocess.run(
        [sys.executable, str(MANAGE), "audit_state", "--network", "net"],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "101 blocks of net audited, all agree" in audit.stdout
