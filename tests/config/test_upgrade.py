"""Upgrades of databases whose chains have to be imported again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from config import env, services
from config.embedded import postgres
from nodeapi.chain.database import import_lock
from tests.config.test_serve import serving
from tests.support import sample, web
from tests.support.old_database import add_block, add_customer, make_old_tables
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_SECONDS

KEPT = [
    "SELECT slug, name, chain_id, genesis, genesis_hash, tracers, emit_total_difficulty"
    " FROM networks_network",
    "SELECT network_id, name FROM networks_hostname",
    "SELECT id, email, password FROM keys_user",
    "SELECT id, owner_id, name, is_enabled FROM keys_apikey",
    "SELECT api_key_id, digest, hint FROM keys_keyversion",
    "SELECT api_key_id, network_id, capability FROM keys_entitlement",
    "SELECT user_id, ident FROM wallets_dapp",
]


class OldDatabase:
    """A database, and the commands that work on it.

    environ: what names it to the commands, by default DATABASE_URL.
    """

    def __init__(self, url: str, environ: dict[str, str] | None = None) -> None:
        self.url = url
        self.environ = environ or {"DATABASE_URL": url}

    def manage(self, *arguments: str, answer: str = "") -> tuple[int, str]:
        """Run a management command; returns its status and what it printed."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=env.BASE_DIR,
            env={**os.environ, **self.environ, "PORT": str(free_port())},
            input=answer,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    def rows(self, query: str) -> list[Any]:
        with psycopg.connect(self.url) as connection:
            return connection.execute(query).fetchall()

    def kept(self) -> list[list[Any]]:
        return [self.rows(query) for query in KEPT]

    def migrations(self) -> list[Any]:
        return self.rows("SELECT app, name, applied FROM django_migrations ORDER BY id")

    def blocks(self) -> int:
        return int(self.rows("SELECT count(*) FROM nodeapi_block")[0][0])


@pytest.fixture(scope="module")
def template(running_services: None) -> Iterator[OldDatabase]:
    """Return a database to copy: nothing may be connected to it then."""
    url, name = services.database_url(), f"old_{uuid4().hex}"
    old = OldDatabase(f"{url.rpartition('/')[0]}/{name}")
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        make_old_tables(old.url)
        with psycopg.connect(old.url) as connection:
            add_customer(connection)
        yield old
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def unused(template: OldDatabase) -> Iterator[OldDatabase]:
    """Return a copy without blocks."""
    base, _, source = template.url.rpartition("/")
    name = f"{source}_{uuid4().hex[:8]}"
    with psycopg.connect(services.database_url(), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name} TEMPLATE {source}")
        yield OldDatabase(f"{base}/{name}")
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def old(unused: OldDatabase) -> OldDatabase:
    """Return a copy with a block that has no records."""
    with psycopg.connect(unused.url) as connection:
        add_block(connection)
    return unused


@pytest.mark.parametrize("command", ["migrate", "serve"])
def test_blocks_without_records_are_refused_before_any_migration(old, command):
    before = old.migrations()
    status, printed = old.manage(command)
    assert status != 0
    assert "nodeapi.E001" in printed
    assert "manage.py flush_chains" in printed
    assert "Traceback" not in printed
    assert old.migrations() == before
    assert old.blocks() == 1


def test_a_database_of_that_time_without_blocks_is_migrated(unused):
    kept = unused.kept()
    status, printed = unused.manage("migrate")
    assert status == 0, printed
    assert unused.kept() == kept


def test_flushed_chains_are_imported_again_and_all_else_is_kept(old, tmp_path):
    kept = old.kept()
    status, printed = old.manage("flush_chains", "--noinput")
    assert status == 0, printed
    assert "  sample, head 1\n" in printed
    for table in ("block", "transaction", "accountversion", "storageversion", "code"):
        assert f" 1  nodeapi_{table}\n" in printed
        assert old.rows(f"SELECT * FROM nodeapi_{table}") == []
    assert old.rows("SELECT head_number, head_hash FROM networks_network") == [
        (None, None)
    ]
    assert old.kept() == kept
    assert old.manage("flush_chains") == (
        0,
        "There is no chain data in this database.\n",
    )
    status, printed = old.manage("migrate")
    assert status == 0, printed
    chain = tmp_path / "chain.rlp"
    chain.write_bytes(b"".join(sample.raw_blocks()[:5]))
    import_chain = "import_chain", "--network", "sample", str(chain)
    status, printed = old.manage(*import_chain, "--genesis", str(sample.GENESIS_FILE))
    assert status == 0, printed
    assert old.blocks() == 6
    assert old.kept() == kept


