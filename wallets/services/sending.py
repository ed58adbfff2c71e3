"""Transactions: signed with the user's passphrase, and sent to the network's nodes.

The hash is stored before the transaction is sent. Therefore the dapp and the user's log can name the transaction even after a failure.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from keys.models import User
from wallets.changes import BY_WALLET, Cause, announce_dapp, record
from wallets.errors import NotSent
from wallets.models import Account, ConsentRequest, Event, RequestState
from wallets.services.locks import lock_session
from wallets.services.requests import decide
from wallets.services.signatures import (
    find_signature_request,
    lock_allowed,
    open_key,
    record_signed,
)
from wallets.services.targets import target_of, unknown_outcome
from wallets.signature_requests import SignatureRequest
from wallets.signing.transactions import Signed, Transaction, sign_transaction
from wallets.signing.turns import TooBusy

logger = logging.getLogger(__name__)

SENDING_AT_MOST = timedelta(seconds=60)
"""The two calls that send a transaction take 20 s at most. Later, no process is sending
it."""

TURN_SECONDS = 10.0
"""Time for which a transaction waits for another one of the same account, because its
nonce depends on it."""

_SENDER_LOCKS = 0x73656E64
"""The class of the advisory locks of sending accounts."""


def approve_transaction(
    *, request_id: int, user: User, digest: str, passphrase: str, cause: Cause
) -> str:
    """Sign the transaction that the user has seen, send it, and return its hash.

    Raises: as `approve_signature`; NotSent. After NotSent the request is failed if the
        transaction was signed, and pending otherwise.
    """
    question = find_signature_request(request_id, user, digest)
    subject, account = question.subject, question.account
    if not isinstance(subject, Transaction):
        raise TypeError("only transactions are sent: services.signatures")
    target = target_of(subject.chain_id)
    key = open_key(question, passphrase, cause)
    assert account is not None  # otherwise `open_key` has raised NoKey
    with _turn(account):
        nonce = subject.nonce
        if nonce is None:
            nonce = target.next_nonce(account.address)
        signed = sign_transaction(subject, nonce, key)
        _begin(question, user, signed, cause)
        failure = target.send(signed.raw, _hash(signed))
    _finish(request_id, failure)
    if failure is not None:
        raise failure
    return _hash(signed)


def close_abandoned(*, request_id: int) -> None:
    """Close a request whose process was killed while it sent the transaction."""
    since = timezone.now() - SENDING_AT_MOST
    sending = ConsentRequest.objects.filter(pk=request_id, decided_at__lt=since)
    found = sending.filter(state=RequestState.SENDING).first()
    if found is not None:
        _finish(request_id, unknown_outcome(found.result))


@transaction.atomic
def _begin(
    question: SignatureRequest, user: User, signed: Signed, cause: Cause
) -> None:
    """Mark a request as being sent, if it still may be approved.

    Raises: NotPending, Stale.
    """
    request = lock_allowed(question.request.pk, user)
    request.outcome = {"result": _hash(signed)}
    decide(request, RequestState.SENDING)
    record_signed(request, cause, hash=_hash(signed))


@transaction.atomic
def _finish(request_id: int, failure: NotSent | None) -> None:
    """Save the result of a transaction, unless it was saved already."""
    sending = ConsentRequest.objects.select_related("dapp").filter(pk=request_id)
    lock_session(sending.get().dapp_id)
    request = sending.filter(state=RequestState.SENDING).first()
    if request is None:
        return
    request.state = RequestState.APPROVED
    if failure is not None:
        request.state = RequestState.FAILED
        details = {"hash": request.result, "reason": failure.message}
        request.outcome = {"error": _as_json(failure)}
        record(Event.NOT_SENT, BY_WALLET, request.dapp, details)
    request.save(update_fields=["state", "outcome"])
    announce_dapp(request.dapp)


def _as_json(failure: NotSent) -> dict[str, Any]:
    return {"code": failure.code, "message": failure.message, "data": failure.data}


def _hash(signed: Signed) -> str:
    return "0x" + signed.hash.hex()


@contextmanager
def _turn(account: Account) -> Iterator[None]:
    """Serialise an account's transactions over all processes: nonces are in order.

    Raises: TooBusy.
    """
    lock = [_SENDER_LOCKS, account.pk % 2**31]
    until = time.monotonic() + TURN_SECONDS
    while not _answer("SELECT pg_try_advisory_lock(%s, %s)", lock):
        if time.monotonic() > until:
            raise TooBusy
        time.sleep(0.1)
    try:
        yield
    finally:
        _answer("SELECT pg_advisory_unlock(%s, %s)", lock)


def _answer(sql: str, arguments: list[int]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(sql, arguments)
        row = cursor.fetchone()
    return bool(row and row[0])
