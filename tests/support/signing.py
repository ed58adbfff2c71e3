"""Private keys for tests, and accounts with them."""

from __future__ import annotations

from typing import Any

from eth_account import Account as Signer
from eth_account.messages import encode_defunct, encode_typed_data

from keys.models import User
from tests.support.wallet import A1, BY_USER
from wallets.models import Account, ConsentRequest
from wallets.services.keystores import import_key
from wallets.services.signatures import approve_signature
from wallets.signature_requests import get_signature_request
from wallets.signing.keys import address_of

PASSPHRASE = "correct horse battery"
KEY = bytes.fromhex("7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d")
OTHER_KEY = b"\x17" * 32
SIGNER = address_of(KEY)

MAIL = {
    "types": {
        "EIP712Domain": [
            {"name": "name", "type": "string"},
            {"name": "chainId", "type": "uint256"},
        ],
        "Person": [
            {"name": "name", "type": "string"},
            {"name": "wallet", "type": "address"},
        ],
        "Mail": [
            {"name": "from", "type": "Person"},
            {"name": "contents", "type": "string"},
        ],
    },
    "primaryType": "Mail",
    "domain": {"name": "Ether Mail", "chainId": 1},
    "message": {
        "from": {"name": "Cow", "wallet": "0xcd2a3d9f938e13cd947ec05abc7fe734df8dd826"},
        "contents": "Hello, Bob!",
    },
}
"""Typed data that is similar to the example of EIP-712."""


def approval_of(chain_id: int) -> dict[str, Any]:
    """Return a stored transaction that approves an unlimited amount of a token."""
    return {
        **{"type": 2, "chainId": chain_id, "to": A1, "value": "0xde0b6b3a7640000"},
        **{"gas": 50_000, "maxFeePerGas": "0x37e11d600", "accessList": []},
        **{"maxPriorityFeePerGas": "0x3b9aca00", "nonce": None},
        "data": "0x095ea7b3" + "00" * 12 + "c0" * 20 + "ff" * 32,
    }


def add_key(user: User, key: bytes = KEY, label: str = "Spending") -> Account:
    """Give a user an account with a key."""
    return import_key(
        user=user, key=key, passphrase=PASSPHRASE, label=label, cause=BY_USER
    )


def sign_pending(request: ConsentRequest, passphrase: str = PASSPHRASE) -> None:
    """Approve a request as the user who has seen its page."""
    approve_signature(
        request_id=request.pk,
        user=request.dapp.user,
        digest=get_signature_request(request).digest,
        passphrase=passphrase,
        cause=BY_USER,
    )


def signer_of(message: bytes, signature: str) -> str:
    """Return the address that has signed a message."""
    signed = encode_defunct(primitive=message)
    return str(Signer.recover_message(signed, signature=signature)).lower()


def signer_of_data(data: dict[str, Any], signature: str) -> str:
    """Return the address that has signed typed data."""
    signed = encode_typed_data(full_message=data)
    return str(Signer.recover_message(signed, signature=signature)).lower()
