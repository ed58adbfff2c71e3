"""Recording changes of keys, and notifying the serving processes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from keys.models import ApiKey, ApiToken, EventType, KeyEvent, Plan, User
from outbox.append import append
from outbox.streams import ACCESS


@dataclass(frozen=True, slots=True)
class Actor:
    """The user who makes a change, and their address.

    user: None for the command line and for the service itself.
    ip: the IP address of the request.
    token: the API token of the user's program, or None without a program.
    role: the user's role, if they act for the account of another user; otherwise "".
    """

    user: User | None = None
    ip: str | None = None
    token: ApiToken | None = None
    role: str = ""


SYSTEM = Actor()
"""The command line, or the service itself."""


def announce_key(api_key: ApiKey) -> None:
    """Notify the serving processes, at the commit, that a key has changed."""
    append(ACCESS, f"key:{api_key.pk}")


def announce_plan(plan: Plan) -> None:
    """Notify the serving processes, at the commit, that a plan has changed."""
    append(ACCESS, f"plan:{plan.pk}")


def record(api_key: ApiKey, event: EventType, actor: Actor, **data: Any) -> KeyEvent:
    """Write an event and notify the serving processes, in the change's transaction."""
    # The savepoint has its own transaction id, which is assigned after the event's
    # number. `settled` uses it to find the changes that were in progress then.
    with transaction.atomic():
        written = KeyEvent.objects.create(
            api_key=api_key,
            type=event,
            actor=actor.user,
            token=actor.token,
            actor_ip=actor.ip,
            actor_role=actor.role,
            data=data,
        )
    announce_key(api_key)
    return written


def lock(api_key: ApiKey) -> ApiKey:
    """Lock a key until the commit, and return its current state.

    The lock (FOR NO KEY UPDATE) does not block events that refer to the key.

    Raises: ValidationError if the key was deleted.
    """
    locked = ApiKey.objects.select_for_update(no_key=True).get(pk=api_key.pk)
    if locked.deleted_at is not None:
        raise ValidationError("This API key was deleted.")
    return locked


def require_future(expires_at: datetime | None) -> None:
    """Raise ValidationError for an expiry that has passed."""
    if expires_at is not None and expires_at <= timezone.now():
        raise ValidationError({"expires_at": "The expiry is in the past."})


def as_text(moment: datetime | None) -> str | None:
    """Return a time in the format of an event's data (ISO 8601). None stays None."""
    return None if moment is None else moment.isoformat()
