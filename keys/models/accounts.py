"""Account emails and failed logins, stored while their links or the limits need them."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class AccountMail(models.Model):
    """An email to an address, with or without an account.

    Its link is valid once, for a day. Its row counts against the limits for an hour.
    """

    email = models.CharField(max_length=254)
    ip = models.GenericIPAddressField(
        null=True, help_text="The client address; the /64 network for IPv6."
    )
    at = models.DateTimeField(default=timezone.now, db_index=True)
    used_at = models.DateTimeField(
        null=True, help_text="When the link was used to sign up."
    )

    class Meta:
        indexes = [
            models.Index(fields=["email", "at"], name="account_mail_to_email"),
            models.Index(fields=["ip", "at"], name="account_mail_from_ip"),
        ]

    def __str__(self) -> str:
        return f"to {self.email} at {self.at:%Y-%m-%d %H:%M:%S}"


class LoginFailure(models.Model):
    """A failed login: a wrong password, or an address without an account."""

    email = models.CharField(max_length=254)
    ip = models.GenericIPAddressField(null=True)
    at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        indexes = [
            models.Index(fields=["email", "at"], name="login_failure_of_email"),
            models.Index(fields=["ip", "at"], name="login_failure_from_ip"),
        ]

    def __str__(self) -> str:
        return f"{self.email} from {self.ip} at {self.at:%Y-%m-%d %H:%M:%S}"
