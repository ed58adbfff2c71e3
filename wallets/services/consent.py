"""Requests for a session: made by a dapp, decided by its user, or by neither."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from keys.models import User
from wallets import proposals, scopes
from wallets.changes import Cause
from wallets.consents import get_consent
from wallets.errors import AlreadyPending
from wallets.models import (
    CREATE_SESSION,
    ConsentRequest,
    Event,
    RequestState,
    Session,
)
from wallets.offers import as_far_as_keys_go, offer_to
from wallets.proposals import Choice
from wallets.scopes import Scopes
from wallets.services.locks import lock_session
from wallets.services.requests import (
    ask_user,
    decide,
    expire,
    lock_request,
    refuse_if_quiet,
)
from wallets.services.sessions import Stale, write_session


@transaction.atomic
def request_session(
    *,
    dapp_id: int,
    wanted: Scopes,
    expires_at: datetime | None,
    cause: Cause,
    method: str = CREATE_SESSION,
) -> ConsentRequest:
    """Put a dapp's wish before its user.

    wanted: scopes as `wallets.scopes.merge` returns them.
    method: what the dapp has called, one of `FOR_SESSIONS`.
    Raises: ScopesNotSupported, AlreadyPending, BlockedAsSpam, LimitExceeded.
    """
    dapp = lock_session(dapp_id).dapp
    proposal = proposals.plan(wanted, offer_to(dapp.user_id), expires_at)
    now = timezone.now()
    waiting = dapp.requests.filter(state=RequestState.PENDING, method=method)
    expire(waiting.filter(expires_at__lte=now))
    if waiting.exists():
        raise AlreadyPending(method, dapp.name)
    refuse_if_quiet(dapp, now)
    return ask_user(dapp, method, proposals.to_stored(proposal), cause)


@transaction.atomic
def approve_session(
    *, request_id: int, user: User, digest: str, choice: Choice, cause: Cause
) -> Session:
    """Grant what the user has left ticked of what he was asked.

    digest: of the page that he has seen, see `wallets.consents.Consent`.
    Raises: ConsentRequest.DoesNotExist for a request of another user; NotPending;
        Stale when he would be asked something else by now; NothingChosen.
    """
    request = lock_request(request_id, user)
    consent = get_consent(request)
    if consent.digest != digest:
        raise Stale("What is asked has changed meanwhile.")
    chosen = proposals.grant(consent.asked, choice, consent.own)
    granted = as_far_as_keys_go(user.pk, chosen)
    session = consent.session
    # Where the call's own answer tells the session, its socket needs no event.
    told = request.socket if request.method == CREATE_SESSION else ""
    cause = Cause(cause.actor, cause.remote_address, told)
    decide(request, RequestState.APPROVED)  # the change withdraws what waits no more
    write_session(
        session,
        granted,
        event=Event.GRANTED,
        cause=cause,
        expires_at=consent.proposal.expires_at,
    )
    expires_at = session.expires_at
    request.outcome = {
        "version": session.version,
        "scopes": scopes.to_stored(granted),
        "expires_at": None if expires_at is None else expires_at.timestamp(),
    }
    request.save(update_fields=["outcome"])
    return session
