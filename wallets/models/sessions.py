"""Sessions of dapps."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.utils import timezone

from wallets import scopes
from wallets.models.dapps import Dapp
from wallets.scopes import Scopes


class Session(models.Model):
    """The permissions of a dapp: one session for all sockets of a user's dapp.

    The row remains when the session ends, so that its version numbers keep growing.
    """

    dapp = models.OneToOneField(Dapp, on_delete=models.CASCADE, related_name="session")
    stored_scopes = models.JSONField(
        "scopes",
        default=list,
        db_column="scopes",
        help_text="The granted scopes. Empty: there is no session.",
    )
    version = models.PositiveBigIntegerField(
        default=0, help_text="Number of changes, by which stale copies are detected."
    )
    changed_by = models.CharField(
        max_length=36,
        blank=True,
        help_text="Id of the socket whose call made the last change. Empty: the wallet.",
    )
    changed_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True, db_index=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["id"],
                condition=~models.Q(stored_scopes=[]),
                name="wallet_session_granted",
            )
        ]

    def __str__(self) -> str:
        return f"session of {self.dapp}"

    @property
    def scopes(self) -> Scopes:
        """The granted scopes. Empty if the session has ended."""
        if self.has_expired(timezone.now()):
            return {}
        return scopes.from_stored(self.stored_scopes)

    def has_expired(self, now: datetime) -> bool:
        """Return whether the session's expiry has passed."""
        return self.expires_at is not None and self.expires_at <= now
