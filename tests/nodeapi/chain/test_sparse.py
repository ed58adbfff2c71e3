"""The import of blocks on a sparse state gives the rows of an import on a complete one."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection as django_connection

from networks.models import Network
from nodeapi.chain.database import importer_connection
from nodeapi.chain.importers import FollowingImporter
from nodeapi.chain.networks import stored_config
from tests.support import chains, sample, sparse

pytestmark = pytest.mark.django_db(transaction=True)

CHECKPOINT = 68


def _rows(table: str, columns: str, network_id: int, above: int) -> set[Any]:
    with django_connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {columns} FROM nodeapi_{table} WHERE network_id = %s"
            " AND block_number > %s",
            [network_id, above],
        )
        return {
            tuple(bytes(v) if isinstance(v, memoryview) else v for v in row)
            for row in cursor.fetchall()
        }


def test_blocks_after_a_checkpoint_change_what_they_change_on_a_complete_state() -> (
    None
):
    chains.import_blocks("full", sample.genesis(), sample.raw_blocks())
    chains.import_blocks("sparse", sample.genesis(), sample.raw_blocks()[:CHECKPOINT])
    full = Network.objects.get(slug="full")
    network = Network.objects.get(slug="sparse")
    sparse.forget_state("sparse")
    network.refresh_from_db()
    above = network.checkpoint_number
    with importer_connection() as connection:
        prover = sparse.FullProver(connection, network.pk, full.pk)
        importer = FollowingImporter(
            connection, network.pk, stored_config(network.pk), prover=prover
        )
        for raw in sample.raw_blocks()[CHECKPOINT:]:
            importer.add(raw)
        importer.close()
    network.refresh_from_db()
    assert network.head_hash == full.head_hash
    for table, columns in {
        "accountversion": "address, block_number, nonce, balance, code_hash, storage_root",
        "storageversion": "address, slot, block_number, value",
    }.items():
        assert _rows(table, columns, network.pk, above) == _rows(
            table, columns, full.pk, above
        )
