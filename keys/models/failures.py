"""Failed calls of keys."""

from __future__ import annotations

from django.db import models

from keys.models.api_keys import ApiKey


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
