"""The audit log of keys. Rows are only added."""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.db.models.expressions import RawSQL
from django.utils import timezone

from keys.models.api_keys import ApiKey
from keys.models.append_only import AppendOnly
from keys.models.members import Role
from keys.models.tokens import ApiToken
from keys.models.users import User


class EventType(models.TextChoices):
    """Types of events. Their values never change."""

    CREATED = "key.created", "created"
    REVEALED = "key.revealed", "secret revealed"
    UPDATED = "key.updated", "updated"
    ANNOTATED = "key.annotated", "staff note changed"
    ROLLED = "key.rolled", "rolled"
    REVOKED = "key.revoked", "secret revoked"
    DISABLED = "key.disabled", "disabled"
    ENABLED = "key.enabled", "enabled"
    DELETED = "key.deleted", "deleted"
    OWNER_DISABLED = "owner.disabled", "owner's account disabled"
    OWNER_ENABLED = "owner.enabled", "owner's account enabled"
    ENTITLEMENT_GRANTED = "entitlement.granted", "entitlement granted"
    ENTITLEMENT_CHANGED = "entitlement.changed", "entitlement changed"
    ENTITLEMENT_REVOKED = "entitlement.revoked", "entitlement withdrawn"
    LIMITS_CHANGED = "limits.changed", "limits changed"
    ALLOWLIST_CHANGED = "allowlist.changed", "allowlist changed"
    ACCESS_REQUESTED = "access.requested", "access requested"
    ACCESS_APPROVED = "access.approved", "access approved"
    ACCESS_DECLINED = "access.declined", "access declined"
    ACCESS_WITHDRAWN = "access.withdrawn", "request for access withdrawn"
    USED_AFTER_REVOCATION = "key.used_after_revocation", "used after its revocation"


SETTLED_AFTER = timedelta(hours=1)
"""An event's transaction has ended after this time, with a wide margin."""

_SETTLED = """
    age("keys_keyevent".xmin) > age(pg_snapshot_xmin(pg_current_snapshot())::xid)
"""
# Written by a transaction that is older than all in progress. Its number is that of
# the savepoint in which the event was written, given after the event's own: a change that
# has written an event before this one is older.
# Source: https://www.postgresql.org/docs/current/functions-info.html


class KeyEventQuerySet(models.QuerySet["KeyEvent"]):
    """Queries of events."""

    def settled(self) -> KeyEventQuerySet:
        """Return the events before which no further event can appear.

        Events are numbered when they are inserted and become visible when their
        transaction commits. Of two concurrent events, the one with the higher number
        may become visible first. A client that continues after that number would never
        see the other event.
        """
        is_settled = RawSQL(_SETTLED, [], output_field=models.BooleanField())
        is_old = models.Q(at__lt=timezone.now() - SETTLED_AFTER)
        return self.filter(is_old | models.Q(is_settled))

    def for_customers(self) -> KeyEventQuerySet:
        """Return the events that the key's owner may see."""
        return self.exclude(type=EventType.ANNOTATED)


class KeyEvent(AppendOnly):
    """One change of a key, written in the transaction of the change and never modified.

    Triggers in the database enforce what `AppendOnly` checks.
    """

    at = models.DateTimeField(default=timezone.now)
    api_key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, related_name="events")
    type = models.CharField(max_length=32, choices=EventType.choices)
    actor = models.ForeignKey(
        User,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="Empty: the command line, or the service itself.",
    )
    token = models.ForeignKey(
        ApiToken,
        null=True,
        blank=True,
        db_index=False,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="The API token with which the change was made. Empty: made without a token.",
    )
    actor_ip = models.GenericIPAddressField(null=True, blank=True)
    actor_role = models.CharField(
        max_length=16,
        choices=Role.choices,
        blank=True,
        default="",
        db_default="",
        help_text="The actor's role at that time, if they acted for the account of "
        "another user. Empty: their own account, or not a member.",
    )
    data = models.JSONField(
        default=dict, blank=True, help_text="The changed values, without secrets."
    )

    objects = KeyEventQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["api_key", "-id"], name="event_of_key"),
            models.Index(fields=["type", "-id"], name="event_by_type"),
        ]

    def __str__(self) -> str:
        return f"{self.type} at {self.at:%Y-%m-%d %H:%M:%S}"
