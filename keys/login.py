"""Logging in, and being kept from guessing passwords.

Failures are counted in the database, hence by all processes together, whether or not
somebody has the address: a lock-out tells nobody who has an account. Each try counts as
one before its password is looked at, so that many at once are as many as one by one.
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
from keys.places import place_of

WINDOW = timedelta(minutes=15)
"""How long a failure counts, and so how long a lock-out lasts at most."""

MAX_FAILURES_OF_PAIR = 5
"""Of one address from one place: somebody who has forgotten his password."""

MAX_FAILURES_OF_EMAIL = 100
"""Of one address from anywhere: more than one person's, so that others can hardly lock
somebody out, and far too few to guess a password."""

MAX_FAILURES_FROM_IP = 50
"""From one place, whoever it tries to be."""

_LOCK = 0x6C6F6769
"""The number of an advisory lock that nobody else takes: "logi"."""


class LockingBackend(ModelBackend):
    """Checks passwords, unless too many were wrong just now."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the user who has this address and password, None if nobody has.

        Raises: PermissionDenied while locked out, with the right password too.
        """
        if request is None:  # not over the network
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
    """Count a try as a failure, which `forgive` undoes; False, uncounted: locked out."""
    with connection.cursor() as cursor:  # of two at once the later one sees the other
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
    LoginFailure.objects.filter(at__lt=timezone.now() - WINDOW).delete()
    if is_locked_out(email, ip):
        return False
    LoginFailure.objects.create(email=email, ip=place_of(ip))
    return True


def is_locked_out(email: str, ip: str | None) -> bool:
    """Return whether an address may not log in from a place for the time being."""
    place = place_of(ip)
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
    """Forget the failures of somebody who has shown that the address is his."""
    LoginFailure.objects.filter(email=email, ip=place_of(ip)).delete()
