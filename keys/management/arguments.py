"""Arguments that several commands take, read with precise refusals."""

from __future__ import annotations

from datetime import UTC, datetime

from django.core.management.base import CommandError

from keys.models import KeyVersion
from keys.selectors import get_key_version


def read_key(text: str) -> KeyVersion:
    """Return the version that a key or a hint names.

    Raises: CommandError when there is none, or more than one.
    """
    try:
        return get_key_version(text)
    except KeyVersion.DoesNotExist:
        raise CommandError("there is no such key") from None
    except KeyVersion.MultipleObjectsReturned:
        raise CommandError("several keys have this hint: give the key") from None


def read_moment(text: str | None) -> datetime | None:
    """Return a moment in ISO 8601; UTC unless it says else.

    Raises: CommandError.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(f"{text!r} is no ISO 8601 date or time") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
