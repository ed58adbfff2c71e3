"""Requests for sessions: created by a dapp, approved by its user."""

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
from wallets.offers import wallet_offer, without_unsignable
from wallets.proposals import Choice
from wallets.scopes import Scopes
from wallets.services.locks import lock_session
from wallets.services.requests import (
    ask_user,
    decide,
    expire,
    lock_request,
    refuse_if_muted,
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
    """Create a dapp's request for a session, or for more scopes.

    wanted: scopes as `wallets.scopes.merge` returns them.
    method: the method that the dapp has called, one of `FOR_SESSIONS`.
    Raises: ScopesNotSupported if no requested scope is served; AlreadyPending if the
        dapp has a pending request; BlockedAsSpam; LimitExceeded.
    """
    dapp = lock_session(dapp_id).dapp
    # Signing methods are kept in the proposal, because the user can create an account
    # with a key before they decide. The consent page leaves them out until then.
    offer = wallet_offer(can_sign=True)
    proposal = proposals.propose(wanted, offer, expires_at)
    now = timezone.now()
    waiting = dapp.requests.filter(state=RequestState.PENDING, method=method)
    expire(waiting.filter(expires_at__lte=now))
    if waiting.exists():
        raise AlreadyPending(method, dapp.name)
    refuse_if_muted(dapp, now)
    return ask_user(dapp, method, proposals.to_stored(proposal), cause)


@transaction.atomic
def approve_session(
    *, request_id: int, user: User, digest: str, choice: Choice, cause: Cause
) -> Session:
    """Grant the scopes and accounts that the user has left ticked.

    digest: of the page that the user has seen, see `wallets.consents.Consent`.
    Raises: ConsentRequest.DoesNotExist for a request of another user; NotPending; Stale
        when the page would differ by now; NothingChosen.
    """
    request = lock_request(request_id, user)
    consent = get_consent(request)
    if consent.digest != digest:
        raise Stale("The request has changed since the page was shown.")
    chosen = proposals.grant(consent.asked, choice, consent.own)
    granted = without_unsignable(user.pk, chosen)
    session = consent.session
    # The response of wallet_createSession reports the session, so its socket gets no
    # event.
    reporting_socket = request.socket if request.method == CREATE_SESSION else ""
    cause = Cause(cause.actor, cause.remote_address, reporting_socket)
    decide(request, RequestState.APPROVED)  # write_session withdraws pending requests
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
