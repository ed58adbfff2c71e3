"""What a dapp may do."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.utils import timezone

from wallets import scopes
from wallets.models.dapps import Dapp
from wallets.scopes import Scopes


class Session(models.Model):
    """What a dapp may do: one for each dapp of a user, over all its sockets.

    The row stays when the session ends, so that versions go on counting.
    """

    dapp = models.OneToOneField(Dapp, on_delete=models.CASCADE, related_name="session")
    stored_scopes = models.JSONField(
        default=list,
        db_column="scopes",
        help_text="As wallets.scopes.StoredScope; empty: there is no session.",
    )
    version = models.PositiveBigIntegerField(
        default=0, help_text="Counts the changes, so that what is old is known to be."
    )
    changed_by = models.CharField(
        max_length=36,
        blank=True,
        help_text="The socket whose call made the last change; empty: the wallet.",
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
        """What the dapp may do, nothing when the session is over."""
        if self.has_expired(timezone.now()):
            return {}
        return scopes.from_stored(self.stored_scopes)

    def has_expired(self, now: datetime) -> bool:
        """Return whether the session's time is over."""
        return self.expires_at is not None and self.expires_at <= now
