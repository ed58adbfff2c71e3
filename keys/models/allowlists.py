"""Entries of the keys' allowlists."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import models

from keys import allowlists
from keys.models.api_keys import ApiKey


class AllowlistKind(models.TextChoices):
    """The property of a request that an entry is compared with."""

    ORIGIN = allowlists.ORIGIN, "origin"
    USER_AGENT = allowlists.USER_AGENT, "user agent"
    IP = allowlists.IP, "IP address"
    METHOD = allowlists.METHOD, "method"
    CONTRACT = allowlists.CONTRACT, "contract address"


class AllowlistEntry(models.Model):
    """One entry of an API key's allowlist. See `keys.allowlists`."""

    api_key = models.ForeignKey(
        ApiKey, on_delete=models.CASCADE, related_name="allowlist"
    )
    kind = models.CharField(max_length=16, choices=AllowlistKind.choices)
    value = models.CharField(max_length=allowlists.MAX_LENGTH)

    class Meta:
        ordering = ["kind", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["api_key", "kind", "value"],
                name="allowlist_entry_once",
                violation_error_message="The allowlist already has this entry.",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.value}"

    def clean(self) -> None:
        """Normalise the value. Raises: ValidationError if it is malformed."""
        try:
            self.value = allowlists.normalise(self.kind, self.value)
        except ValueError as error:
            raise ValidationError({"value": str(error)}) from error
