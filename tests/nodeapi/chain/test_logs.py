"""The log index has rows for exactly the logs of canonical blocks."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection as django_connection

from evm.blocks import Block
from networks.models import Network
from nodeapi.chain.backfill import Backfill
from nodeapi.chain.database import importer_connection
from nodeapi.chain.logs import LogRow, backfill_logs, insert_logs, insert_stored_logs
from nodeapi.documents.receipts import log_members, split_logs, stored_logs
from nodeapi.logs.keys import POSITION_BITS, event_key, key
from nodeapi.models import Block as StoredBlock
from nodeapi.models import Log, LogBackfill, TransactionRecord
from tests.support import chains, copies
from tests.support.rows import make_network
from tests.support.tokens import GENESIS, Tokens
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def expected(slug: str) -> list[tuple[int | None, ...]]:
    """Return the rows that follow from the receipts of a network's canonical blocks."""
    found: list[tuple[int | None, ...]] = []
    for block in StoredBlock.objects.filter(network__slug=slug, is_canonical=True):
        records = TransactionRecord.objects.filter(block=block).order_by("index")
        index = 0
        for record in records:
            for log in split_logs(stored_logs(bytes(record.receipt))):
                address, topics = log_members(log)
                values = [bytes.fromhex(topic[2:]) for topic in topics]
                account = bytes.fromhex(address[2:])
                keys = [*map(key, values), *[None] * (4 - len(values))]
                found.append(
                    (
                        (block.number << POSITION_BITS) + index,
                        *(block.number, record.index, key(account)),
                        *(event_key(account, values), *keys),
                    )
                )
                index += 1
    return sorted(found, key=lambda row: row[0] or 0)


def stored(slug: str) -> list[tuple[int | None, ...]]:
    return list(
        Log.objects.filter(network__slug=slug)
        .order_by("position")
        .values_list(
            *("position", "block_number", "transaction_index", "address"),
            *("event", "topic0", "topic1", "topic2", "topic3"),
        )
    )


def without_index(slug: str) -> Network:
    """Bring a network to the state after an upgrade from a version without the index."""
    network = Network.objects.get(slug=slug)
    assert network.head_number is not None
    Log.objects.filter(network=network).delete()
    LogBackfill.objects.create(network=network, missing_below=network.head_number + 1)
    return network


def backfill(*arguments: str) -> str:
    out = StringIO()
    call_command("backfill_logs", *arguments, stdout=out)
    return out.getvalue()


def test_import_writes_the_rows_that_follow_from_receipts() -> None:
    copies.sample_chain()
    rows = stored("sample")
    assert rows == expected("sample")
    assert len(rows) > 20


def test_rows_have_a_key_for_each_topic() -> None:
    network = make_network()
    topics = [bytes([number]) * 32 for number in range(4)]
    rows = [LogRow(count, b"\xaa" * 20, topics[:count]) for count in range(5)]
    with importer_connection() as connection:
        insert_logs(connection, network.pk, [(7, rows)])
    for count, row in enumerate(stored(network.slug)):
        keys = [*map(key, topics[:count]), *[None] * (4 - count)]
        event = event_key(b"\xaa" * 20, topics[:count])
        place = (7 << POSITION_BITS) + count, 7, count
        assert row == (*place, key(b"\xaa" * 20), event, *keys)


def test_index_is_rebuilt_from_receipts() -> None:
    copies.sample_chain()
    rows = stored("sample")
    without_index("sample")
    assert "blocks to index" in backfill()
    assert stored("sample") == rows
    assert not LogBackfill.objects.exists()
    assert backfill("--network", "sample").endswith("of all blocks are indexed\n")
    with pytest.raises(CommandError, match="no network 'other'"):
        backfill("--network", "other")


