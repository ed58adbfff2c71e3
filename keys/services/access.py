"""Requests for access: customers make them, staff decide, and customers get mail."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from keys.models import AccessRequest, AccessStatus, ApiKey, EventType
from keys.notices.changes import access_decided
from keys.services.entitlements import grant_entitlement
from keys.services.events import SYSTEM, Actor, as_text, lock, record
from networks.models import Network

MAX_REQUESTS_A_DAY = 20
"""Most requests for one key in a day, because staff read each of them."""


@transaction.atomic
def request_access(
    *,
    api_key: ApiKey,
    network: Network,
    tracers: Iterable[str] = (),
    reason: str,
    actor: Actor = SYSTEM,
) -> AccessRequest:
    """Request tracing on a network for a key.

    tracers: the requested tracers. Empty: all that the network offers.
    reason: the customer's purpose.

    Raises: ValidationError for an invalid value, and if the same request is pending.
    """
    api_key = lock(api_key)
    opened = api_key.networks.all()
    if opened and network not in opened:
        raise ValidationError(f"The key has no access to {network}.")
    wanted = list(dict.fromkeys(tracers))
    lacking = [tracer for tracer in wanted if tracer not in network.tracers]
    if lacking or not network.tracers:
        offer = f"does not offer {', '.join(lacking)}" if lacking else "has no tracers"
        raise ValidationError(f"{network} {offer}.")
    since = timezone.now() - timedelta(days=1)
    if api_key.access_requests.filter(requested_at__gt=since).count() >= (
        MAX_REQUESTS_A_DAY
    ):
        raise ValidationError(
            f"You can send {MAX_REQUESTS_A_DAY} requests for a key in 24 hours. Try "
            "again later."
        )
    request = AccessRequest(
        api_key=api_key,
        network=network,
        tracers=wanted,
        reason=reason.strip(),
        requested_by=actor.user,
    )
    request.full_clean()
    request.save()
    _record(request, EventType.ACCESS_REQUESTED, actor)
    return request


@transaction.atomic
def approve_access(
    *,
    request: AccessRequest,
    expires_at: datetime | None = None,
    tracers: Iterable[str] | None = None,
    answer: str = "",
    actor: Actor = SYSTEM,
) -> AccessRequest:
    """Grant a request's tracers, or those of `tracers`.

    answer: an additional message for the customer.

    Raises: ValidationError for an invalid value, and if the request is decided already.
    """
    request = _lock_pending(request)
    granted = request.tracers if tracers is None else list(tracers)
    grant_entitlement(
        api_key=request.api_key,
        network=request.network,
        tracers=granted,
        expires_at=expires_at,
        note=f"request {request.pk}",
        is_announced=False,  # the email about the decision announces it
        actor=actor,
    )
    request.tracers = granted
    request.expires_at = expires_at
    return _decide(request, AccessStatus.APPROVED, answer, actor)


@transaction.atomic
def decline_access(
    *, request: AccessRequest, answer: str, actor: Actor = SYSTEM
) -> AccessRequest:
    """Decline a request.

    answer: the reason, for the customer.

    Raises: ValidationError without a reason, and if the request is decided already.
    """
    request = _lock_pending(request)
    if not answer.strip():
        raise ValidationError({"answer": "Enter a reason for the customer."})
    return _decide(request, AccessStatus.DECLINED, answer, actor)


@transaction.atomic
def withdraw_request(*, request: AccessRequest, actor: Actor = SYSTEM) -> AccessRequest:
    """Withdraw a pending request on behalf of its customer.

    Raises: ValidationError if the request has been decided already.
    """
    request = _lock_pending(request)
    request.status = AccessStatus.WITHDRAWN
    request.decided_by = actor.user
    request.decided_at = timezone.now()
    request.save()
    _record(request, EventType.ACCESS_WITHDRAWN, actor)
    return request


def _lock_pending(request: AccessRequest) -> AccessRequest:
    lock(request.api_key)
    request = AccessRequest.objects.select_related(
        "api_key__owner", "network", "requested_by"
    ).get(pk=request.pk)
    if request.status != AccessStatus.PENDING:
        raise ValidationError(
            f"This request has already been decided: {request.status}."
        )
    return request


def _decide(
    request: AccessRequest, status: AccessStatus, answer: str, actor: Actor
) -> AccessRequest:
    request.status = status
    request.answer = answer.strip()
    request.decided_by = actor.user
    request.decided_at = timezone.now()
    request.full_clean()
    request.save()
    is_approved = status == AccessStatus.APPROVED
    event = EventType.ACCESS_APPROVED if is_approved else EventType.ACCESS_DECLINED
    _record(request, event, actor)
    access_decided(request)
    return request


def _record(request: AccessRequest, event: EventType, actor: Actor) -> None:
    record(
        request.api_key,
        event,
        actor,
        request=request.pk,
        network=request.network.slug,
        tracers=request.tracers,
        expires_at=as_text(request.expires_at),
        answer=request.answer,
    )
