"""A database as it was before traces were recorded, with rows of customers and chains."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier
from psycopg.types.json import Jsonb

from evm.chain_config import ChainConfig
from keys import format as key_format
from nodeapi.chain.genesis import verified_genesis
from tests.support import sample

TIME_OF = [
    *(("networks", "0001_initial"), ("keys", "0003_remove_apikey_may_trace")),
    *(("wallets", "0002_failed_pairing"), ("nodeapi", "0003_transactionrecord")),
    *(("auth", "0012_alter_user_first_name_max_length"), ("sessions", "0001_initial")),
    ("admin", "0003_logentry_add_action_flag_choices"),
]
"""The newest migration of each app at the commit before nodeapi's 0004."""

_MIGRATE = f"""
import django
django.setup()
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
executor = MigrationExecutor(connection)
executor.migrate({TIME_OF})
"""

NOW = "2026-11-21T10:00:00Z"


def make_old_tables(url: str) -> None:
    """Migrate an empty database to the state of that time."""
    environ = {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "config.settings"}
    subprocess.run(
        [sys.executable, "-c", _MIGRATE], env={**os.environ, **environ}, check=True
    )


def add_customer(connection: psycopg.Connection[Any]) -> str:
    """Add a network, a customer with a wallet and a key that traces; returns the key."""
    key = key_format.make_key()
    genesis = sample.genesis()
    config = ChainConfig.from_genesis(genesis)
    verified, _ = verified_genesis(genesis, config)
    del genesis["alloc"]
    network = insert(
        connection,
        "networks_network",
        slug="sample",
        name="Named by staff",
        chain_id=config.chain_id,
        genesis=Jsonb(genesis),
        genesis_hash=verified.block.header.hash,
        tracers=["callTracer"],
        emit_total_difficulty=False,
        head_number=1,
        head_hash=bytes(32),
        created_at=NOW,
    )
    insert(connection, "networks_hostname", network_id=network, name="rpc.example.org")
    user = insert(
        connection,
        "keys_user",
        email="old@example.org",
        password="!",
        **dict.fromkeys(("first_name", "last_name"), ""),
        **dict.fromkeys(("is_superuser", "is_staff"), False),
        is_active=True,
        date_joined=NOW,
    )
    api_key = insert(
        connection,
        "keys_apikey",
        owner_id=user,
        name="Of old",
        staff_note="",
        is_enabled=True,
        created_at=NOW,
    )
    insert(
        connection,
        "keys_keyversion",
        api_key_id=api_key,
        digest=key_format.digest(key),
        hint=key_format.hint(key),
        created_at=NOW,
        revoke_reason="",
    )
    insert(
        connection,
        "keys_entitlement",
        api_key_id=api_key,
        network_id=network,
        capability="trace",
        tracers=[],
        note="",
        granted_at=NOW,
    )
    insert(
        connection,
        "wallets_dapp",
        user_id=user,
        kind="web",
        ident="https://dapp.example.org",
        label="",
        created_at=NOW,
        rejections=0,
    )
    return key


def add_block(connection: psycopg.Connection[Any]) -> None:
    """Add a block with a transaction and no record, and a row of each kind of state."""
    (network,) = connection.execute("SELECT id FROM networks_network").fetchone() or ()
    block = insert(
        connection,
        "nodeapi_block",
        network_id=network,
        number=1,
        is_canonical=True,
        **dict.fromkeys(("hash", "parent_hash", "state_root"), bytes(32)),
        **dict.fromkeys(("header", "body", "document"), b"{}"),
        **dict.fromkeys(("timestamp", "total_difficulty", "gas_used"), 0),
        transactions_offset=0,
        transaction_count=1,
    )
    hash_, address = bytes(32), bytes(20)
    rows: dict[str, dict[str, Any]] = {
        "transaction": {"block_id": block, "index": 0, "hash": hash_, "document": b""},
        "code": {"hash": hash_, "code": b"\0"},
        "accountversion": {"network_id": network, "address": address},
        "storageversion": {"network_id": network, "address": address},
        "trienode": {"network_id": network, "owner": b"", "path": b"", "node": b""},
    }
    rows["accountversion"] |= {"block_number": 1}
    rows["storageversion"] |= {"block_number": 1, "slot": hash_, "value": b"\1"}
    for table, values in rows.items():
        insert(connection, f"nodeapi_{table}", returning="*", **values)


def insert(
    connection: psycopg.Connection[Any],
    table: str,
    *,
    returning: str = "id",
    **row: Any,
) -> Any:
    """Insert a row; returns its id, or the first of all columns."""
    query = SQL("INSERT INTO {} ({}) VALUES ({}) RETURNING {}").format(
        Identifier(table),
        SQL(", ").join(map(Identifier, row)),
        SQL(", ").join([SQL("%s")] * len(row)),
        SQL("*") if returning == "*" else Identifier(returning),
    )
    found = connection.execute(query, list(row.values())).fetchone()
    assert found is not None
    return found[0]