def test_rows_follow_reorganisations() -> None:
    tokens = Tokens()
    short, long = tokens.chain.fork(), tokens.chain.fork()
    first = tokens.grow(short, 2, amount=5)
    second = tokens.grow(long, 3, amount=6)
    third = tokens.grow(short, 2, amount=7)
    chains.import_blocks("net", GENESIS, [*tokens.chain.blocks, *first])
    for branch, length in ((second, 3), (third, 4)):
        chains.import_blocks("net", GENESIS, branch)
        rows = stored("net")
        assert rows == expected("net")
        assert len(rows) == 1 + 2 * length


def test_backfill_continues_where_it_was_interrupted() -> None:
    tokens = Tokens()
    blocks = tokens.grow(tokens.chain, 5, amount=5)
    chains.import_blocks("net", GENESIS, tokens.chain.blocks[: -len(blocks)])
    chains.import_blocks("net", GENESIS, blocks[:3])
    network = without_index("net")
    with importer_connection() as connection:
        assert backfill_logs(connection, network.pk, blocks=2) == 3
    assert [row[1] for row in stored("net")] == [3, 3, 4, 4]
    chains.import_blocks("net", GENESIS, blocks[3:])
    assert [row[1] for row in stored("net")] == [3, 3, 4, 4, 5, 5, 6, 6]
    backfill()
    assert stored("net") == expected("net")


def test_reorganisation_below_the_backfill_indexes_its_blocks() -> None:
    tokens = Tokens()
    tokens.grow(tokens.chain, 1, amount=5)
    short, long = tokens.chain.fork(), tokens.chain.fork()
    chains.import_blocks(
        "net", GENESIS, [*tokens.chain.blocks, *tokens.grow(short, 2, amount=6)]
    )
    without_index("net")
    chains.import_blocks("net", GENESIS, tokens.grow(long, 3, amount=7))
    assert LogBackfill.objects.get().missing_below == 3
    assert [row[1] for row in stored("net")] == [3, 3, 4, 4, 5, 5]
    backfill()
    assert stored("net") == expected("net")


def test_reorganisation_waits_for_a_running_backfill() -> None:
    tokens = Tokens()
    short, long = tokens.chain.fork(), tokens.chain.fork()
    removed, added = tokens.grow(short, 3, amount=6), tokens.grow(long, 4, amount=7)
    chains.import_blocks("net", GENESIS, [*tokens.chain.blocks, *removed])
    # Blocks of the former branch: 2, 3 and 4.
    network = without_index("net")
    with ThreadPoolExecutor(1) as threads, importer_connection() as connection:
        moves: list[Future[None]] = []

        def insert(block_ids: Sequence[int]) -> None:
            """Insert the rows of the former branch while the new one is imported."""
            moves.append(threads.submit(reorganise, added))
            wait_until(waits_for_lock)
            insert_stored_logs(connection, network.pk, block_ids)

        assert Backfill(connection, network.pk, "nodeapi_logbackfill").index(2, insert)
        moves[0].result()
    assert LogBackfill.objects.get().missing_below == 2
    assert [row[1] for row in stored("net")] == [2, 2, 3, 3, 4, 4, 5, 5]
    backfill()
    assert stored("net") == expected("net")


def reorganise(blocks: Sequence[Block]) -> None:
    """Import blocks in another thread, whose connections are closed."""
    try:
        chains.import_blocks("net", GENESIS, blocks)
    finally:
        django_connection.close()


def waits_for_lock() -> bool:
    """Return whether a connection to the database waits for a lock of another one."""
    with django_connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchone()[0])


def test_damaged_receipt_ends_the_backfill_without_a_change() -> None:
    tokens = Tokens()
    tokens.grow(tokens.chain, 2, amount=5)
    chains.import_blocks("net", GENESIS, tokens.chain.blocks)
    without_index("net")
    damaged = StoredBlock.objects.get(network__slug="net", number=2)
    TransactionRecord.objects.filter(block=damaged).update(receipt=b"\x01damaged")
    with pytest.raises(CommandError, match="net: block 2: "):
        backfill()
    assert not stored("net")
    assert LogBackfill.objects.get().missing_below == 4
