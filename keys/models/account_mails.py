"""Mails about accounts that were asked for, for as long as they count."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class AccountMail(models.Model):
    """A mail to an address, whether or not somebody has an account with it.

    Its link works once and for a day; its row counts against the limits for an hour.
    """

    email = models.CharField(max_length=254)
    ip = models.GenericIPAddressField(
        null=True, help_text="Who has asked for it; of IPv6 the /64."
    )
    at = models.DateTimeField(default=timezone.now, db_index=True)
    used_at = models.DateTimeField(
        null=True, help_text="When somebody has signed up with its link."
    )

    class Meta:
        indexes = [
            models.Index(fields=["email", "at"], name="account_mail_to_email"),
            models.Index(fields=["ip", "at"], name="account_mail_from_ip"),
        ]

    def __str__(self) -> str:
        return f"to {self.email} at {self.at:%Y-%m-%d %H:%M:%S}"
