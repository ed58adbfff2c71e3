"""The private keys of a wallet user's accounts, each locked by a passphrase."""

from __future__ import annotations

from django.db import models

from wallets.models.accounts import Account


class Keystore(models.Model):
    """The key of an account, encrypted: only the user knows what opens it.

    An account without one is watch-only. Pages show it to its user, the admin to nobody.
    """

    account = models.OneToOneField(
        Account, on_delete=models.CASCADE, related_name="keystore"
    )
    document = models.JSONField(
        editable=False, help_text="Web3 Secret Storage, version 3, made here."
    )
    tries = models.PositiveSmallIntegerField(
        default=0, help_text="Passphrases since the last right one."
    )
    locked_until = models.DateTimeField(
        null=True, blank=True, help_text="Until then no passphrase opens it."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"keystore of {self.account}"
