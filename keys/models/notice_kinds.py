"""Kinds of emails that users can switch off."""

from __future__ import annotations

from django.db import models


class NoticeKind(models.TextChoices):
    """The subject of a notice. The values never change."""

    QUOTA = "quota", "80 % and 100 % of a key's daily quota are used"
    EXPIRY = "expiry", "A key expires in 7 days, and in 1 day"
    SECRETS = "secrets", "Support revokes or rolls a secret, or deletes a key"
    TRACING = "tracing", "Tracing is granted, declined, or about to expire"
