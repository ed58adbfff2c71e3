"""The encrypted private keys of a wallet user's accounts."""

from __future__ import annotations

from django.db import models

from wallets.models.accounts import Account


class Keystore(models.Model):
    """The key of an account, encrypted with the user's passphrase.

    An account without one is watch-only. Its user can export it; the admin does not
    show it.
    """

    account = models.OneToOneField(
        Account, on_delete=models.CASCADE, related_name="keystore"
    )
    document = models.JSONField(
        editable=False,
        help_text="Web3 Secret Storage, version 3, created by this wallet.",
    )
    tries = models.PositiveSmallIntegerField(
        default=0, help_text="Wrong passphrases since the last correct one."
    )
    locked_until = models.DateTimeField(
        null=True, blank=True, help_text="Every passphrase is rejected until this time."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"keystore of {self.account}"
