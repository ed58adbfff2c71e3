"""A wallet user's accounts."""

from __future__ import annotations

from django.db import models

from abi.addresses import with_checksum
from keys.models import User
from legible.fields import NameField
from wallets import caip
from wallets.caip import Address


class Account(models.Model):
    """An address that a user shows to dapps, the same on all chains of a namespace."""

    user = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="wallet_accounts"
    )
    namespace = models.CharField(
        max_length=8, default=caip.EIP155, help_text="CAIP-2 namespace of its chains."
    )
    address = models.CharField(
        max_length=128, help_text="In lower case if the namespace ignores case."
    )
    label = NameField(max_length=60, blank=True)
    position = models.PositiveIntegerField(
        help_text="The account with the lowest position is the primary one, which dapps see first."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["position", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "namespace", "address"],
                name="wallet_account_once",
                violation_error_message="You already have this account.",
            )
        ]
        indexes = [models.Index(fields=["address"], name="wallet_account_by_address")]

    def __str__(self) -> str:
        return self.label or with_checksum(self.address)

    @property
    def can_sign(self) -> bool:
        """Whether the account has a key. Read many with `select_related("keystore")`."""
        return hasattr(self, "keystore")

    @property
    def named(self) -> Address:
        """The account's address, without a chain."""
        return Address(self.namespace, self.address)
