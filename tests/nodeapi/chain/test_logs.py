"""The log index has rows for exactly the logs of canonical blocks."""

from __future__ import annotations

import pytest

from networks.models import Network
from nodeapi.chain.database import importer_connection
from nodeapi.chain.logs import (
    LogRow,
    delete_logs_above,
    insert_logs,
    insert_stored_logs,
)
from nodeapi.documents.receipts import log_members, split_logs, stored_logs
from nodeapi.logs.keys import POSITION_BITS, event_key, key
from nodeapi.models import Block as StoredBlock
from nodeapi.models import Log, TransactionRecord
from tests.support import chains, copies
from tests.support.rows import make_network
from tests.support.tokens import GENESIS, Tokens

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
    network = Network.objects.get(slug="sample")
    blocks = StoredBlock.objects.filter(network=network, is_canonical=True)
    with importer_connection() as connection, connection.transaction():
        delete_logs_above(connection, network.pk, 4)
        ids = (
            blocks.filter(number__gt=4).order_by("-number").values_list("id", flat=True)
        )
        insert_stored_logs(connection, network.pk, list(ids))
    assert stored("sample") == rows


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


def test_a_damaged_receipt_is_named() -> None:
    tokens = Tokens()
    tokens.grow(tokens.chain, 2, amount=5)
    chains.import_blocks("net", GENESIS, tokens.chain.blocks)
    damaged = StoredBlock.objects.get(network__slug="net", number=2)
    TransactionRecord.objects.filter(block=damaged).update(receipt=b"\x01damaged")
    with (
        importer_connection() as connection,
        connection.transaction(),
        pytest.raises(ValueError, match="block 2: "),
    ):
        insert_stored_logs(connection, damaged.network_id, [damaged.pk])
