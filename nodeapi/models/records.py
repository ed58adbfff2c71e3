"""Trace records: stored results of each transaction's execution."""

from __future__ import annotations

from django.db import models

from nodeapi.models.blocks import Block


class TransactionRecord(models.Model):
    """The trace record of a transaction in a block, packed by `evm.tracers`.

    It belongs to the block, canonical or not. Every transaction of a block has a
    record, which deferred triggers enforce at the commit.
    """

    pk = models.CompositePrimaryKey("block_id", "index")
    block = models.ForeignKey(
        Block,
        on_delete=models.CASCADE,
        related_name="records",
        db_index=False,
        db_constraint=False,  # written in one go with its block
    )
    index = models.IntegerField(help_text="The transaction's place in the block.")
    calls_size = models.BigIntegerField(
        help_text="Size in bytes of the callTracer answer."
    )
    prestate_size = models.BigIntegerField(
        help_text="Size in bytes of the prestateTracer answer."
    )
    receipt = models.BinaryField(help_text="The receipt object.")
    calls = models.BinaryField(help_text="The callTracer answer, without the input.")
    prestate = models.BinaryField(
        help_text="The prestateTracer answer, without the contracts' code."
    )
    details = models.BinaryField(
        help_text="Additional data for the answers of other tracers."
    )

    class Meta:
        verbose_name = "trace record"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(
                    index__gte=0, calls_size__gte=0, prestate_size__gte=0
                ),
                name="record_sizes",
            )
        ]

    def __str__(self) -> str:
        return f"record of {self.block_id}/{self.index}"
