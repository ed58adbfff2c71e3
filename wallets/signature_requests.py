"""Requests for signatures: stored while the user decides, shown, then signed.

A request's body has `scope`, `address`, and the subject in the form of its method. The
page and the signature are made from the same value, read from the body.
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
"""What is signed: a message (bytes), typed data, or a transaction."""


@dataclass(frozen=True, slots=True)
class SignatureRequest:
    """A request with everything that its page shows.

    account: the account whose key signs, None if it was removed from the wallet.
    digest: SHA-256 of the page's contents in hex. It detects a change of the contents
        between the display of the page and the user's decision.
    """

    request: ConsentRequest
    scope: str
    account: Account | None
    subject: Subject
    digest: str


def get_signature_request(request: ConsentRequest) -> SignatureRequest:
    """Return the contents of the page for a request for a signature."""
    body = request.body
    own = Account.objects.filter(user_id=request.dapp.user_id)
    account = own.filter(address=body["address"]).first()
    shown = [request.pk, request.method, body, None if account is None else account.pk]
    return SignatureRequest(
        request=request,
        scope=body["scope"],
        account=account,
        subject=_subject(request.method, body),
        digest=sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest(),
    )


def sign(subject: bytes | TypedData, key: bytes) -> str:
    """Return the 65-byte signature r, s, v as `0x…`.

    key: 32 bytes.
    """
    if isinstance(subject, bytes):
        return "0x" + sign_message(subject, key).hex()
    return "0x" + sign_typed_data(subject, key).hex()


def is_allowed(request: ConsentRequest, granted: Scopes) -> bool:
    """Return whether a session's scopes allow a request.

    request: for a signature, or for an additional chain. granted: the session's scopes.
    """
    if request.method == ADD_CHAIN:
        return any(ADD_CHAIN in scope.methods for scope in granted.values())
    return holds(
        granted, request.method, request.body["scope"], request.body["address"]
    )


def holds(granted: Scopes, method: str, scope: str, address: str) -> bool:
    """Return whether a session's scopes permit a method for an account in one scope."""
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
