"""Changes of API keys, except their secrets."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from keys.models import ApiKey, EventType, KeyVersion, User
from keys.notices.changes import key_deleted
from keys.selectors import is_held
from keys.services.events import SYSTEM, Actor, as_text, lock, record, require_future
from networks.models import Network


class _Unchanged:
    """Default of an argument whose None is a value: leave the field unchanged."""


_UNCHANGED = _Unchanged()


@transaction.atomic
def create_key(
    *,
    owner: User,
    name: str = "",
    networks: Iterable[Network] = (),
    expires_at: datetime | None = None,
    staff_note: str = "",
    is_issued_by_staff: bool = True,
    actor: Actor = SYSTEM,
) -> ApiKey:
    """Create an API key without a secret. The customer makes one with `reveal_key`.

    networks: the networks for which the key is valid. Empty: all networks.
    is_issued_by_staff: False counts the key against KEYS_PER_CUSTOMER; see
        `keys.services.own_keys`.

    Raises: ValidationError for an invalid value, such as an expiry in the past.
    """
    require_future(expires_at)
    api_key = ApiKey(
        owner=owner,
        name=name,
        expires_at=expires_at,
        staff_note=staff_note,
        is_issued_by_staff=is_issued_by_staff,
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
    """Change the given fields. No event is recorded if their values are the same.

    networks: the networks for which the key is valid. Empty: all networks.
    expires_at: expiry of all the key's secrets, or None for no expiry.

    Raises: ValidationError for an invalid value, and if the key was deleted.
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
    """Disable a key until it is enabled again.

    Disabling a disabled key has no effect, unless its customer has disabled it and someone
    else disables it now. That is a second event, after which the customer can't enable
    the key.
    """
    return _switch(api_key, False, actor, reason=reason)


@transaction.atomic
def enable_key(*, api_key: ApiKey, actor: Actor = SYSTEM) -> ApiKey:
    """Enable a disabled key."""
    return _switch(api_key, True, actor)


@transaction.atomic
def delete_key(*, api_key: ApiKey, actor: Actor = SYSTEM) -> ApiKey:
    """Delete a key: revoke all its secrets permanently, and hide it from its owner.

    Its row is kept, because events and statistics refer to it.

    Raises: ValidationError if it was deleted before.
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
    key_deleted(api_key, actor.user)
    return api_key


def _switch(api_key: ApiKey, is_enabled: bool, actor: Actor, **data: Any) -> ApiKey:
    api_key = lock(api_key)
    is_owner = actor.user is not None and actor.user.pk == api_key.owner_id
    is_customer = is_owner or bool(actor.role)
    changes_hands = not (is_customer or is_held(api_key))
    takes_over = changes_hands and not (is_enabled or api_key.is_enabled)
    if api_key.is_enabled != is_enabled or takes_over:
        api_key.is_enabled = is_enabled
        api_key.save()
        event = EventType.ENABLED if is_enabled else EventType.DISABLED
        record(api_key, event, actor, **data)
    return api_key


def _slugs(api_key: ApiKey) -> list[str]:
    """Return the sorted slugs of a key's networks. Empty: valid for all networks."""
    return sorted(network.slug for network in api_key.networks.all())
