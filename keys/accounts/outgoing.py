"""Limits for the emails that visitors can request."""

from __future__ import annotations

from datetime import timedelta

from django.db import connection, transaction
from django.utils import timezone

from keys.models import AccountMail
from server.addresses import owner_of

WINDOW = timedelta(hours=1)
"""How long an email counts against the limits."""

MAX_MAILS_TO_EMAIL = 3
"""Within the window: enough if an email was lost, too few for harassment."""

MAX_MAILS_FROM_IP = 20
"""Maximum number of emails that one IP address can request within the window.
Offices share an IP address."""

LIFETIME = timedelta(days=1)
"""How long the link of an email is valid."""

_LOCK = 0x6D61696C
"""Number of the advisory lock of this module: "mail" in ASCII."""


class TooManyMails(Exception):
    """Raised when an email or IP address has reached its limit of emails."""


@transaction.atomic
def note_mail(email: str, ip: str | None) -> AccountMail:
    """Count an email that is about to be sent, and delete counts that have expired.

    Raises: TooManyMails if the address or the client has reached its limit.
    """
    with connection.cursor() as cursor:
        # Of two concurrent requests, the later one counts the earlier.
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
    now = timezone.now()
    AccountMail.objects.filter(at__lt=now - LIFETIME).delete()
    place = owner_of(ip)
    recent = AccountMail.objects.filter(at__gt=now - WINDOW)
    if (
        recent.filter(email=email).count() >= MAX_MAILS_TO_EMAIL
        or recent.filter(ip=place).count() >= MAX_MAILS_FROM_IP
    ):
        raise TooManyMails
    return AccountMail.objects.create(email=email, ip=place)
