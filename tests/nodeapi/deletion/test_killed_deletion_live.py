"""A deletion whose process is killed, between batches or within one, is continued."""

from __future__ import annotations

import sys
from pathlib import Path

import psycopg
import pytest

from networks.models import Network, NetworkDeletion, NetworkState
from networks.services import change_state
from nodeapi.chain.database import importer_connection
from nodeapi.deletion import requests
from nodeapi.deletion.progress import decode
from nodeapi.deletion.requests import request_deletion, tables_of
from nodeapi.models import AccountVersion, StorageVersion
from server.forking import Forked
from tests.support import chains, commands, sample
from tests.support.service import test_database_url
from tests.support.waiting import PATIENCE_SECONDS, wait_until

BLOCKS = 12

FURTHER_ROWS = 30_000
"""Rows that are added to each version table, six batches."""

LOCK = 7
"""Advisory lock that the test holds to stop the job within a batch."""

HELD_UP = f"""
    CREATE FUNCTION held_up() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_advisory_xact_lock({LOCK}); RETURN NULL; END $$;
    CREATE TRIGGER held_up AFTER DELETE ON nodeapi_storageversion
        FOR EACH STATEMENT EXECUTE FUNCTION held_up()
"""


def start(folder: Path) -> Forked:
    """Continue the deletion, whose messages are in the folder."""
    return commands.start(
        *("delete_network", "gone", "--resume"),
        output=folder / "output",
        errors=folder / "errors",
        environ={"DATABASE_URL": test_database_url()},
    )


def kill(process: Forked) -> None:
    assert process.poll() is None
    process.kill()
    process.wait()


def deleted(table: str) -> int:
    """Return the number of rows of a table whose deletion is committed."""
    progress = decode(NetworkDeletion.objects.get().tables)
    return sum(one.deleted for one in progress if one.table == table)


def add_versions(network: Network) -> None:
    """Add rows of one address to both version tables."""
    values = (network.pk, FURTHER_ROWS)
    with importer_connection() as connection:
        connection.execute(
            "INSERT INTO nodeapi_accountversion (network_id, address, block_number)"
            " SELECT %s, '\\xaa', n FROM generate_series(1, %s) AS n",
            values,
        )
        connection.execute(
            "INSERT INTO nodeapi_storageversion"
            " (network_id, address, slot, block_number, value)"
            " SELECT %s, '\\xaa', '\\x00', n, '\\x01' FROM generate_series(1, %s) AS n",
            values,
        )


@pytest.mark.django_db(transaction=True)
def test_killed_deletion_goes_on_and_counts_each_row_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Other tests can leave tables of any size, whose rows would be estimated.
    monkeypatch.setattr(requests, "COUNTED_BYTES", sys.maxsize)
    for slug in ("kept", "gone"):
        chains.import_blocks(slug, sample.genesis(), sample.raw_blocks()[:BLOCKS])
    gone = Network.objects.get(slug="gone")
    change_state(network=gone, state=NetworkState.RETIRED)
    add_versions(gone)
    before = chains.rows("kept")
    request_deletion(gone)
    stated = {one.table: one.about for one in tables_of(gone)}
    accounts, slots = AccountVersion._meta.db_table, StorageVersion._meta.db_table
    for target in (1, 12_000):  # at a random time, between two batches or within one
        process = start(tmp_path)
        wait_until(lambda least=target: deleted(accounts) >= least)
        kill(process)
    with psycopg.connect(test_database_url(), autocommit=True) as holder:
        holder.execute(HELD_UP)
        try:
            kill_within_a_batch(holder, slots, tmp_path)
        finally:
            holder.execute("DROP FUNCTION held_up CASCADE")
    status = start(tmp_path).wait(PATIENCE_SECONDS)
    assert status == 0, (tmp_path / "errors").read_text()
    assert (tmp_path / "output").read_text().endswith("gone: deleted\n")
    assert list(Network.objects.values_list("slug", flat=True)) == ["kept"]
    assert not AccountVersion.objects.filter(network_id=gone.pk).exists()
    assert not StorageVersion.objects.filter(network_id=gone.pk).exists()
    assert chains.rows("kept") == before
    for one in decode(NetworkDeletion.objects.get().tables):
        assert one.deleted == stated[one.table], one.table


def kill_within_a_batch(
    holder: psycopg.Connection[tuple[object, ...]], table: str, folder: Path
) -> None:
    """Kill the job after it has deleted rows of a batch and before the commit."""
    rows = StorageVersion.objects.count()
    holder.execute("SELECT pg_advisory_lock(%s)", (LOCK,))
    process = start(folder)

    def is_held_up() -> bool:
        waiting = holder.execute(
            "SELECT count(*) FROM pg_locks"
            " WHERE locktype = 'advisory' AND objid = %s AND NOT granted",
            (LOCK,),
        ).fetchone()
        return waiting == (1,)

    wait_until(is_held_up)
    kill(process)
    holder.execute("SELECT pg_advisory_unlock(%s)", (LOCK,))
    assert deleted(table) == 0
    assert StorageVersion.objects.count() == rows
