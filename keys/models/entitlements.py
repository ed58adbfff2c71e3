"""Entitlements: capabilities that staff grant to keys."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from keys import permits
from keys.models.api_keys import ApiKey
from keys.models.users import User
from legible.fields import NameField
from networks.models import Network, tracer_choices


class Capability(models.TextChoices):
    """A capability that keys only have if it was granted."""

    TRACE = permits.TRACE, "tracing"


class EntitlementQuerySet(models.QuerySet["Entitlement"]):
    """Queries of entitlements."""

    def live(self) -> EntitlementQuerySet:
        """Return the entitlements that have not expired."""
        return self.exclude(expires_at__lte=timezone.now())


class Entitlement(models.Model):
    """A capability that staff have granted to an API key on one network."""

    api_key = models.ForeignKey(
        ApiKey, on_delete=models.CASCADE, related_name="entitlements"
    )
    network = models.ForeignKey(Network, on_delete=models.CASCADE, related_name="+")
    capability = models.CharField(
        max_length=32, choices=Capability.choices, default=Capability.TRACE
    )
    tracers = ArrayField(
        models.CharField(max_length=32, choices=tracer_choices),
        default=list,
        blank=True,
        help_text="Select none for all tracers that the network offers.",
    )
    expires_at = models.DateTimeField(
        null=True, blank=True, help_text="Empty: it does not expire."
    )
    note = NameField(
        max_length=200,
        blank=True,
        help_text="Why it was granted. Visible to staff only.",
    )
    granted_by = models.ForeignKey(
        User,
        null=True,
        blank=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="The user who set these terms. Empty: the command line.",
    )
    granted_at = models.DateTimeField(
        editable=False, help_text="When these terms were set."
    )

    objects = EntitlementQuerySet.as_manager()

    class Meta:
        ordering = ["api_key", "network", "capability"]
        permissions = [("grant_entitlement", "Can grant tracing, and withdraw it")]
        constraints = [
            models.UniqueConstraint(
                fields=["api_key", "network", "capability"],
                name="entitlement_once",
                violation_error_message="The key already has an entitlement for this network.",
            )
        ]

    def __str__(self) -> str:
        return f"{self.capability} on {self.network}"
