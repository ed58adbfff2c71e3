"""Changes of an API key's secrets: issue, roll, revoke."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.utils import timezone

from keys import format as key_format
from keys.models import ApiKey, EventType, KeyVersion, User
from keys.notices.changes import key_rolled, secret_revoked
from keys.services.api_keys import create_key
from keys.services.entitlements import grant_entitlement
from keys.services.events import SYSTEM, Actor, as_text, lock, record, require_future
from networks.models import Network

MAX_LIVE_VERSIONS = 3
"""Most valid secrets of one key: one in use, and one or two that are being replaced."""

OVERLAPS = (timedelta(0), timedelta(hours=1), timedelta(hours=24), timedelta(days=7))
"""Permitted times for which replaced secrets stay valid."""

OVERLAP_WORDS = ("0 hours", "1 hour", "24 hours", "7 days")
"""OVERLAPS as text."""

DEFAULT_OVERLAP = timedelta(hours=24)
"""Customers have a day to replace the secret in all their programs."""


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A key with its new secret, which is not stored.

    secret: the full text of the key. repr() omits it, so that no log contains it.
    """

    api_key: ApiKey
    version: KeyVersion
    secret: str = field(repr=False)


@transaction.atomic
def issue_key(
    *,
    owner: User,
    name: str = "",
    networks: Iterable[Network] = (),
    may_trace: bool = False,
    expires_at: datetime | None = None,
    actor: Actor = SYSTEM,
) -> IssuedKey:
    """Create an API key with its first secret, for a program that passes the secret on.

    networks: the networks for which the key is valid. Empty: all networks.
    may_trace: whether to grant tracing with all tracers on each of these networks.
        Networks added later need a separate grant.

    Raises: ValidationError for an invalid value, such as an expiry in the past.
    """
    api_key = create_key(
        owner=owner, name=name, networks=networks, expires_at=expires_at, actor=actor
    )
    if may_trace:
        for network in api_key.networks.all() or Network.objects.all():
            grant_entitlement(
                api_key=api_key, network=network, is_announced=False, actor=actor
            )
    return reveal_key(api_key=api_key, actor=actor)


@transaction.atomic
def reveal_key(*, api_key: ApiKey, actor: Actor = SYSTEM) -> IssuedKey:
    """Make the first secret of an API key. Only the returned value contains it.

    Raises: ValidationError if the key has had a secret, which has to be rolled instead.
    """
    api_key = lock(api_key)
    if api_key.versions.exists():
        raise ValidationError(
            "This key was already revealed. Roll it to get a new secret."
        )
    return _issue(api_key, None, actor)


@transaction.atomic
def issue_version(
    *, api_key: ApiKey, expires_at: datetime | None = None, actor: Actor = SYSTEM
) -> IssuedKey:
    """Add a secret to an API key. The other secrets stay valid.

    Raises: ValidationError for an expiry in the past, for a deleted key, and if the key
        has MAX_LIVE_VERSIONS valid secrets already.
    """
    api_key = lock(api_key)
    require_future(expires_at)
    _require_room(api_key)
    return _issue(api_key, expires_at, actor)


@transaction.atomic
def roll_key(
    *, api_key: ApiKey, overlap: timedelta = DEFAULT_OVERLAP, actor: Actor = SYSTEM
) -> IssuedKey:
    """Replace the secrets of a key by a new one.

    overlap: one of OVERLAPS. The old secrets expire after it, or at their own expiry if
        that is earlier.

    Raises: ValidationError for another overlap, for a deleted key, and if the key would
        exceed MAX_LIVE_VERSIONS during the overlap.
    """
    if overlap not in OVERLAPS:
        raise ValidationError(
            f"Choose one of these overlaps: {', '.join(OVERLAP_WORDS)}."
        )
    api_key = lock(api_key)
    if not api_key.versions.exists():
        raise ValidationError("This key has no secret yet. Reveal it first.")
    end = timezone.now() + overlap
    old = list(api_key.versions.unended())
    for version in old:
        version.expires_at = min(version.expires_at or end, end)
        version.save()
    _require_room(api_key)
    secret = key_format.make_key()
    version = add_secret(api_key=api_key, secret=secret, created_by=actor.user)
    record(
        api_key,
        EventType.ROLLED,
        actor,
        hint=version.hint,
        replaced=[version.hint for version in old],
        replaced_until=as_text(end),
    )
    key_rolled(version, old, end, actor.user)
    return IssuedKey(api_key, version, secret)


@transaction.atomic
def revoke_version(
    *, version: KeyVersion, reason: str, actor: Actor = SYSTEM
) -> KeyVersion:
    """Revoke a secret permanently.

    Raises: ValidationError if it was revoked before.
    """
    lock(version.api_key)
    version = KeyVersion.objects.get(pk=version.pk)
    if version.revoked_at is not None:
        raise ValidationError(f"{version.hint} is already revoked.")
    version.revoked_at = timezone.now()
    version.revoked_by = actor.user
    version.revoke_reason = reason
    version.full_clean()
    version.save()
    record(version.api_key, EventType.REVOKED, actor, hint=version.hint, reason=reason)
    secret_revoked(version, actor.user)
    return version


@transaction.atomic
def add_secret(
    *,
    api_key: ApiKey,
    secret: str,
    expires_at: datetime | None = None,
    created_by: User | None = None,
) -> KeyVersion:
    """Store the digest of a given secret as a new version of a key."""
    version = KeyVersion(
        api_key=api_key,
        digest=key_format.digest(secret),
        hint=key_format.hint(secret),
        expires_at=expires_at,
        created_by=created_by,
    )
    version.full_clean()
    version.save()
    return version


_USED_AFTER_REVOCATION = """
    INSERT INTO keys_keyevent (at, api_key_id, type, actor_ip, data)
    SELECT now(), api_key_id, %s, %s, json_build_object('version', id, 'hint', hint)
    FROM keys_keyversion WHERE id = %s
    ON CONFLICT DO NOTHING
"""


def note_use_after_revocation(*, version_id: int, ip: str | None) -> None:
    """Record the use of a revoked secret. A unique index limits this to once a day."""
    with connection.cursor() as cursor:
        values = [EventType.USED_AFTER_REVOCATION, ip, version_id]
        cursor.execute(_USED_AFTER_REVOCATION, values)


def _issue(api_key: ApiKey, expires_at: datetime | None, actor: Actor) -> IssuedKey:
    secret = key_format.make_key()
    version = add_secret(
        api_key=api_key, secret=secret, expires_at=expires_at, created_by=actor.user
    )
    record(
        api_key,
        EventType.REVEALED,
        actor,
        hint=version.hint,
        expires_at=as_text(expires_at),
    )
    return IssuedKey(api_key, version, secret)


def _require_room(api_key: ApiKey) -> None:
    if api_key.versions.unended().count() >= MAX_LIVE_VERSIONS:
        raise ValidationError(
            f"A key has at most {MAX_LIVE_VERSIONS} valid secrets: roll it without "
            "overlap, or revoke one."
        )
