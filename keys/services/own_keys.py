"""What customers may do with keys by themselves, where that is less than staff may."""

from __future__ import annotations

from collections.abc import Iterable

from django.core.exceptions import ValidationError
from django.db import transaction

from keys import conf
from keys.models import ApiKey, User
from keys.selectors import is_held
from keys.services.api_keys import create_key, enable_key
from keys.services.events import Actor, lock
from networks.models import Network


def may_create_key(owner: User) -> bool:
    """Return whether a customer may make one more key."""
    return owner.api_keys.filter(deleted_at=None).count() < conf.keys_per_customer()


@transaction.atomic
def create_own_key(
    *, owner: User, name: str, networks: Iterable[Network], actor: Actor
) -> ApiKey:
    """Make a key for a customer who asks for it.

    networks: those it opens; none named: all.
    Raises: ValidationError, also when he has as many as he may make.
    """
    # Of two at once the later one counts the other's.
    User.objects.select_for_update(no_key=True).get(pk=owner.pk)
    if not may_create_key(owner):
        raise ValidationError(
            f"You may make {conf.keys_per_customer()} keys. Delete one first, or ask "
            "support for more."
        )
    return create_key(owner=owner, name=name, networks=networks, actor=actor)


@transaction.atomic
def enable_own_key(*, api_key: ApiKey, actor: Actor) -> ApiKey:
    """Let a key in again that its owner has disabled.

    Raises: ValidationError when somebody else has disabled it.
    """
    api_key = lock(api_key)
    if is_held(api_key):
        raise ValidationError("Support has disabled this key, and can enable it.")
    return enable_key(api_key=api_key, actor=actor)
