"""Why calls with a key were refused."""

from __future__ import annotations

from django.db import models

from keys.models.api_keys import ApiKey
from networks.models import Network


class Refusal(models.Model):
    """A reason for which a key was refused on a network; see `keys.refusals`."""

    api_key = models.ForeignKey(
        ApiKey, on_delete=models.CASCADE, related_name="refusals"
    )
    network = models.ForeignKey(
        Network,
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="None: the key itself was refused, wherever.",
    )
    reason = models.CharField(max_length=64, help_text="As in `data.reason`.")
    method = models.CharField(
        max_length=100, blank=True, help_text="Of the last one; empty: of any method."
    )
    last_at = models.DateTimeField()
    calls = models.BigIntegerField(help_text="On the day of the last one, UTC.")

    class Meta:
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
