"""The indexes of canonical blocks: accounts in their call frames, and logs.

The logs themselves are part of the stored receipts.
"""

from __future__ import annotations

from django.contrib.postgres.indexes import BrinIndex
from django.db import models

from networks.models import Network
from nodeapi.logs.keys import POSITION_BITS


class Appearance(models.Model):
    """The transactions of a canonical block in whose call frames an account appears.

    Rows are derived from trace records (`nodeapi.chain.appearances`).
    """

    pk = models.CompositePrimaryKey("network_id", "address", "block_number")
    network = models.ForeignKey(
        Network,
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
        db_constraint=False,  # as for versions: many rows of the importer's network
    )
    address = models.BinaryField(
        max_length=20,
        help_text="Empty: transactions without a complete trace record.",
    )
    block_number = models.BigIntegerField()
    places = models.BinaryField(
        help_text="Four bytes for each transaction: 16 × its index + the roles."
    )
    is_creation = models.BooleanField(
        help_text="Whether one of the transactions created the contract."
    )
    is_author = models.BooleanField(
        help_text="Whether the account got a mining reward of the block."
    )

    class Meta:
        indexes = [
            BrinIndex(
                fields=["block_number"], name="appearance_block", autosummarize=True
            ),
            models.Index(
                fields=["network", "address", "block_number"],
                condition=models.Q(is_creation=True),
                name="appearance_creation",
            ),
        ]

    def __str__(self) -> str:
        return f"0x{bytes(self.address).hex()} in {self.block_number}"


class Log(models.Model):
    """A log of a canonical block, with the keys of its address and topics.

    The keys are those of `nodeapi.logs.keys`. Each index begins with one of them and
    continues with the block's number, so that the logs of a filter are read in the order
    of the blocks, and the read stops at a limit.
    """

    pk = models.CompositePrimaryKey("network_id", "position")
    network = models.ForeignKey(
        Network,
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,  # the primary key begins with it
        db_constraint=False,  # would be checked for each of thousands of rows
    )
    position = models.BigIntegerField(
        help_text="Block number × 2**24 + index of the log in its block."
    )
    block_number = models.BigIntegerField()
    transaction_index = models.IntegerField()
    address = models.BigIntegerField()
    event = models.BigIntegerField(
        null=True, help_text="Key of the address and topic 0 together."
    )
    topic0 = models.BigIntegerField(null=True)
    topic1 = models.BigIntegerField(null=True)
    topic2 = models.BigIntegerField(null=True)
    topic3 = models.BigIntegerField(null=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["network", "address", "block_number"], name="log_address"
            ),
            *(
                models.Index(
                    fields=["network", name, "block_number"],
                    condition=models.Q(**{f"{name}__isnull": False}),
                    name=f"log_{name}",
                )
                for name in ("event", "topic0", "topic1", "topic2", "topic3")
            ),
        ]

    def __str__(self) -> str:
        index = self.position % 2**POSITION_BITS
        return f"log {index} of block {self.block_number}"
