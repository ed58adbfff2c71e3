"""Requests for signatures: created by a dapp, signed with the user's passphrase."""

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
    refuse_if_muted,
)
from wallets.services.sessions import Stale
from wallets.signature_requests import (
    SignatureRequest,
    get_signature_request,
    holds,
    is_allowed,
    sign,
)
from wallets.signing.transactions import Transaction

MAX_WAITING = 3
"""Pending signatures of one dapp; dapps request several in a row."""


@transaction.atomic
def request_signature(
    *, dapp_id: int, method: str, body: dict[str, Any], cause: Cause
) -> ConsentRequest:
    """Create a dapp's request for a signature.

    body: with `scope`, `address` and the subject, see `wallets.signature_requests`.
    Raises: Unauthorized, AlreadyPending, BlockedAsSpam, LimitExceeded.
    """
    session = lock_session(dapp_id)
    dapp, address = session.dapp, body["address"]
    if not holds(session.scopes, method, body["scope"], address):
        raise Unauthorized  # the session was changed since the call was checked
    require_key(dapp_id=dapp_id, address=address)
    refuse_if_muted(dapp, timezone.now())
    waiting = dapp.requests.pending().for_signatures()
    if waiting.count() >= MAX_WAITING:
        raise AlreadyPending(method, dapp.name)
    return ask_user(dapp, method, body, cause)


def require_key(*, dapp_id: int, address: str) -> None:
    """Raise Unauthorized, as for any missing permission, unless the account has a key.

    Raises: Unauthorized.
    """
    own = Account.objects.filter(user__wallet_dapps=dapp_id, address=address)
    if not own.filter(keystore__isnull=False).exists():
        raise Unauthorized


def approve_signature(
    *, request_id: int, user: User, digest: str, passphrase: str, cause: Cause
) -> None:
    """Sign the subject that the user has seen.

    digest: of the page that the user has seen.
    Raises: ConsentRequest.DoesNotExist for a request of another user; NotPending; Stale
        when the page would differ by now, or the session no longer allows it; NoKey,
        Locked, WrongPassphrase, TooBusy.
    """
    question = find_signature_request(request_id, user, digest)
    subject = question.subject
    if isinstance(subject, Transaction):
        raise TypeError("transactions are sent: services.sending")
    signature = sign(subject, open_key(question, passphrase, cause))
    with transaction.atomic():
        request = lock_allowed(request_id, user)
        request.outcome = {"result": signature}
        decide(request, RequestState.APPROVED)
        record_signed(request, cause)


def find_signature_request(
    request_id: int, user: User, digest: str
) -> SignatureRequest:
    """Return a pending request, if its page is the one that the user has seen.

    Raises: ConsentRequest.DoesNotExist, NotPending, Stale.
    """
    requests = ConsentRequest.objects.select_related("dapp").filter(dapp__user=user)
    request = requests.for_signatures().get(pk=request_id)
    if request.state != RequestState.PENDING or request.expires_at <= timezone.now():
        raise NotPending
    question = get_signature_request(request)
    if question.digest != digest:
        raise Stale("The request has changed since the page was shown.")
    return question


def open_key(question: SignatureRequest, passphrase: str, cause: Cause) -> bytes:
    """Return the private key of the account that signs a request.

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
        raise Stale("The session no longer permits it.")
    return request


def record_signed(request: ConsentRequest, cause: Cause, **details: object) -> None:
    """Add a signature to the user's activity log."""
    body = request.body
    details |= {
        "method": request.method,
        "account": f"{body['scope']}:{body['address']}",
    }
    record(Event.SIGNED, cause, request.dapp, details)
