"""What can be said of a key in one word, of one and of many."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from keys.models import ApiKey, KeyVersion

EXPIRING = timedelta(days=7)
"""How long before its end a key is called expiring."""


class State(models.TextChoices):
    """What a key is; the first one that is true of it."""

    DELETED = "deleted", "deleted"
    DISABLED = "disabled", "disabled"
    UNREVEALED = "unrevealed", "not revealed yet"
    REVOKED = "revoked", "revoked"
    EXPIRED = "expired", "expired"
    EXPIRING = "expiring", "expires within 7 days"
    ACTIVE = "active", "active"


def state_of(api_key: ApiKey) -> State:
    """Return the state of a key; looks at its versions, which may be prefetched."""
    now = timezone.now()
    versions = list(api_key.versions.all())
    ends = [_end(api_key, v) for v in versions if v.revoked_at is None]
    if api_key.deleted_at is not None:
        return State.DELETED
    if not api_key.is_enabled or not api_key.owner.is_active:
        return State.DISABLED
    if not versions:
        return State.UNREVEALED
    if not ends:
        return State.REVOKED
    if all(end is not None and end <= now for end in ends):
        return State.EXPIRED
    if all(end is not None and end <= now + EXPIRING for end in ends):
        return State.EXPIRING
    return State.ACTIVE


def in_state(keys: QuerySet[ApiKey], state: str) -> QuerySet[ApiKey]:
    """Return the keys that are in a state."""
    now = timezone.now()
    versions = KeyVersion.objects.filter(api_key=OuterRef("pk"))
    unrevoked = versions.filter(revoked_at=None)
    live, lasting = (
        unrevoked.exclude(Q(expires_at__lte=end) | Q(api_key__expires_at__lte=end))
        for end in (now, now + EXPIRING)
    )
    chain = {
        State.DELETED: Q(deleted_at__isnull=False),
        State.DISABLED: Q(is_enabled=False) | Q(owner__is_active=False),
        State.UNREVEALED: ~Q(Exists(versions)),
        State.REVOKED: ~Q(Exists(unrevoked)),
        State.EXPIRED: ~Q(Exists(live)),
        State.EXPIRING: ~Q(Exists(lasting)),
        State.ACTIVE: Q(),
    }
    for candidate, condition in chain.items():
        if candidate == state:
            return keys.filter(condition)
        keys = keys.exclude(condition)
    return keys.none()


def live_versions(api_key: ApiKey) -> list[KeyVersion]:
    """Return the secrets that open, of versions that may be prefetched."""
    now = timezone.now()
    found = []
    for version in api_key.versions.all():
        end = _end(api_key, version)
        if version.revoked_at is None and (end is None or end > now):
            found.append(version)
    return found


def _end(api_key: ApiKey, version: KeyVersion) -> datetime | None:
    ends = [end for end in (api_key.expires_at, version.expires_at) if end is not None]
    return min(ends, default=None)
