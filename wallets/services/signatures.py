"""Requests for signatures: made by a dapp, signed with the user's passphrase."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone

from keys.models import User
from wallets.changes import Cause, record
from wallets.errors import AlreadyPending, Unauthorized
from wallets.models import (
    Account,
    ConsentRequest,
    Event,
    RequestState,
    Session,
)
from wallets.services.keystores import NoKey, unlock
from wallets.services.locks import lock_session
from wallets.services.requests import (
    NotPending,
    ask_user,
    decide,
    lock_request,
    refuse_if_quiet,
)
from wallets.services.sessions import Stale
from wallets.signatures import Question, get_question, holds, is_allowed, sign
from wallets.signing.transactions import Transaction

MAX_WAITING = 3
"""Signatures of one dapp that may wait for the user: dapps ask for some in a row."""


@transaction.atomic
def request_signature(
    *, dapp_id: int, method: str, body: dict[str, Any], cause: Cause
) -> ConsentRequest:
    """Put a dapp's wish for a signature before its user.

    body: with `scope`, `address` and the subject, see `wallets.signatures`.
    Raises: Unauthorized, AlreadyPending, BlockedAsSpam, LimitExceeded.
    """
    session = lock_session(dapp_id)
    dapp, address = session.dapp, body["address"]
    if not holds(session.scopes, method, body["scope"], address):
        raise Unauthorized  # any more: it was asked before
    require_key(dapp_id=dapp_id, address=address)
    refuse_if_quiet(dapp, timezone.now())
    waiting = dapp.requests.pending().for_signatures()
    if waiting.count() >= MAX_WAITING:
        raise AlreadyPending(method, dapp.name)
    return ask_user(dapp, method, body, cause)


def require_key(*, dapp_id: int, address: str) -> None:
    """Refuse what only an account with a key can do, in the words for all refusals.

    Raises: Unauthorized.
    """
    own = Account.objects.filter(user__wallet_dapps=dapp_id, address=address)
    if not own.filter(keystore__isnull=False).exists():
        raise Unauthorized


def approve_signature(
    *, request_id: int, user: User, digest: str, passphrase: str, cause: Cause
) -> None:
    """Sign what the user has seen.

    digest: of the page that he has seen.
    Raises: ConsentRequest.DoesNotExist for a request of another user; NotPending;
        Stale when he would be asked something else by now, or the session does not hold
        it any more; NoKey, Locked, WrongPassphrase, TooBusy.
    """
    question = find_question(request_id, user, digest)
    subject = question.subject
    if isinstance(subject, Transaction):
        raise TypeError("transactions are sent: services.sending")
    signature = sign(subject, open_key(question, passphrase, cause))
    with transaction.atomic():
        request = lock_allowed(request_id, user)
        request.outcome = {"result": signature}
        decide(request, RequestState.APPROVED)
        record_signed(request, cause)


def find_question(request_id: int, user: User, digest: str) -> Question:
    """Return what the user has been asked, if that is what he has seen.

    Raises: ConsentRequest.DoesNotExist, NotPending, Stale.
    """
    requests = ConsentRequest.objects.select_related("dapp").filter(dapp__user=user)
    request = requests.for_signatures().get(pk=request_id)
    if request.state != RequestState.PENDING or request.expires_at <= timezone.now():
        raise NotPending
    question = get_question(request)
    if question.digest != digest:
        raise Stale("What is asked has changed meanwhile.")
    return question


def open_key(question: Question, passphrase: str, cause: Cause) -> bytes:
    """Return the private key that a signature needs.

    Raises: NoKey, Locked, WrongPassphrase, TooBusy.
    """
    if question.account is None:
        raise NoKey
    return unlock(account=question.account, passphrase=passphrase, cause=cause)


def lock_allowed(request_id: int, user: User) -> ConsentRequest:
    """Return a request that can still be approved, with its session locked.

    Raises: ConsentRequest.DoesNotExist, NotPending, Stale.
    """
    request = lock_request(request_id, user)
    session = Session.objects.get(dapp_id=request.dapp_id)
    if not is_allowed(request, session.scopes):
        raise Stale("The session does not hold it any more.")
    return request


def record_signed(request: ConsentRequest, cause: Cause, **details: object) -> None:
    """Write down in the user's log what he has signed."""
    body = request.body
    details |= {
        "method": request.method,
        "account": f"{body['scope']}:{body['address']}",
    }
    record(Event.SIGNED, cause, request.dapp, details)
