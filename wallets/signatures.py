"""What a user is asked to sign: kept while he thinks about it, shown, then signed.

A request's body is all of it: `scope`, `address`, and the subject in the form of its
method. The page and the signature are made of the same value, read from there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from wallets.models import ADD_CHAIN, Account, ConsentRequest
from wallets.scopes import Scopes
from wallets.signing import transactions
from wallets.signing.messages import sign_message
from wallets.signing.transactions import Transaction
from wallets.signing.typed_data import TypedData, read_typed_data, sign_typed_data

PERSONAL_SIGN = "personal_sign"
SIGN_TYPED_DATA = "eth_signTypedData_v4"
SEND_TRANSACTION = "eth_sendTransaction"

Subject = bytes | TypedData | Transaction
"""What is signed: a message, typed data, or a transaction that is sent then."""


@dataclass(frozen=True, slots=True)
class Question:
    """A request for a signature together with all that its page shows.

    account: whose key signs, None when it has left the wallet.
    digest: differs whenever the user would be asked something else.
    """

    request: ConsentRequest
    scope: str
    account: Account | None
    subject: Subject
    digest: str


def get_question(request: ConsentRequest) -> Question:
    """Return what the user is asked by a method that signs."""
    body = request.body
    own = Account.objects.filter(user_id=request.dapp.user_id)
    account = own.filter(address=body["address"]).first()
    shown = [request.pk, request.method, body, None if account is None else account.pk]
    return Question(
        request=request,
        scope=body["scope"],
        account=account,
        subject=_subject(request.method, body),
        digest=sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest(),
    )


def sign(subject: bytes | TypedData, key: bytes) -> str:
    """Return the signature as `0x…`: r, s and v, 65 bytes.

    key: 32 bytes.
    """
    if isinstance(subject, bytes):
        return "0x" + sign_message(subject, key).hex()
    return "0x" + sign_typed_data(subject, key).hex()


def is_allowed(request: ConsentRequest, granted: Scopes) -> bool:
    """Return whether scopes hold what a request for a signature, or a chain, needs."""
    if request.method == ADD_CHAIN:
        return any(ADD_CHAIN in scope.methods for scope in granted.values())
    return holds(
        granted, request.method, request.body["scope"], request.body["address"]
    )


def holds(granted: Scopes, method: str, scope: str, address: str) -> bool:
    """Return whether scopes hold a method for an account."""
    found = granted.get(scope)
    if found is None or method not in found.methods:
        return False
    return f"{scope}:{address}" in found.accounts


def _subject(method: str, body: dict[str, Any]) -> Subject:
    if method == PERSONAL_SIGN:
        return bytes.fromhex(body["message"][2:])
    if method == SEND_TRANSACTION:
        return transactions.from_json(body["transaction"])
    return read_typed_data(body["data"])
