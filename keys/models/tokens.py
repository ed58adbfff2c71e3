"""Tokens of the management API, and the responses to idempotent requests."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone

from keys.models.users import User
from legible.fields import NameField


class Scope(models.TextChoices):
    """A permission of a token. The values never change."""

    CUSTOMERS_READ = "customers:read", "read customers"
    CUSTOMERS_WRITE = (
        "customers:write",
        "create customers, activate and deactivate them",
    )
    KEYS_READ = (
        "keys:read",
        "read keys with hints, allowlists, entitlements and limits, and requests for access",
    )
    KEYS_WRITE = "keys:write", "issue, change, roll, revoke and delete keys"
    LIMITS_WRITE = "limits:write", "change plans, and the limits of keys"
    ENTITLEMENTS_WRITE = (
        "entitlements:write",
        "grant and withdraw tracing, decide requests for access",
    )
    USAGE_READ = "usage:read", "read usage"
    EVENTS_READ = "events:read", "read the audit log of keys"


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    """Queries of tokens."""

    def live(self) -> ApiTokenQuerySet:
        """Return the tokens that are neither revoked nor expired.

        Their owners are not checked.
        """
        ended = Q(expires_at__lte=timezone.now())
        return self.filter(revoked_at=None).exclude(ended)


class ApiToken(models.Model):
    """Lets a program act for a staff user, within the token's scopes.

    Each request also requires the owner's own permission.
    """

    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="api_tokens")
    name = NameField(max_length=100, help_text="The program that uses the token.")
    scopes = ArrayField(models.CharField(max_length=32, choices=Scope.choices))
    digest = models.CharField(
        max_length=64,
        unique=True,
        editable=False,
        help_text="Hex SHA-256 of the token.",
    )
    hint = models.CharField(
        max_length=12, editable=False, help_text="First seven and last four characters."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        User,
        null=True,
        blank=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    expires_at = models.DateTimeField(
        null=True, blank=True, help_text="Empty: it does not expire."
    )
    revoked_at = models.DateTimeField(null=True, editable=False)
    last_used_at = models.DateTimeField(
        null=True, editable=False, help_text="Accurate to a minute."
    )

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name = "API token"

    def __str__(self) -> str:
        return f"{self.name} ({self.hint})"


class RepeatedRequest(models.Model):
    """The stored response to a request with an `Idempotency-Key`.

    The response is stored without secrets, which are shown only once.
    """

    token = models.ForeignKey(ApiToken, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(
        max_length=64, help_text="Hex SHA-256 of method, path and body."
    )
    status = models.PositiveSmallIntegerField(null=True)
    body = models.JSONField(null=True)
    at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["token", "key"], name="request_once")
        ]

    def __str__(self) -> str:
        return f"{self.key} at {self.at:%Y-%m-%d %H:%M:%S}"
