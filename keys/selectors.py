"""Queries about keys for pages and commands. `keys.grants` authorizes requests."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.db.models import F, Q, QuerySet

from keys import format as key_format
from keys.models import (
    ApiKey,
    Capability,
    Entitlement,
    EventType,
    KeyVersion,
    Membership,
    Role,
    User,
)
from networks.models import Network


def get_key_version(text: str) -> KeyVersion:
    """Return the version that a full key or a hint names.

    A hint may be typed with three dots.
    Raises: KeyVersion.DoesNotExist, KeyVersion.MultipleObjectsReturned for a hint that
        several versions share.
    """
    text = text.strip()
    named = Q(digest=key_format.digest(text)) | Q(hint=text.replace("...", "…"))
    return KeyVersion.objects.select_related("api_key__owner").get(named)


def is_held(api_key: ApiKey) -> bool:
    """Return whether a disabled key was disabled by someone other than its customer.

    Owner and members of the customer account are the customer.
    """
    if api_key.is_enabled:
        return False
    last = api_key.events.filter(type=EventType.DISABLED).first()
    return last is None or not (last.actor_id == api_key.owner_id or last.actor_role)


def tracers_of(user: User, network: Network) -> frozenset[str]:
    """Return the tracers that a user may use on a network with any key.

    The keys are those of the accounts that the user is a member of. They count if they are enabled, have a valid secret and grant access to the network.
    Only tracers that the network offers are returned.
    """
    found: set[str] = set()
    for entitlement in _granted(user).filter(network=network):
        found.update(entitlement.tracers or network.tracers)
    return frozenset(found & set(network.tracers))


def may_trace_somewhere(user: User) -> bool:
    """Return whether a key of one of a user's accounts grants tracing on any network."""
    # Most users have no entitlement at all. PostgreSQL takes longer to plan the query of
    # `_granted` than to answer all others of a page.
    has_any = Entitlement.objects.filter(api_key__owner__in=account_ids(user)).exists()
    return has_any and _granted(user).exists()


def _granted(user: User) -> QuerySet[Entitlement]:
    """Return the tracing entitlements of the valid keys of a user's accounts.

    Entitlements on networks that the key is not valid for are omitted.
    """
    opened = Q(api_key__networks=None) | Q(api_key__networks=F("network"))
    granted = Entitlement.objects.live().filter(
        opened,
        api_key__owner__in=account_ids(user),
        api_key__owner__is_active=True,
        api_key__is_enabled=True,
        api_key__deleted_at=None,
        api_key__versions__in=KeyVersion.objects.live(),
        capability=Capability.TRACE,
    )
    return granted.distinct()


class AccountRole(NamedTuple):
    """A customer account, and the role of one user in it."""

    account: User
    role: Role


def roles_of(user: User) -> list[AccountRole]:
    """Return the accounts that a user can act for, with roles, their own first."""
    if not user.is_active:
        return []
    found = Membership.objects.filter(member=user, account__is_active=True)
    joined = found.select_related("account").order_by("account__email")
    return [
        AccountRole(user, Role.OWNER),
        *(AccountRole(one.account, Role(one.role)) for one in joined),
    ]


def role_in(user: User, account: User) -> Role | None:
    """Return a user's role in an account, or None if they are not a member of it."""
    if not (user.is_active and account.is_active):
        return None
    if user.pk == account.pk:
        return Role.OWNER
    found = Membership.objects.filter(account=account, member=user).first()
    return None if found is None else Role(found.role)


def account_ids(user: User) -> QuerySet[Any, Any]:
    """Return a subquery of the ids of the accounts that a user is an owner or member of.

    Whether the user and the accounts are active is not checked.
    """
    own = User.objects.filter(pk=user.pk).order_by().values("pk")
    joined = Membership.objects.filter(member=user).order_by().values("account")
    return own.union(joined, all=True)
