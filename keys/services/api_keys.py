"""Changes of API keys, whatever their secrets are."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from keys.models import ApiKey, EventType, KeyVersion, User
from keys.selectors import is_held
from keys.services.events import SYSTEM, Actor, as_text, lock, record, require_future
from networks.models import Network


class _Unchanged:
    """Stands for what is left as it is, where None says something."""


_UNCHANGED = _Unchanged()


@transaction.atomic
def create_key(
    *,
    owner: User,
    name: str = "",
    networks: Iterable[Network] = (),
    expires_at: datetime | None = None,
    staff_note: str = "",
    actor: Actor = SYSTEM,
) -> ApiKey:
    """Make an API key without a secret: the customer reveals it, see `reveal_key`.

    networks: those it opens; none named: all.
    Raises: ValidationError.
    """
    require_future(expires_at)
    api_key = ApiKey(
        owner=owner,
        name=name,
        expires_at=expires_at,
        staff_note=staff_note,
        created_by=actor.user,
    )
    api_key.full_clean()
    api_key.save()
    api_key.networks.set(networks)
    record(
        api_key,
        EventType.CREATED,
        actor,
        name=name,
        networks=_slugs(api_key),
        expires_at=as_text(expires_at),
    )
    return api_key


@transaction.atomic
def update_key(
    *,
    api_key: ApiKey,
    name: str | None = None,
    networks: Iterable[Network] | None = None,
    expires_at: datetime | _Unchanged | None = _UNCHANGED,
    staff_note: str | None = None,
    actor: Actor = SYSTEM,
) -> ApiKey:
    """Change what is given, and leave the rest; nothing new makes no event.

    networks: those it opens from now on; none in it: all.
    expires_at: the end of all its secrets; None: it has none.
    Raises: ValidationError.
    """
    api_key = lock(api_key)
    changes: dict[str, list[Any]] = {}
    if name is not None and name != api_key.name:
        changes["name"] = [api_key.name, name]
        api_key.name = name
    if not isinstance(expires_at, _Unchanged) and expires_at != api_key.expires_at:
        require_future(expires_at)
        changes["expires_at"] = [as_text(api_key.expires_at), as_text(expires_at)]
        api_key.expires_at = expires_at
    is_annotated = staff_note is not None and staff_note != api_key.staff_note
    if is_annotated and staff_note is not None:
        api_key.staff_note = staff_note
    api_key.full_clean()
    api_key.save()
    if networks is not None:
        before = _slugs(api_key)
        api_key.networks.set(networks)
        if (after := _slugs(api_key)) != before:
            changes["networks"] = [before, after]
    if changes:
        record(api_key, EventType.UPDATED, actor, **changes)
    if is_annotated:
        record(api_key, EventType.ANNOTATED, actor, note=staff_note)
    return api_key


@transaction.atomic
def disable_key(*, api_key: ApiKey, reason: str = "", actor: Actor = SYSTEM) -> ApiKey:
    """Refuse a key until it is enabled again; one that is disabled stays so.

    Where its owner has disabled it himself, and now somebody else does, it is on record
    twice: from then on the owner can't enable it.
    """
    return _switch(api_key, False, actor, reason=reason)


@transaction.atomic
def enable_key(*, api_key: ApiKey, actor: Actor = SYSTEM) -> ApiKey:
    """Let a disabled key in again."""
    return _switch(api_key, True, actor)


@transaction.atomic
def delete_key(*, api_key: ApiKey, actor: Actor = SYSTEM) -> ApiKey:
    """Revoke all secrets of a key, and take it out of its owner's sight, for ever.

    Its row stays: events and statistics hang on it.
    Raises: ValidationError when it was deleted before.
    """
    api_key = lock(api_key)
    now = timezone.now()
    for version in KeyVersion.objects.filter(api_key=api_key, revoked_at=None):
        version.revoked_at = now
        version.revoked_by = actor.user
        version.revoke_reason = "the API key was deleted"
        version.save()
    api_key.is_enabled = False
    api_key.deleted_at = now
    api_key.save()
    record(api_key, EventType.DELETED, actor)
    return api_key


def _switch(api_key: ApiKey, is_enabled: bool, actor: Actor, **data: Any) -> ApiKey:
    api_key = lock(api_key)
    is_owner = actor.user is not None and actor.user.pk == api_key.owner_id
    takes_over = not (is_enabled or api_key.is_enabled or is_owner or is_held(api_key))
    if api_key.is_enabled != is_enabled or takes_over:
        api_key.is_enabled = is_enabled
        api_key.save()
        event = EventType.ENABLED if is_enabled else EventType.DISABLED
        record(api_key, event, actor, **data)
    return api_key


def _slugs(api_key: ApiKey) -> list[str]:
    """Return the networks that a key names, in order; none: it opens all."""
    return sorted(network.slug for network in api_key.networks.all())
