"""Blocks, transactions and trace records, stored in the form of responses."""

from __future__ import annotations

from django.db import models

from evm.headers import decode_header
from networks.models import Network


class Block(models.Model):
    """A block that was executed and verified, canonical or not."""

    network = models.ForeignKey(Network, on_delete=models.CASCADE, related_name="+")
    hash = models.BinaryField(max_length=32)
    number = models.BigIntegerField()
    parent_hash = models.BinaryField(max_length=32)
    is_canonical = models.BooleanField()
    total_difficulty = models.DecimalField(max_digits=78, decimal_places=0)
    state_root = models.BinaryField(max_length=32)
    gas_used = models.BigIntegerField()
    transaction_count = models.IntegerField()
    header = models.BinaryField(help_text="RLP of the header.")
    body = models.BinaryField(
        help_text="RLP of [transactions, uncles, withdrawals if there are any]."
    )
    document = models.BinaryField(
        help_text="The block object as JSON: totalDifficulty first, and last the "
        "transactions, as hashes."
    )
    transactions_offset = models.IntegerField(
        help_text="Offset in the document at which the array of transactions begins."
    )
    full_document = models.BinaryField(
        help_text="The document with transaction objects, as an LZ4 block."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["network", "hash"], name="block_hash"),
            models.UniqueConstraint(
                fields=["network", "number"],
                condition=models.Q(is_canonical=True),
                name="block_canonical_number",
            ),
        ]
        indexes = [
            models.Index(fields=["network", "number"], name="block_number"),
            models.Index(
                fields=["network", "number"],
                condition=models.Q(is_canonical=False),
                name="block_side",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.number} 0x{bytes(self.hash).hex()}"

    @property
    def timestamp(self) -> int:
        """Unix seconds, up to 2**64 - 1, decoded from the header."""
        return decode_header(bytes(self.header)).timestamp


class Transaction(models.Model):
    """A transaction at its place in a block."""

    pk = models.CompositePrimaryKey("block_id", "index")
    block = models.ForeignKey(
        Block,
        on_delete=models.CASCADE,
        related_name="transactions",
        db_index=False,
        db_constraint=False,  # written in one go with its block
    )
    index = models.IntegerField()
    hash = models.BinaryField(max_length=32)
    document = models.BinaryField(help_text="The transaction object as JSON.")

    class Meta:
        indexes = [models.Index(fields=["hash"], name="transaction_hash")]

    def __str__(self) -> str:
        return f"{self.index} 0x{bytes(self.hash).hex()}"


class SideDiff(models.Model):
    """The changes that a non-canonical block makes to its parent's state."""

    block = models.OneToOneField(
        Block, primary_key=True, on_delete=models.CASCADE, related_name="side_diff"
    )
    diff = models.BinaryField(help_text="evm.changes, encoded.")

    def __str__(self) -> str:
        return f"diff of {self.block_id}"


class BlockAccessList(models.Model):
    """What the execution of a block read and changed in the state (EIP-7928).

    It belongs to the block, canonical or not. Blocks that an earlier version imported
    have none until `backfill_access_lists` adds it.
    """

    block = models.OneToOneField(
        Block, primary_key=True, on_delete=models.CASCADE, related_name="access_list"
    )
    list = models.BinaryField(help_text="RLP of the list, packed by `evm.tracers`.")
    gas = models.BinaryField(
        help_text="From Amsterdam on, RLP of [execution gas, state gas] of each "
        "transaction. Before, there is one kind of gas, and this is empty."
    )

    def __str__(self) -> str:
        return f"access list of {self.block_id}"


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
