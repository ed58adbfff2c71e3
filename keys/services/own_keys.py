"""Operations on keys by customers, who may do less than staff."""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction

from keys.models import ApiKey, User
from keys.selectors import is_held
from keys.services.api_keys import create_key, enable_key
from keys.services.events import Actor, lock
from keys.services.secrets import IssuedKey, reveal_key
from networks.models import Network


def may_create_key(owner: User) -> bool:
    """Return whether a customer may create one more key.

    Keys that staff have issued do not count.
    """
    own = owner.api_keys.filter(deleted_at=None, is_issued_by_staff=False)
    return own.count() < settings.KEYS_PER_CUSTOMER


@transaction.atomic
def create_own_key(
    *, owner: User, name: str, networks: Iterable[Network], actor: Actor
) -> ApiKey:
    """Create a key on behalf of its customer.

    networks: the networks for which the key is valid. Empty: all networks.

    Raises: ValidationError for an invalid value, and if the customer has as many keys
        as KEYS_PER_CUSTOMER permits.
    """
    # Of two concurrent requests, the later one counts the key of the earlier.
    User.objects.select_for_update(no_key=True).get(pk=owner.pk)
    if not may_create_key(owner):
        most = settings.KEYS_PER_CUSTOMER
        raise ValidationError(
            f"You can create at most {most} keys. Delete one first, or ask support for "
            "more."
            if most
            else "Only support can create keys. Ask them for one."
        )
    return create_key(
        owner=owner,
        name=name,
        networks=networks,
        is_issued_by_staff=False,
        actor=actor,
    )


@transaction.atomic
def create_first_key(*, owner: User, name: str, actor: Actor) -> IssuedKey:
    """Create and reveal the first key of a customer, for all networks.

    Raises: ValidationError as `create_own_key`, and if the customer has a key, so that a
        page that is reloaded creates no other.
    """
    User.objects.select_for_update(no_key=True).get(pk=owner.pk)
    if ApiKey.objects.kept().filter(owner=owner).exists():
        raise ValidationError(
            "The account has a key already. Its secret was shown once: roll the key to get "
            "a new one."
        )
    key = create_own_key(owner=owner, name=name, networks=[], actor=actor)
    return reveal_key(api_key=key, actor=actor)


@transaction.atomic
def enable_own_key(*, api_key: ApiKey, actor: Actor) -> ApiKey:
    """Enable a key that its customer has disabled.

    Raises: ValidationError if someone other than the customer has disabled the key.
    """
    api_key = lock(api_key)
    if is_held(api_key):
        raise ValidationError(
            "Support has disabled this key. Only support can enable it."
        )
    return enable_key(api_key=api_key, actor=actor)
