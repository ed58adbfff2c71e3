"""Requests to the user, of whatever kind: made, rejected, expired, taken back.

What an approval does depends on the kind, and stands with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from keys.models import User
from wallets import conf
from wallets.changes import THE_WALLET, Cause, announce_dapp, record
from wallets.errors import BlockedAsSpam, LimitExceeded
from wallets.models import Actor, ConsentRequest, Dapp, Event, RequestState
from wallets.services.locks import lock_session

QUICK_REJECTION = timedelta(seconds=30)
"""A rejection so soon after another one counts as one of a series."""

REJECTIONS_IN_A_ROW = 3
"""After these a dapp has to be quiet; MetaMask's figures, like the next one."""

QUIET = timedelta(seconds=60)
"""For how long."""

ASKED_AT_MOST = 20
"""Requests of a dapp within the lifetime of one that the user did not say yes to, those
that it took back included."""

SAID_YES = frozenset({RequestState.APPROVED, RequestState.SENDING, RequestState.FAILED})
"""What a request is after the user's yes, whatever its node made of a transaction."""


class NotPending(Exception):
    """Raised when a request was decided, withdrawn or has expired already."""


@transaction.atomic
def reject_request(*, request_id: int, user: User, cause: Cause) -> ConsentRequest:
    """Tell a dapp no; one that is told so often in a row has to be quiet for a while.

    Raises: ConsentRequest.DoesNotExist for a request of another user; NotPending.
    """
    request = lock_request(request_id, user)
    dapp, now = request.dapp, timezone.now()
    last = dapp.last_rejected_at
    is_quick = last is not None and now - last < QUICK_REJECTION
    dapp.rejections = dapp.rejections + 1 if is_quick else 1
    dapp.last_rejected_at = now
    if dapp.rejections >= REJECTIONS_IN_A_ROW:
        dapp.muted_until, dapp.rejections = now + QUIET, 0
    dapp.save(update_fields=["rejections", "last_rejected_at", "muted_until"])
    record(Event.REJECTED, cause, dapp, {"method": request.method})
    decide(request, RequestState.REJECTED)
    return request


@transaction.atomic
def expire_request(*, request_id: int) -> None:
    """Close a request whose time is over; nothing happens to any other."""
    overdue = ConsentRequest.objects.select_related("dapp").filter(
        pk=request_id, state=RequestState.PENDING, expires_at__lte=timezone.now()
    )
    for request in overdue:
        lock_session(request.dapp_id)
        expire(overdue.all())  # as it stands behind the lock


@transaction.atomic
def withdraw_requests(*, socket: str) -> None:
    """Take back what a socket has asked for: it has gone, nobody waits any more."""
    pending = ConsentRequest.objects.filter(socket=socket, state=RequestState.PENDING)
    for dapp_id in sorted(set(pending.values_list("dapp_id", flat=True))):
        lock_session(dapp_id)
        cause = Cause(Actor.DAPP, socket=socket)
        withdraw(pending.select_related("dapp").filter(dapp_id=dapp_id), cause)


def refuse_if_quiet(dapp: Dapp, now: datetime) -> None:
    """Refuse the request of a dapp that may not ask.

    Raises: BlockedAsSpam.
    """
    is_muted = dapp.muted_until is not None and now < dapp.muted_until
    if is_muted or dapp.blocked_at is not None:
        raise BlockedAsSpam


def ask_user(dapp: Dapp, method: str, body: object, cause: Cause) -> ConsentRequest:
    """Make a request; the dapp's session is locked.

    Raises: LimitExceeded when too many wait for the user, or the dapp asks too often.
    """
    recently = timezone.now() - conf.request_lifetime()
    in_vain = dapp.requests.exclude(state__in=SAID_YES)
    if in_vain.filter(created_at__gt=recently).count() >= ASKED_AT_MOST:
        raise LimitExceeded
    # Requests of other dapps are counted too: one after the other, for the same user.
    User.objects.select_for_update(no_key=True).get(pk=dapp.user_id)
    waiting = ConsentRequest.objects.pending().filter(dapp__user_id=dapp.user_id)
    if waiting.count() >= conf.max_pending_requests():
        raise LimitExceeded
    request = ConsentRequest.objects.create(
        dapp=dapp,
        method=method,
        body=body,
        socket=cause.socket,
        asked_from=cause.remote_address,
        expires_at=timezone.now() + conf.request_lifetime(),
    )
    record(Event.ASKED, cause, dapp, {"method": method})
    announce_dapp(dapp)
    return request


def lock_request(request_id: int, user: User) -> ConsentRequest:
    """Return a user's request that can still be decided, with its session locked.

    Raises: ConsentRequest.DoesNotExist, NotPending.
    """
    requests = ConsentRequest.objects.select_related("dapp").filter(dapp__user=user)
    lock_session(requests.get(pk=request_id).dapp_id)
    request = requests.get(pk=request_id)  # as it stands behind the lock
    is_over = request.expires_at <= timezone.now()
    if request.state != RequestState.PENDING or is_over:
        raise NotPending
    return request


def decide(request: ConsentRequest, state: RequestState) -> None:
    """Write down what the user has decided of a locked request."""
    request.state = state
    request.decided_at = timezone.now()
    request.save()
    announce_dapp(request.dapp)


def withdraw(requests: Iterable[ConsentRequest], cause: Cause) -> None:
    """Take back requests that nobody has decided; the session is locked."""
    _close(requests, RequestState.WITHDRAWN, Event.WITHDRAWN, cause)


def expire(requests: Iterable[ConsentRequest]) -> None:
    """Close requests that were not decided in time; the session is locked."""
    _close(requests, RequestState.EXPIRED, Event.EXPIRED, THE_WALLET)


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
