"""How a change of a key is put on record and announced."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.utils import timezone

from keys.grants import CHANNEL
from keys.models import ApiKey, ApiToken, EventType, KeyEvent, User


@dataclass(frozen=True, slots=True)
class Actor:
    """Who makes a change, and from where.

    user: None for the command line and for the service itself.
    ip: the address that the request came from.
    token: what the user's program has shown; None: he did it himself.
    """

    user: User | None = None
    ip: str | None = None
    token: ApiToken | None = None


SYSTEM = Actor()
"""The command line, or the service itself."""


def announce_key(api_key: ApiKey) -> None:
    """Tell the serving processes, at the commit, that a key has changed."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, str(api_key.pk)])


def record(api_key: ApiKey, event: EventType, actor: Actor, **data: Any) -> KeyEvent:
    """Write what was changed, and announce it; within the change's transaction."""
    # The savepoint is a transaction inside that one, begun after the event got its
    # number: `settled` tells by it which changes were under way by then.
    with transaction.atomic():
        written = KeyEvent.objects.create(
            api_key=api_key,
            type=event,
            actor=actor.user,
            token=actor.token,
            actor_ip=actor.ip,
            data=data,
        )
    announce_key(api_key)
    return written


def lock(api_key: ApiKey) -> ApiKey:
    """Return a key as it is now, which nobody else changes until the commit.

    Events of it may be written meanwhile: they name it, and need its id alone.
    Raises: ValidationError when it was deleted.
    """
    locked = ApiKey.objects.select_for_update(no_key=True).get(pk=api_key.pk)
    if locked.deleted_at is not None:
        raise ValidationError("This API key was deleted.")
    return locked


def require_future(expires_at: datetime | None) -> None:
    """Raise ValidationError for an expiry that has passed."""
    if expires_at is not None and expires_at <= timezone.now():
        raise ValidationError({"expires_at": "The expiry has passed already."})


def as_text(moment: datetime | None) -> str | None:
    """Return a moment as events hold it."""
    return None if moment is None else moment.isoformat()
