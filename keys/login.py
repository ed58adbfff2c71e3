"""Log-in with a limit on failed attempts.

Failures are counted in the database, by all processes together, for addresses with and
without an account. A lock-out therefore does not reveal who has an account. Each attempt
counts as a failure until its password was verified, so that concurrent ones count too.
Source: https://cheatsheetseries.owasp.org/cheatsheets/Authentication_Cheat_Sheet.html
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.db.models import Count, Q
from django.http import HttpRequest
from django.utils import timezone

from keys.models import LoginFailure, User
from server.addresses import owner_of

WINDOW = timedelta(minutes=15)
"""How long a failure counts, which also is the longest lock-out."""

MAX_FAILURES_OF_PAIR = 5
"""Most failures for one email address from one IP address."""

MAX_FAILURES_OF_EMAIL = 100
"""Most failures for one email address from all IP addresses. The limit is high enough
that others can hardly lock out its owner, and far too low to guess a password."""

MAX_FAILURES_FROM_IP = 50
"""Most failures from one IP address, for all email addresses."""

_LOCK = 0x6C6F6769
"""Number of the advisory lock of this module: "logi" in ASCII."""


class LockingBackend(ModelBackend):
    """Verifies passwords, unless there were too many failures."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the user with this address and password, or None.

        Raises: PermissionDenied during a lock-out, even with the right password.
        """
        if request is None:  # the client is not on the network
            return super().authenticate(request, username, password, **kwargs)
        given = username if username is not None else kwargs.get(User.USERNAME_FIELD)
        email = User.objects.normalize_email(given)[:254]
        ip = request.META.get("REMOTE_ADDR") or None
        if not may_try(email, ip):
            raise PermissionDenied
        user = super().authenticate(request, username, password, **kwargs)
        if user is not None:
            forgive(email, ip)
        return user


@transaction.atomic
def may_try(email: str, ip: str | None) -> bool:
    """Count an attempt as a failure, which `forgive` undoes.

    Return False during a lock-out, without counting the attempt.
    """
    # Of two concurrent attempts, the later one counts the earlier.
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
    LoginFailure.objects.filter(at__lt=timezone.now() - WINDOW).delete()
    if is_locked_out(email, ip):
        return False
    LoginFailure.objects.create(email=email, ip=owner_of(ip))
    return True


def is_locked_out(email: str, ip: str | None) -> bool:
    """Return whether log-ins to an address from an IP address are blocked now."""
    place = owner_of(ip)
    recent = LoginFailure.objects.filter(at__gt=timezone.now() - WINDOW)
    found = recent.filter(Q(email=email) | Q(ip=place)).aggregate(
        pair=Count("pk", filter=Q(email=email, ip=place)),
        email=Count("pk", filter=Q(email=email)),
        ip=Count("pk", filter=Q(ip=place)),
    )
    return bool(
        found["pair"] >= MAX_FAILURES_OF_PAIR
        or found["email"] >= MAX_FAILURES_OF_EMAIL
        or found["ip"] >= MAX_FAILURES_FROM_IP
    )


def forgive(email: str, ip: str | None) -> None:
    """Delete the failures of an email address from one IP address, after a log-in."""
    LoginFailure.objects.filter(email=email, ip=owner_of(ip)).delete()
