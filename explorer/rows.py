"""Reads of blocks and transactions for pages; programs' requests go to `nodeapi.store`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from django.db import connection

from evm.tracers.derived import RecordedTransaction
from explorer.summaries import TAIL_BYTES, TAIL_MARK, Summary, ends, summary
from networks.models import Network
from nodeapi.documents.receipts import HEAD_BYTES
from nodeapi.models import Block, Transaction, TransactionRecord

_LONG_COLUMNS = ("body", "full_document")
"""Columns of a block that no page needs."""

PAGE_SIZE = 100
"""Transactions on a page of a block."""

Place = tuple[int, int]
"""The id of a block, and the index of a transaction in it."""

_SUMMARIES = """
    SELECT t.block_id, t.index, t.hash, substring(t.document FROM 1 FOR %s),
        substring(t.document FROM position(%s IN t.document) FOR %s), r.receipt
    FROM nodeapi_transaction t JOIN nodeapi_transactionrecord r
        ON r.block_id = t.block_id AND r.index = t.index
    WHERE {}
    ORDER BY t.block_id, t.index
"""
_SUMMARIES_OF_BLOCK = _SUMMARIES.format("t.block_id = %s AND t.index BETWEEN %s AND %s")
_SUMMARIES_AT = _SUMMARIES.format(
    "(t.block_id, t.index) IN (SELECT * FROM unnest(%s::bigint[], %s::integer[]))"
)


@dataclass(frozen=True, slots=True)
class FoundTransaction:
    """A transaction in one of its blocks, with its trace records."""

    block: Block
    summary: Summary
    recorded: RecordedTransaction
    to: bytes | None
    """None for a contract creation."""
    input: bytes
    receipt: bytes
    """The receipt, packed by `nodeapi.documents.receipts`."""
    calls_size: int
    """Bytes of callTracer's result."""


def find_block(network: Network, block_hash: bytes) -> Block | None:
    """Return a block, canonical or not, or None. Its long columns are deferred."""
    blocks = Block.objects.defer(*_LONG_COLUMNS)
    return blocks.filter(network=network, hash=block_hash).first()


def find_canonical_block(network: Network, number: int) -> Block | None:
    """Return the canonical block of a height, or None. Its long columns are deferred."""
    blocks = Block.objects.defer(*_LONG_COLUMNS)
    return blocks.filter(network=network, number=number, is_canonical=True).first()


def relatives(block: Block) -> tuple[Block | None, list[Block]]:
    """Return a block's parent, None for block 0, and its children, canonical first."""
    blocks = Block.objects.filter(network_id=block.network_id)
    blocks = blocks.only("hash", "number", "is_canonical")
    parent = blocks.filter(hash=block.parent_hash).first()
    children = blocks.filter(number=block.number + 1, parent_hash=block.hash)
    return parent, list(children.order_by("-is_canonical", "pk")[:10])


def canonical_hash(network: Network, number: int) -> bytes | None:
    """Return the hash of the canonical block of a height, or None."""
    blocks = Block.objects.filter(network=network, number=number, is_canonical=True)
    found = blocks.values_list("hash", flat=True).first()
    return None if found is None else bytes(found)


def including_block(network: Network, name: bytes) -> Block | None:
    """Return the canonical block that contains a transaction, or None.

    name: the transaction's hash.
    """
    places = Transaction.objects.filter(
        hash=name, block__network=network, block__is_canonical=True
    )
    found = places.select_related("block").only(
        "block__number", "block__hash", "block__is_canonical"
    )
    place = found.first()
    return None if place is None else place.block


def summaries(block: Block, page: int) -> list[Summary]:
    """Return summaries of a block's transactions, one page of them.

    page: the number of the page, from 1.
    """
    first = (page - 1) * PAGE_SIZE
    wanted = [block.pk, first, first + PAGE_SIZE - 1]
    return list(_summaries(_SUMMARIES_OF_BLOCK, wanted).values())


def summaries_at(places: Sequence[Place]) -> dict[Place, Summary]:
    """Return summaries of the existing transactions by their places."""
    if not places:
        return {}
    return _summaries(
        _SUMMARIES_AT, [list(column) for column in zip(*places, strict=True)]
    )


def _summaries(query: str, wanted: list[Any]) -> dict[Place, Summary]:
    with connection.cursor() as cursor:
        cursor.execute(query, [HEAD_BYTES, TAIL_MARK, TAIL_BYTES, *wanted])
        return {
            (block_id, index): summary(
                index, bytes(name), bytes(head), bytes(tail), bytes(receipt)
            )
            for block_id, index, name, head, tail, receipt in cursor
        }


def find_transaction(
    network: Network, name: bytes, block_hash: bytes | None
) -> FoundTransaction | None:
    """Return a transaction in one of the blocks that contain it, or None.

    name: the transaction's hash.
    block_hash: the block's hash. None selects the canonical block if it contains the
        transaction, otherwise the block imported last.
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
    members = orjson.loads(document)
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
        to=None if members["to"] is None else bytes.fromhex(members["to"][2:]),
        input=bytes.fromhex(members["input"][2:]),
        receipt=bytes(record.receipt),
        calls_size=record.calls_size,
    )
