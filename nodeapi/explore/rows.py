"""Reads of blocks and transactions for pages; programs' requests go to `nodeapi.store`."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from networks.models import Network
from nodeapi.explore.summaries import TAIL_BYTES, TAIL_MARK, Summary, ends, summary
from nodeapi.models import Block, Transaction, TransactionRecord
from nodeapi.ports import RecordedTransaction
from nodeapi.receipts import HEAD_BYTES

_LONG_COLUMNS = ("header", "body", "full_document")
"""Of a block, not shown on a page."""

PAGE_SIZE = 100
"""Transactions on a page of a block."""

_SUMMARIES = """
    SELECT t.index, t.hash, substring(t.document FROM 1 FOR %s),
        substring(t.document FROM position(%s IN t.document) FOR %s), r.receipt
    FROM nodeapi_transaction t JOIN nodeapi_transactionrecord r
        ON r.block_id = t.block_id AND r.index = t.index
    WHERE t.block_id = %s AND t.index BETWEEN %s AND %s
    ORDER BY t.index
"""


@dataclass(frozen=True, slots=True)
class FoundTransaction:
    """A transaction at its place in a block, with what was recorded of it."""

    block: Block
    summary: Summary
    recorded: RecordedTransaction
    calls_size: int
    """Bytes of callTracer's answer."""


def find_block(network: Network, block_hash: bytes) -> Block | None:
    """Return a block, canonical or not, without its long columns."""
    blocks = Block.objects.defer(*_LONG_COLUMNS)
    return blocks.filter(network=network, hash=block_hash).first()


def relatives(block: Block) -> tuple[Block | None, list[Block]]:
    """Return a block's parent, if it has one, and its children, the canonical first."""
    blocks = Block.objects.filter(network_id=block.network_id)
    blocks = blocks.only("hash", "number", "is_canonical")
    parent = blocks.filter(hash=block.parent_hash).first()
    children = blocks.filter(number=block.number + 1, parent_hash=block.hash)
    return parent, list(children.order_by("-is_canonical", "pk")[:10])


def summaries(block: Block, page: int) -> list[Summary]:
    """Return a page of a block's transactions; page: from 1."""
    first = (page - 1) * PAGE_SIZE
    place = [block.pk, first, first + PAGE_SIZE - 1]
    with connection.cursor() as cursor:
        cursor.execute(_SUMMARIES, [HEAD_BYTES, TAIL_MARK, TAIL_BYTES, *place])
        return [
            summary(index, bytes(name), bytes(head), bytes(tail), bytes(receipt))
            for index, name, head, tail, receipt in cursor
        ]


def find_transaction(
    network: Network, name: bytes, block_hash: bytes | None
) -> FoundTransaction | None:
    """Return a transaction; name: its hash.

    block_hash: of the block that is meant; None: of its canonical one, or else of the
    one that came last.
    """
    places = Transaction.objects.filter(hash=name, block__network=network)
    if block_hash is not None:
        places = places.filter(block__hash=block_hash)
    places = places.select_related("block")
    places = places.defer(
        *(f"block__{column}" for column in ("document", *_LONG_COLUMNS))
    )
    found = places.order_by("-block__is_canonical", "-block_id").first()
    if found is None:
        return None
    record = TransactionRecord.objects.get(block_id=found.block_id, index=found.index)
    block, document = found.block, bytes(found.document)
    return FoundTransaction(
        block=block,
        summary=summary(found.index, name, *ends(document), bytes(record.receipt)),
        recorded=RecordedTransaction(
            block_hash=bytes(block.hash),
            block_number=block.number,
            index=found.index,
            hash=name,
            document=document,
            calls=bytes(record.calls),
            prestate=bytes(record.prestate),
            details=bytes(record.details),
        ),
        calls_size=record.calls_size,
    )
