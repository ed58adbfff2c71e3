"""The local pool: submitted transactions of networks without upstreams."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from evm.hexadecimal import to_hex
from networks.models import Network


class PooledTransaction(models.Model):
    """A submitted transaction that is in no block.

    A row may be outdated: its nonce is used, its sender can't pay any more, or it has
    expired. `nodeapi.mempool.alive` has the condition.
    """

    network = models.ForeignKey(
        Network,
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,  # the constraints below begin with it
    )
    hash = models.BinaryField(max_length=32)
    sender = models.BinaryField(max_length=20)
    nonce = models.DecimalField(max_digits=20, decimal_places=0)
    type = models.SmallIntegerField()
    cost = models.DecimalField(
        max_digits=160,
        decimal_places=0,
        help_text="Wei that the sender needs: value, and the highest fees.",
    )
    fee = models.DecimalField(
        max_digits=78, decimal_places=0, help_text="Highest wei per gas."
    )
    tip = models.DecimalField(
        max_digits=78, decimal_places=0, help_text="Highest priority fee, per gas."
    )
    blob_fee = models.DecimalField(
        max_digits=78, decimal_places=0, help_text="Highest wei per blob gas, or 0."
    )
    authorities = ArrayField(
        models.BinaryField(max_length=20),
        help_text="Signers of its authorizations (EIP-7702).",
    )
    size = models.IntegerField(help_text="Bytes of `raw`.")
    raw = models.BinaryField(help_text="As EIP-2718 encodes it, without a sidecar.")
    network_form = models.BinaryField(
        db_default=b"",
        help_text="The same with its sidecar, as it was sent. Empty for other types.",
    )
    document = models.BinaryField(help_text="The pending transaction object as JSON.")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["network", "hash"], name="pooled_hash"),
            models.UniqueConstraint(
                fields=["network", "sender", "nonce"], name="pooled_nonce"
            ),
        ]

    def __str__(self) -> str:
        return to_hex(self.hash)
