"""Queries about keys for pages and commands. `keys.grants` authorizes requests."""

from __future__ import annotations

from django.db.models import F, Q, QuerySet

from keys import format as key_format
from keys.members import account_ids
from keys.models import ApiKey, Capability, Entitlement, EventType, KeyVersion, User
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
    return _granted(user).exists()


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