def test_a_half_applied_upgrade_goes_on_after_a_flush(old):
    """Versions without the check stopped in the middle of the migrations."""
    kept, before = old.kept(), old.migrations()
    status, printed = old.manage("migrate", "--skip-checks")
    assert status != 0
    assert "manage.py flush_chains" in printed
    half = old.migrations()
    assert len(half) > len(before) + 5
    status, printed = old.manage("migrate")
    assert (status != 0, old.migrations()) == (True, half)
    assert "nodeapi.E001" in printed
    assert old.manage("flush_chains", "--noinput")[0] == 0
    status, printed = old.manage("migrate")
    assert status == 0, printed
    assert old.kept() == kept


@pytest.mark.parametrize("answer", ["no\n", ""])
def test_chains_are_kept_unless_the_deletion_is_confirmed(old, answer):
    status, printed = old.manage("flush_chains", answer=answer)
    assert status != 0
    assert "nothing was deleted" in printed
    assert "Traceback" not in printed
    assert old.blocks() == 1
    status, printed = old.manage("flush_chains", answer="yes\n")
    assert status == 0, printed
    assert old.blocks() == 0


def test_chains_are_kept_while_one_is_imported(old):
    ((network,),) = old.rows("SELECT id FROM networks_network")
    with (
        psycopg.connect(old.url, autocommit=True) as importer,
        import_lock(importer, network),
    ):
        status, printed = old.manage("flush_chains", "--noinput")
    assert status != 0
    assert "an import into sample is running, nothing was deleted" in printed
    assert old.blocks() == 1


def test_heads_without_blocks_are_removed(unused):
    """As after a restore of a dump without chain data."""
    status, printed = unused.manage("flush_chains", "--noinput")
    assert status == 0, printed
    assert unused.rows("SELECT head_number FROM networks_network") == [(None,)]


def test_an_empty_database_has_no_chain_data(template):
    name = f"empty_{uuid4().hex}"
    with psycopg.connect(services.database_url(), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        empty = OldDatabase(f"{template.url.rpartition('/')[0]}/{name}")
        status, printed = empty.manage("flush_chains")
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")
    assert (status, printed) == (0, "There is no chain data in this database.\n")


def test_make_run_serves_the_old_keys_after_a_flush():
    """The embedded database: refused, flushed, migrated, imported and served."""
    if os.environ.get("DATABASE_URL"):
        pytest.skip("the embedded database is not used")
    with tempfile.TemporaryDirectory(prefix="portcullis-old-") as name:
        folder = Path(name)
        environ = {"VAR_DIR": name, "DATABASE_URL": "", "REDIS_URL": ""}
        old = OldDatabase(postgres.address(folder), environ)
        with services.running(folder):
            make_old_tables(old.url)
            with psycopg.connect(old.url) as connection:
                key = add_customer(connection)
                add_block(connection)
            status, printed = old.manage("serve")
            assert (status != 0, old.blocks()) == (True, 1)
            assert "manage.py flush_chains" in printed
            status, printed = old.manage("flush_chains", "--noinput")
            assert status == 0, printed
        with serving(folder, free_port()) as (process, _):
            run = json.loads((folder / "run.json").read_text())
            url = f"{run['base_url']}/v3/{key}"
            head = call(url, "eth_blockNumber")
            assert int(head, 16) == len(sample.raw_blocks())
            tracer = {"tracer": "callTracer"}
            assert call(url, "debug_traceBlockByNumber", head, tracer)
            process.terminate()
            assert process.wait(PATIENCE_SECONDS) == 0


def call(url: str, method: str, *params: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = web.post(url, json=body).json()
    assert "error" not in answer, answer
    return answer["result"]
