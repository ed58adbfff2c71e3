"""How many mails people may have sent, to themselves or to others."""

from __future__ import annotations

from datetime import timedelta

from django.db import connection, transaction
from django.utils import timezone

from keys.models import AccountMail
from keys.places import place_of

WINDOW = timedelta(hours=1)
"""How long a mail counts."""

MAX_MAILS_TO_EMAIL = 3
"""Within the window: enough for a mail that was lost, too few to pester somebody."""

MAX_MAILS_FROM_IP = 20
"""Likewise: the people of an office share an address."""

LIFETIME = timedelta(days=1)
"""How long the link of a mail works."""

_LOCK = 0x6D61696C
"""The number of an advisory lock that nobody else takes: "mail"."""


class TooManyMails(Exception):
    """Raised when an address was sent, or somebody has asked for, enough mails."""


@transaction.atomic
def note_mail(email: str, ip: str | None) -> AccountMail:
    """Count a mail that is about to be sent, and forget those that count no longer.

    Raises: TooManyMails.
    """
    with connection.cursor() as cursor:  # of two at once the later one sees the other
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
    now = timezone.now()
    AccountMail.objects.filter(at__lt=now - LIFETIME).delete()
    place = place_of(ip)
    recent = AccountMail.objects.filter(at__gt=now - WINDOW)
    if (
        recent.filter(email=email).count() >= MAX_MAILS_TO_EMAIL
        or recent.filter(ip=place).count() >= MAX_MAILS_FROM_IP
    ):
        raise TooManyMails
    return AccountMail.objects.create(email=email, ip=place)
