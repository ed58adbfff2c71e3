"""The index of the accounts that appear in the canonical blocks' call frames."""

from __future__ import annotations

from django.contrib.postgres.indexes import BrinIndex
from django.db import models

from networks.models import Network


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


class AppearanceBackfill(models.Model):
    """The blocks of a network whose appearances are not indexed yet.

    Such blocks were imported by a version without the index. `backfill_appearances` adds
    their rows, from the newest block to block 0, and deletes this row in the end.
    """

    network = models.OneToOneField(
        Network,
        primary_key=True,
        on_delete=models.CASCADE,
        related_name="appearance_backfill",
    )
    missing_below = models.BigIntegerField(
        help_text="Canonical blocks below this number have no rows."
    )

    def __str__(self) -> str:
        return f"appearances of network {self.network_id} below {self.missing_below}"
