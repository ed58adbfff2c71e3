"""The upgrade of a database of the oldest version that can be upgraded."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from config import services
from config.checks import OLDEST_COMMIT
from tests.support import commands, sample, web
from tests.support.service import run_service

DUMP = Path(__file__).parents[1] / "vectors" / "databases" / f"{OLDEST_COMMIT}.sql.gz"
BLOCKS = 12
"""Number of blocks of the sample chain in the dump."""

LIVE_KEY = "nk_LVIgLc7noY7d01YIFJshO9gp6Sx1DM1DVlwo"
TRACING_KEY = "nk_fPVgcuk1iE2UkpQLZnDgeLFSdoP47A1gDN9g"
REVOKED_KEY = "nk_qGqTcUXYXuqJZK7dkH5puqhvwi1mu01n3PaY"

KEPT = [
    "SELECT slug, name, chain_id, genesis, genesis_hash, tracers, head_number, head_hash"
    " FROM networks_network",
    "SELECT id, email, password, is_staff FROM keys_user ORDER BY id",
    "SELECT id, owner_id, name, is_enabled FROM keys_apikey ORDER BY id",
    "SELECT api_key_id, digest, hint, revoked_at FROM keys_keyversion ORDER BY id",
    "SELECT api_key_id, network_id, capability FROM keys_entitlement ORDER BY id",
    "SELECT id, type, data FROM keys_keyevent ORDER BY id",
    "SELECT account_id, member_id, role FROM keys_membership ORDER BY id",
    "SELECT user_id, ident FROM wallets_dapp ORDER BY id",
    "SELECT id, user_id, address FROM wallets_account ORDER BY id",
    "SELECT account_id, document FROM wallets_keystore ORDER BY account_id",
    "SELECT id, scopes FROM wallets_session ORDER BY id",
    "SELECT id, document FROM nodeapi_block ORDER BY id",
]

SCHEMA = [
    "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,"
    " pg_get_expr(d.adbin, d.adrelid), a.attstorage FROM pg_attribute a"
    " JOIN pg_class c ON c.oid = a.attrelid"
    " LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum"
    " WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace"
    " AND a.attnum > 0 AND NOT a.attisdropped",
    "SELECT relname, relkind, relpersistence, reloptions::text FROM pg_class"
    " WHERE relnamespace = 'public'::regnamespace",
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)"
    " FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n'",
    "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
    "SELECT proname, prosrc, provolatile FROM pg_proc"
    " WHERE pronamespace = 'public'::regnamespace",
]
"""Columns, storage options, constraints, indexes, triggers and functions."""


class Database:
    """A separate database, and management commands on it."""

    def __init__(self, name: str) -> None:
        self.url = f"{services.database_url().rpartition('/')[0]}/{name}"

    def manage(self, *arguments: str) -> tuple[int, str]:
        """Run a management command. Return its exit status and output."""
        done = commands.run(*arguments, environ={"DATABASE_URL": self.url})
        return done.returncode, done.stdout + done.stderr

    def rows(self, query: str) -> list[Any]:
        with psycopg.connect(self.url) as connection:
            return connection.execute(query).fetchall()

    def schema(self) -> list[set[Any]]:
        return [set(self.rows(query)) for query in SCHEMA]


@pytest.fixture
def empty(running_services: None) -> Iterator[Database]:
    name = f"upgrade_{uuid4().hex}"
    with psycopg.connect(services.database_url(), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        yield Database(name)
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def old(empty: Database) -> Database:
    with psycopg.connect(empty.url) as connection:
        connection.execute(gzip.decompress(DUMP.read_bytes()))
    return empty


def call(base_url: str, key: str, method: str, *params: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"Origin": "https://dapp.example"}  # the allowlist of LIVE_KEY
    return web.post(f"{base_url}/sample/v3/{key}", json=body, headers=headers).json()


def test_a_database_of_the_oldest_version_goes_on(
    old: Database, tmp_path: Path, django_db_setup: None, django_db_blocker: Any
) -> None:
    kept = [old.rows(query) for query in KEPT]
    assert all(kept)
    status, printed = old.manage("migrate")
    assert status == 0, printed
    assert [old.rows(query) for query in KEPT] == kept
    with django_db_blocker.unblock():
        from django.db import connection

        with connection.cursor() as cursor:
            for query, upgraded in zip(SCHEMA, old.schema(), strict=True):
                cursor.execute(query)
                assert set(cursor.fetchall()) == upgraded

    chain = tmp_path / "chain.rlp"
    chain.write_bytes(b"".join(sample.earlier_raw_blocks(BLOCKS + 3)))
    status, printed = old.manage("import_chain", "--network", "sample", str(chain))
    assert status == 0, printed
    assert "imported 3 blocks" in printed
    status, printed = old.manage("audit_state", "--network", "sample")
    assert status == 0, printed

    with run_service(env={"DATABASE_URL": old.url}) as service:
        for key in (LIVE_KEY, TRACING_KEY):
            head = call(service.base_url, key, "eth_blockNumber")["result"]
            assert int(head, 16) == BLOCKS + 3
        revoked = call(service.base_url, REVOKED_KEY, "eth_blockNumber")
        assert revoked["error"]["data"]["reason"] == "key_revoked"
        for number in (hex(BLOCKS), hex(BLOCKS + 3)):
            tracer = {"tracer": "callTracer"}
            traced = call(
                service.base_url,
                TRACING_KEY,
                "debug_traceBlockByNumber",
                number,
                tracer,
            )
            assert traced["result"]


OLDER = "DELETE FROM django_migrations WHERE app = 'keys' AND name LIKE '0026%'"
NOT_INDEXED = "INSERT INTO nodeapi_logbackfill SELECT id, 5 FROM networks_network"


@pytest.mark.parametrize(
    ("command", "change", "error"),
    [
        ("migrate", OLDER, "config.E002"),
        ("serve", OLDER, "config.E002"),
        ("migrate", NOT_INDEXED, "config.E003"),
    ],
)
def test_an_older_database_is_refused_without_a_change(
    old: Database, command: str, change: str, error: str
) -> None:
    """This includes a database that an older version has migrated partly."""
    with psycopg.connect(old.url) as connection:
        connection.execute(change)
    before = old.rows("TABLE django_migrations"), old.schema()
    status, printed = old.manage(command)
    assert status != 0
    assert error in printed
    assert f"Check out commit {OLDEST_COMMIT}" in printed
    assert "Traceback" not in printed
    assert (old.rows("TABLE django_migrations"), old.schema()) == before
