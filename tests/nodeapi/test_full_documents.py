"""Migrations give blocks of old their full documents, as today's are packed."""

from __future__ import annotations

import pytest
import zstandard
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from nodeapi.documents.blocks import unpack_full_block
from nodeapi.models import Block
from tests.support.records import Recorded, add_recorded_block
from tests.support.rows import make_network

pytestmark = pytest.mark.django_db(transaction=True)

WITHOUT = [("nodeapi", "0004_record_for_each_transaction")]
AS_FRAMES = [("nodeapi", "0006_side_blocks")]


def migrate_back_and_forth(before: list[tuple[str, str]] = WITHOUT) -> None:
    try:
        MigrationExecutor(connection).migrate(before)
    finally:
        executor = MigrationExecutor(connection)
        executor.migrate(executor.loader.graph.leaf_nodes())


def full_documents() -> dict[int, bytes]:
    return {
        number: unpack_full_block(bytes(packed))
        for number, packed in Block.objects.values_list("number", "full_document")
    }


def test_blocks_of_old_are_packed() -> None:
    network = make_network()
    sent = [Recorded(name) for name in "abcdefghijkl"]
    add_recorded_block(network, "full", 1, sent)
    for number in range(2, 203):  # more than are read at once
        add_recorded_block(network, f"empty {number}", number, [])
    before = full_documents()
    assert len(before) == 202
    migrate_back_and_forth()
    assert full_documents() == before


def test_frames_of_old_are_packed_again() -> None:
    network = make_network()
    for number, name in enumerate(["a frame", "damaged", "packed"], start=1):
        add_recorded_block(network, name, number, [Recorded(name)])
    before = full_documents()
    compress = zstandard.ZstdCompressor().compress
    damaged = compress(before[2])[:-1]
    frames = {1: compress(before[1]), 2: damaged}
    for number, frame in frames.items():
        Block.objects.filter(number=number).update(full_document=frame)
    assert unpack_full_block(frames[1]) == before[1], "served during the migration"
    migrate_back_and_forth(AS_FRAMES)
    assert bytes(Block.objects.get(number=2).full_document) == damaged
    with pytest.raises(ValueError, match="document is damaged"):
        unpack_full_block(damaged)
    Block.objects.filter(number=2).delete()
    del before[2]
    assert full_documents() == before


def test_index_that_a_killed_migration_left_is_made_anew() -> None:
    executor = MigrationExecutor(connection)
    executor.migrate([("nodeapi", "0005_full_document")])
    with connection.cursor() as cursor:
        cursor.execute("CREATE INDEX block_side ON nodeapi_block (number)")
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE indexname = 'block_side'")
        assert "(network_id, number) WHERE (NOT is_canonical)" in cursor.fetchone()[0]


def test_the_database_leaves_the_column_as_it_is() -> None:
    migrate_back_and_forth()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attstorage, attnotnull FROM pg_attribute"
            " WHERE attrelid = 'nodeapi_block'::regclass"
            " AND attname = 'full_document'"
        )
        assert cursor.fetchone() == ("e", True)
