"""Database size of trace records, estimated from the newest blocks."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, F, Func, IntegerField, Sum
from django.db.models.functions import Coalesce

from networks.models import Network
from nodeapi.models import Block, TransactionRecord

BLOCKS = 100
"""Newest blocks that are looked at: some thousand rows, read in milliseconds."""

_COLUMNS = ("receipt", "calls", "prestate", "details")


@dataclass(frozen=True, slots=True)
class RecordSizes:
    """Stored size of the trace records and receipts of some blocks.

    blocks, transactions: their numbers. total: bytes.
    """

    blocks: int
    transactions: int
    total: int

    def __str__(self) -> str:
        if not self.transactions:
            return "no transactions yet"
        return (
            f"{self.total / self.transactions:,.0f} bytes per transaction, "
            f"{self.total / self.blocks:,.0f} bytes per block "
            f"(newest {self.blocks} blocks)"
        )


def newest_record_sizes(network: Network) -> RecordSizes:
    """Return the stored size of the records of a network's newest canonical blocks."""
    if network.head_number is None:
        return RecordSizes(0, 0, 0)
    newest = {"network": network, "number__gt": network.head_number - BLOCKS}
    blocks = Block.objects.filter(is_canonical=True, **newest)
    lengths = [
        Func(F(column), function="octet_length", output_field=IntegerField())
        for column in _COLUMNS
    ]
    found = TransactionRecord.objects.filter(block__in=blocks.values("pk")).aggregate(
        transactions=Count("index"),
        total=Coalesce(Sum(lengths[0] + lengths[1] + lengths[2] + lengths[3]), 0),
    )
    return RecordSizes(blocks.count(), found["transactions"], found["total"])
