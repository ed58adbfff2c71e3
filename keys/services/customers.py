"""Changes of customers that affect their keys."""

from __future__ import annotations

from django.db import transaction

from keys.models import EventType, User
from keys.services.events import SYSTEM, Actor, record
from outbox.append import append
from outbox.streams import ACCOUNT, wallet


@transaction.atomic
def get_or_create_customer(*, email: str) -> User:
    """Return the user with an email address. A new user has no password.

    Raises: ValidationError if the address is malformed.
    """
    user = User(email=User.objects.normalize_email(email))
    user.set_unusable_password()
    user.full_clean(validate_unique=False)
    found, _ = User.objects.get_or_create(
        email=user.email, defaults={"password": user.password}
    )
    return found


@transaction.atomic
def note_activation(*, user: User, actor: Actor = SYSTEM) -> None:
    """Record an account's activation or deactivation, and notify serving processes.

    The keys of a deactivated account are rejected.
    """
    # A database trigger appends the entry too. Appending it here also publishes it at once.
    append(wallet(user.pk), ACCOUNT)
    event = EventType.OWNER_ENABLED if user.is_active else EventType.OWNER_DISABLED
    for api_key in user.api_keys.filter(deleted_at=None):
        record(api_key, event, actor)


@transaction.atomic
def switch_customer(*, user: User, is_active: bool, actor: Actor = SYSTEM) -> User:
    """Activate or deactivate an account. No effect if it is in that state already."""
    user = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if user.is_active != is_active:
        user.is_active = is_active
        user.save(update_fields=["is_active"])
        note_activation(user=user, actor=actor)
    return user
