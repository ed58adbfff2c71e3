"""Customers' requests for access to tracing."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxLengthValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from keys.models.api_keys import ApiKey
from keys.models.users import User
from legible.fields import NameField, NoteField
from networks.models import Network, tracer_choices


class AccessStatus(models.TextChoices):
    """State of a request for access."""

    PENDING = "pending", "pending"
    APPROVED = "approved", "approved"
    DECLINED = "declined", "declined"
    WITHDRAWN = "withdrawn", "withdrawn by the customer"


class AccessRequest(models.Model):
    """A customer's request for tracing on a network, with the decision."""

    api_key = models.ForeignKey(
        ApiKey, on_delete=models.CASCADE, related_name="access_requests"
    )
    network = models.ForeignKey(Network, on_delete=models.CASCADE, related_name="+")
    tracers = ArrayField(
        models.CharField(max_length=32, choices=tracer_choices),
        default=list,
        blank=True,
        help_text="Empty: all tracers that the network offers.",
    )
    reason = NoteField(
        validators=[MaxLengthValidator(1000)],
        help_text="What the customer needs tracing for.",
    )
    requested_by = models.ForeignKey(
        User, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    requested_at = models.DateTimeField(default=timezone.now)
    status = models.CharField(
        max_length=16, choices=AccessStatus.choices, default=AccessStatus.PENDING
    )
    decided_by = models.ForeignKey(
        User, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    answer = NameField(
        max_length=500, blank=True, help_text="A message for the customer."
    )
    expires_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="Expiry of the entitlement. Empty: it does not expire.",
    )

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["api_key", "network"],
                condition=Q(status="pending"),
                name="access_asked_once",
                violation_error_message="The key already has a pending request for this network.",
            )
        ]
        indexes = [models.Index(fields=["status", "-id"], name="access_by_status")]

    def __str__(self) -> str:
        return f"tracing on {self.network} for {self.api_key}"
