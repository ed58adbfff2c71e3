"""The activity log of a user's wallet."""

from __future__ import annotations

from django.db import models

from keys.models import User
from wallets.models.dapps import Dapp


class Event(models.TextChoices):
    """The kinds of log entries."""

    PAIRED = "paired", "dapp connected"
    ASKED = "asked", "request made"
    REJECTED = "rejected", "request rejected"
    EXPIRED = "expired", "request expired"
    WITHDRAWN = "withdrawn", "request withdrawn"
    GRANTED = "granted", "session granted"
    CHANGED = "changed", "session changed"
    REVOKED = "revoked", "session ended"
    SESSION_EXPIRED = "session_expired", "session expired"
    DISCONNECTED = "disconnected", "dapp disconnected"
    BLOCKED = "blocked", "dapp blocked"
    UNBLOCKED = "unblocked", "dapp unblocked"
    ACCOUNT_ADDED = "account_added", "account added"
    ACCOUNT_REMOVED = "account_removed", "account removed"
    KEY_ADDED = "key_added", "key added"
    KEY_SAVED = "key_saved", "keystore downloaded"
    KEY_LOCKED = "key_locked", "key locked after wrong passphrases"
    KEY_DELETED = "key_deleted", "key deleted"
    SIGNED = "signed", "signature given"
    NOT_SENT = "not_sent", "transaction failed"


class Actor(models.TextChoices):
    """The originator of a logged change. The label is shown to the user."""

    USER = "user", "you"
    DAPP = "dapp", "the dapp"
    STAFF = "staff", "support"
    SYSTEM = "system", "the wallet"


class Activity(models.Model):
    """An entry of a user's log, written in the transaction of the change.

    dapp_name: kept when the dapp is deleted.
    details: the changed values, with the API's names.
    """

    user = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="wallet_activities"
    )
    dapp = models.ForeignKey(
        Dapp, null=True, on_delete=models.SET_NULL, related_name="activities"
    )
    dapp_name = models.CharField(max_length=300, blank=True)
    event = models.CharField(max_length=16, choices=Event.choices)
    actor = models.CharField(max_length=6, choices=Actor.choices)
    remote_address = models.GenericIPAddressField(null=True, blank=True)
    details = models.JSONField(default=dict, blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "activities"
        indexes = [
            models.Index(fields=["user", "-id"], name="wallet_log_of_user"),
            models.Index(fields=["event", "-id"], name="wallet_log_by_event"),
            # The admin's charts and pruning use this index.
            models.Index(fields=["at", "event"], name="wallet_log_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.get_event_display()}: {self.dapp_name}"
