"""Failed logins, stored while they count against the limit."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


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
