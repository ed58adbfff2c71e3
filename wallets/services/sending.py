"""Transactions: signed with the user's passphrase, and handed to the network's node.

The hash is written down before the transaction goes out. Whatever happens then, the dapp
and the user's log can tell which transaction it was.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from keys.models import User
from networks.models import Network
from wallets.changes import THE_WALLET, Cause, announce_dapp, record
from wallets.errors import NotSent
from wallets.models import Account, ConsentRequest, Event, RequestState
from wallets.services.locks import lock_session
from wallets.services.requests import decide
from wallets.services.signatures import (
    find_question,
    lock_allowed,
    open_key,
    record_signed,
)
from wallets.signatures import Question
from wallets.signing.transactions import Signed, Transaction, sign_transaction
from wallets.signing.turns import TooBusy
from wallets.upstream import Upstream, UpstreamAway, UpstreamRefused

logger = logging.getLogger(__name__)

SENDING_AT_MOST = timedelta(seconds=60)
"""Both calls that send a transaction take 20 s at most: then nobody does any more."""

TURN_SECONDS = 10.0
"""For which one transaction of an account waits for another's nonce to be used."""

NO_TRANSACTIONS = "this network accepts no transactions"
AWAY = "the network's node does not answer"
_SENDER_LOCKS = 0x73656E64
"""The class of the advisory locks of accounts that send."""


def approve_transaction(
    *, request_id: int, user: User, digest: str, passphrase: str, cause: Cause
) -> str:
    """Sign the transaction that the user has seen, send it, and return its hash.

    Raises: as `approve_signature`; NotSent, after which the request has failed if it was
        signed, and waits otherwise.
    """
    question = find_question(request_id, user, digest)
    subject, account = question.subject, question.account
    if not isinstance(subject, Transaction):
        raise TypeError("only transactions are sent: services.signatures")
    upstream = _upstream(subject.chain_id)
    key = open_key(question, passphrase, cause)
    assert account is not None  # it has a key
    with _turn(account):
        nonce = subject.nonce
        if nonce is None:
            nonce = _next_nonce(upstream, account)
        signed = sign_transaction(subject, nonce, key)
        _begin(question, user, signed, cause)
        failure = _send(upstream, signed)
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
        _finish(request_id, _unknown(found.result))


def _upstream(chain_id: int) -> Upstream:
    """Return the node of a chain; of two networks the older one is the chain.

    Raises: NotSent.
    """
    network = Network.objects.filter(chain_id=chain_id).order_by("pk").first()
    if network is None or not network.upstream_url:
        raise NotSent(NO_TRANSACTIONS)
    return Upstream(network.upstream_url)


def _next_nonce(upstream: Upstream, account: Account) -> int:
    try:
        return asyncio.run(upstream.nonce(account.address))
    except UpstreamAway as error:
        raise NotSent(AWAY) from error
    except UpstreamRefused as error:
        raise NotSent(error.message, error.code, error.data) from error


@transaction.atomic
def _begin(question: Question, user: User, signed: Signed, cause: Cause) -> None:
    """Write down that a transaction goes out, if it still may.

    Raises: NotPending, Stale.
    """
    request = lock_allowed(question.request.pk, user)
    request.outcome = {"result": _hash(signed)}
    decide(request, RequestState.SENDING)
    record_signed(request, cause, hash=_hash(signed))


def _send(upstream: Upstream, signed: Signed) -> NotSent | None:
    """Hand a transaction over, and return why it was not taken."""
    try:
        try:
            asyncio.run(upstream.send(signed.raw))
        except UpstreamAway as error:
            logger.warning("the node of a network does not answer: %s", error)
            if not asyncio.run(upstream.knows(_hash(signed))):
                return _unknown(_hash(signed))
    except UpstreamAway:
        return _unknown(_hash(signed))
    except UpstreamRefused as error:
        return NotSent(error.message, error.code, error.data)
    return None


@transaction.atomic
def _finish(request_id: int, failure: NotSent | None) -> None:
    """Write down what has come of a transaction; the first to do so is right."""
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
        record(Event.NOT_SENT, THE_WALLET, request.dapp, details)
    request.save(update_fields=["state", "outcome"])
    announce_dapp(request.dapp)


def _as_json(failure: NotSent) -> dict[str, Any]:
    return {"code": failure.code, "message": failure.message, "data": failure.data}


def _unknown(transaction_hash: str) -> NotSent:
    text = f"the network's node did not answer; it may have taken {transaction_hash}"
    return NotSent(text, data={"hash": transaction_hash})


def _hash(signed: Signed) -> str:
    return "0x" + signed.hash.hex()


@contextmanager
def _turn(account: Account) -> Iterator[None]:
    """Hold off other transactions of an account, in all processes: nonces are in a row.

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
