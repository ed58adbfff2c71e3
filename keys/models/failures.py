"""Failed and rejected calls of keys."""

from __future__ import annotations

from django.db import models

from keys.models.api_keys import ApiKey
from networks.models import Network


class KeyFailures(models.Model):
    """The latest failed calls of a key, and its unknown methods. See `keys.metering.failures`."""

    api_key = models.OneToOneField(
        ApiKey, primary_key=True, on_delete=models.CASCADE, related_name="failures"
    )
    latest = models.JSONField(
        default=list,
        help_text="[Unix seconds, network id, method, code, reason or error class].",
    )
    unknown_methods = models.JSONField(
        default=dict, help_text="Name → [calls, Unix seconds of the last one]."
    )

    class Meta:
        verbose_name_plural = "key failures"

    def __str__(self) -> str:
        return f"failures of key {self.api_key_id}"


class Refusal(models.Model):
    """A reason for which calls with a key were rejected. See `keys.metering.meter`."""

    api_key = models.ForeignKey(
        ApiKey, on_delete=models.CASCADE, related_name="refusals"
    )
    network = models.ForeignKey(
        Network,
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="None: the key itself was rejected, on all networks.",
    )
    reason = models.CharField(max_length=64, help_text="As in `data.reason`.")
    method = models.CharField(
        max_length=100,
        blank=True,
        help_text="The method of the last call. Empty: all methods are rejected.",
    )
    last_at = models.DateTimeField()
    calls = models.BigIntegerField(
        help_text="Number of calls on the day (UTC) of the last one."
    )

    class Meta:
        verbose_name = "rejection"
        ordering = ["-last_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["api_key", "network", "reason"],
                nulls_distinct=False,
                name="refusal_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.reason} at {self.last_at:%Y-%m-%d %H:%M}"
