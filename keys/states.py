"""The state of a key as one word, for single keys and for queries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import models
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from keys.models import ApiKey, KeyVersion

EXPIRING = timedelta(days=7)
"""A key is called expiring when less than this time is left."""


_EVER = datetime.min.replace(tzinfo=UTC)


class State(models.TextChoices):
    """States of a key. If several apply, the first one is shown."""

    DELETED = "deleted", "deleted"
    DISABLED = "disabled", "disabled"
    UNREVEALED = "unrevealed", "not revealed yet"
    REVOKED = "revoked", "revoked"
    EXPIRED = "expired", "expired"
    EXPIRING = "expiring", "expires within 7 days"
    ACTIVE = "active", "active"


def state_of(api_key: ApiKey) -> State:
    """Return the state of a key. Its versions may be prefetched."""
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
    """Return the keys in a state.

    PostgreSQL can evaluate each condition row by row, and stop after a page of keys.
    """
    if state == State.DELETED:
        return keys.filter(deleted_at__isnull=False)
    keys = keys.filter(deleted_at=None)
    if state == State.DISABLED:
        return keys.filter(pk__in=_switched_off())
    now = timezone.now()
    versions = KeyVersion.objects.filter(api_key=OuterRef("pk"))
    unrevoked = versions.filter(revoked_at=None)
    conditions: dict[str, list[Any]] = {
        State.UNREVEALED: [~Exists(versions)],
        State.REVOKED: [
            Exists(versions.filter(revoked_at__isnull=False)),
            ~Exists(unrevoked),
        ],
        State.EXPIRED: [_ends(_EVER, now), Exists(unrevoked), ~_lives_at(now)],
        State.EXPIRING: [
            _ends(now, now + EXPIRING),
            _lives_at(now),
            ~_lives_at(now + EXPIRING),
        ],
        State.ACTIVE: [_lives_at(now + EXPIRING)],
    }
    if state not in conditions:
        return keys.none()
    usable = keys.filter(is_enabled=True, owner__is_active=True)
    return usable.filter(*conditions[state])


def _switched_off() -> QuerySet[ApiKey, Any]:
    """Return the ids of keys that are disabled, or whose owner is deactivated.

    Each of the two queries can use an index. A single query with OR could not.
    """
    disabled = ApiKey.objects.filter(is_enabled=False).order_by().values("pk")
    of_owners = ApiKey.objects.filter(owner__is_active=False).order_by().values("pk")
    return disabled.union(of_owners)


def _lives_at(moment: datetime) -> Q:
    """Return the condition that a key has a secret that is valid at a time."""
    lasts = Q(expires_at=None) | Q(expires_at__gt=moment)
    secrets = KeyVersion.objects.filter(lasts, api_key=OuterRef("pk"), revoked_at=None)
    return Q(Exists(secrets)) & lasts


def _ends(after: datetime, until: datetime) -> Q:
    """Return the condition that a key or one of its secrets expires in a period.

    An index finds these few rows. A scan of all keys would be slow.
    """
    then = {"expires_at__gt": after, "expires_at__lte": until}
    secrets = KeyVersion.objects.filter(revoked_at=None, **then)
    ends = ApiKey.objects.filter(**then).order_by().values("pk")
    return Q(pk__in=ends.union(secrets.order_by().values("api_key"), all=True))


def live_versions(api_key: ApiKey) -> list[KeyVersion]:
    """Return the valid secrets of a key. Its versions may be prefetched."""
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
