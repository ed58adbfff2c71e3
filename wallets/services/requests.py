"""Requests of any kind: created, rejected, expired, withdrawn.

The approval depends on the kind and is in `consent`, `signatures` and `sending`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from keys.models import User
from wallets.changes import BY_WALLET, Cause, announce_dapp, record
from wallets.errors import BlockedAsSpam, LimitExceeded
from wallets.models import Actor, ConsentRequest, Dapp, Event, LiveSocket, RequestState
from wallets.services.locks import lock_session

QUICK_REJECTION = timedelta(seconds=30)
"""A rejection within this time after another one counts as one of a series, see
REJECTIONS_IN_A_ROW."""

REJECTIONS_IN_A_ROW = 3
"""Rejections in a series after which a dapp is muted; as in MetaMask."""

MUTED_FOR = timedelta(seconds=60)
"""How long a dapp is muted; as in MetaMask."""

MAX_UNAPPROVED = 20
"""Requests of a dapp within WALLETS_REQUEST_SECONDS that the user has not approved,
withdrawn ones included."""

APPROVED_STATES = frozenset(
    {RequestState.APPROVED, RequestState.SENDING, RequestState.FAILED}
)
"""The states of a request that the user has approved, whether or not its transaction
was sent."""


class NotPending(Exception):
    """Raised when a request is already decided, withdrawn or expired."""


@transaction.atomic
def reject_request(*, request_id: int, user: User, cause: Cause) -> ConsentRequest:
    """Reject a request. After several rejections in a row, the dapp is muted for a while.

    Raises: ConsentRequest.DoesNotExist for a request of another user; NotPending.
    """
    request = lock_request(request_id, user)
    dapp, now = request.dapp, timezone.now()
    last = dapp.last_rejected_at
    is_quick = last is not None and now - last < QUICK_REJECTION
    dapp.rejections = dapp.rejections + 1 if is_quick else 1
    dapp.last_rejected_at = now
    if dapp.rejections >= REJECTIONS_IN_A_ROW:
        dapp.muted_until, dapp.rejections = now + MUTED_FOR, 0
    dapp.save(update_fields=["rejections", "last_rejected_at", "muted_until"])
    record(Event.REJECTED, cause, dapp, {"method": request.method})
    decide(request, RequestState.REJECTED)
    return request


@transaction.atomic
def expire_request(*, request_id: int) -> None:
    """Mark a pending request as expired if its expiry has passed."""
    overdue = ConsentRequest.objects.select_related("dapp").filter(
        pk=request_id, state=RequestState.PENDING, expires_at__lte=timezone.now()
    )
    for request in overdue:
        lock_session(request.dapp_id)
        expire(overdue.all())  # read after the lock was taken


@transaction.atomic
def withdraw_request(*, request_id: int, cause: Cause) -> None:
    """Withdraw a request that its dapp has cancelled, if it is still pending."""
    pending = ConsentRequest.objects.filter(pk=request_id, state=RequestState.PENDING)
    for dapp_id in pending.values_list("dapp_id", flat=True):
        lock_session(dapp_id)
        withdraw(pending.select_related("dapp"), cause)  # read after the lock was taken


@transaction.atomic
def withdraw_requests(*, socket: str) -> None:
    """Withdraw the pending requests of a socket that has closed."""
    pending = ConsentRequest.objects.filter(socket=socket, state=RequestState.PENDING)
    for dapp_id in sorted(set(pending.values_list("dapp_id", flat=True))):
        lock_session(dapp_id)
        cause = Cause(Actor.DAPP, socket=socket)
        withdraw(pending.select_related("dapp").filter(dapp_id=dapp_id), cause)


def refuse_if_muted(dapp: Dapp, now: datetime) -> None:
    """Raise BlockedAsSpam if the dapp is muted or blocked.

    now: the current time.
    """
    is_muted = dapp.muted_until is not None and now < dapp.muted_until
    if is_muted or dapp.blocked_at is not None:
        raise BlockedAsSpam


def ask_user(dapp: Dapp, method: str, body: object, cause: Cause) -> ConsentRequest:
    """Create a request. The caller has locked the dapp's session.

    Raises: LimitExceeded when too many requests are pending for the user, or the dapp
        makes too many.
    """
    recently = timezone.now() - timedelta(seconds=settings.WALLETS_REQUEST_SECONDS)
    in_vain = dapp.requests.exclude(state__in=APPROVED_STATES)
    if in_vain.filter(created_at__gt=recently).count() >= MAX_UNAPPROVED:
        raise LimitExceeded
    # The lock serialises requests of all dapps of the user, which are counted together.
    User.objects.select_for_update(no_key=True).get(pk=dapp.user_id)
    waiting = ConsentRequest.objects.pending().filter(dapp__user_id=dapp.user_id)
    if waiting.count() >= settings.WALLETS_MAX_PENDING:
        raise LimitExceeded
    request = ConsentRequest.objects.create(
        dapp=dapp,
        method=method,
        body=body,
        socket=cause.socket,
        asked_from=cause.remote_address,
        expires_at=timezone.now() + timedelta(seconds=settings.WALLETS_REQUEST_SECONDS),
    )
    record(Event.ASKED, cause, dapp, {"method": method})
    announce_dapp(dapp)
    return request


def lock_request(request_id: int, user: User) -> ConsentRequest:
    """Return a user's pending request, with its session locked.

    Raises: ConsentRequest.DoesNotExist, NotPending.
    """
    requests = ConsentRequest.objects.select_related("dapp").filter(dapp__user=user)
    lock_session(requests.get(pk=request_id).dapp_id)
    request = requests.get(pk=request_id)  # read after the lock was taken
    is_over = request.expires_at <= timezone.now()
    if request.state != RequestState.PENDING or is_over:
        raise NotPending
    return request


def decide(request: ConsentRequest, state: RequestState) -> None:
    """Save the user's decision on a locked request."""
    request.state = state
    request.decided_at = timezone.now()
    request.save()
    announce_dapp(request.dapp)


def withdraw(requests: Iterable[ConsentRequest], cause: Cause) -> None:
    """Withdraw pending requests. The caller has locked the session."""
    _close(requests, RequestState.WITHDRAWN, Event.WITHDRAWN, cause)


def expire(requests: Iterable[ConsentRequest]) -> None:
    """Mark pending requests as expired. The caller has locked the session."""
    _close(requests, RequestState.EXPIRED, Event.EXPIRED, BY_WALLET)


def _close(
    requests: Iterable[ConsentRequest], state: RequestState, event: Event, cause: Cause
) -> None:
    for request in requests:
        request.state = state
        request.decided_at = timezone.now()
        request.save()
        details = {"method": request.method}
        record(event, cause, request.dapp, details)
        announce_dapp(request.dapp)


def abandoned_requests() -> set[int]:
    """Return the ids of pending requests of sockets whose process seems to be dead.

    After an outage of the database no live process has renewed its row yet. So callers
    check again some seconds later before they act.
    """
    return set(_abandoned().values_list("pk", flat=True))


@transaction.atomic
def withdraw_abandoned(request_ids: Collection[int]) -> None:
    """Withdraw those of the requests that are still abandoned."""
    found = _abandoned().filter(pk__in=request_ids)
    for dapp_id in sorted(set(found.values_list("dapp_id", flat=True))):
        lock_session(dapp_id)
        withdraw(
            found.select_related("dapp").filter(dapp_id=dapp_id), Cause(Actor.DAPP)
        )


def _abandoned() -> QuerySet[ConsentRequest]:
    left = LiveSocket.objects.left().values("name")
    return ConsentRequest.objects.pending().filter(socket__in=left)
