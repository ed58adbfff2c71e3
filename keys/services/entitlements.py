"""Changes of entitlements."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from keys.models import ApiKey, Capability, Entitlement, EventType
from keys.notices.changes import tracing_granted
from keys.services.events import SYSTEM, Actor, as_text, lock, record, require_future
from networks.models import Network


@transaction.atomic
def grant_entitlement(
    *,
    api_key: ApiKey,
    network: Network,
    capability: str = Capability.TRACE,
    tracers: Iterable[str] = (),
    expires_at: datetime | None = None,
    note: str = "",
    is_announced: bool = True,
    actor: Actor = SYSTEM,
) -> Entitlement:
    """Grant a capability on a network. These terms replace earlier ones.

    tracers: the tracers it includes. Empty: all that the network offers.
    is_announced: whether the customer gets an email about it.

    Raises: ValidationError for an invalid value, for an expiry in the past, and if the
        key is not valid for the network.
    """
    require_future(expires_at)
    api_key = lock(api_key)
    opened = api_key.networks.all()
    if opened and network not in opened:
        raise ValidationError(f"The key has no access to {network}.")
    place = {"api_key": api_key, "network": network, "capability": capability}
    entitlement = Entitlement.objects.filter(**place).first() or Entitlement(**place)
    is_new = entitlement.pk is None
    entitlement.tracers = list(dict.fromkeys(tracers))
    entitlement.expires_at = expires_at
    entitlement.note = note
    entitlement.granted_by = actor.user
    entitlement.granted_at = timezone.now()
    entitlement.full_clean()
    entitlement.save()
    granted, changed = EventType.ENTITLEMENT_GRANTED, EventType.ENTITLEMENT_CHANGED
    _record(entitlement, granted if is_new else changed, actor)
    if is_announced:
        tracing_granted(entitlement)
    return entitlement


@transaction.atomic
def withdraw_entitlement(*, entitlement: Entitlement, actor: Actor = SYSTEM) -> None:
    """Withdraw a capability. Nothing happens if it has been withdrawn already.

    Raises: ValidationError if the key was deleted.
    """
    lock(entitlement.api_key)
    granted = Entitlement.objects.select_related("network", "api_key")
    found = granted.filter(pk=entitlement.pk).first()
    if found is not None:
        found.delete()
        _record(found, EventType.ENTITLEMENT_REVOKED, actor)


def _record(entitlement: Entitlement, event: EventType, actor: Actor) -> None:
    record(
        entitlement.api_key,
        event,
        actor,
        network=entitlement.network.slug,
        capability=str(entitlement.capability),
        tracers=entitlement.tracers,
        expires_at=as_text(entitlement.expires_at),
    )
