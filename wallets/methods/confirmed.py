"""Methods of a chain's scope that sign, each call after the user's confirmation.

The order of checks and the errors are MetaMask's.

Source: https://docs.metamask.io/wallet/reference/json-rpc-methods/personal_sign/,
    https://eips.ethereum.org/EIPS/eip-712
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from jsonrpc.errors import InvalidParams
from jsonrpc.params import Param, anything
from jsonrpc.text import dump
from wallets.caip import Address
from wallets.errors import NotSent, Unauthorized, UserRejected
from wallets.methods.decisions import decision_on
from wallets.methods.invocation import Invocation
from wallets.models import RequestState
from wallets.registries import chain_methods
from wallets.services.signatures import request_signature, require_key
from wallets.serving.threads import in_thread
from wallets.signature_requests import PERSONAL_SIGN, SIGN_TYPED_DATA
from wallets.signing.messages import read_message
from wallets.signing.typed_data import read_typed_data

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_TEXT = {"type": "string"}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("expected a string")
    return value


@chain_methods.method(
    PERSONAL_SIGN,
    params=[
        Param("message", _text, _TEXT),
        Param("address", _text, _TEXT),
        Param(
            "ignored",
            anything,
            required=False,
            summary="Ignored. Some dapps send a password.",
        ),
    ],
    result=_TEXT,
    summary="Asks the user to sign a message (EIP-191), as 0x… or as text.",
    is_slow=True,
)
async def personal_sign(
    invocation: Invocation, message: str, address: str, _: Any
) -> bytes:
    """Ask the user to sign a message, and return the signature as JSON.

    message: text, or bytes as `0x…`. address: of the account that signs. Both orders of
        these two arguments are accepted, because eth_sign has the other one.
    Raises: InvalidParams if neither argument is an address; UserRejected; the errors of
        `services.signatures.request_signature`, such as Unauthorized.
    """
    if _ADDRESS.fullmatch(message) and not _ADDRESS.fullmatch(address):
        message, address = address, message  # the order of eth_sign
    account = await signer(invocation, address)
    try:
        subject = read_message(message)
    except ValueError as error:
        raise InvalidParams(str(error)) from error
    return await signature_of(
        invocation, PERSONAL_SIGN, account, message="0x" + subject.hex()
    )


@chain_methods.method(
    SIGN_TYPED_DATA,
    params=[
        Param("address", _text, _TEXT),
        Param("data", anything, {"type": ["object", "string"]}),
    ],
    result=_TEXT,
    summary="Asks the user to sign typed data (EIP-712), as an object or as its JSON.",
    is_slow=True,
)
async def sign_typed_data(invocation: Invocation, address: str, data: Any) -> bytes:
    """Ask the user to sign typed data, and return the signature as JSON.

    address: of the account that signs. data: an object or its JSON text.
    Raises: InvalidParams if the data is malformed; UserRejected; the errors of
        `services.signatures.request_signature`, such as Unauthorized.
    """
    account = await signer(invocation, address)
    try:
        subject = await in_thread(read_typed_data, data)
    except ValueError as error:
        raise InvalidParams(str(error)) from error
    network = invocation.network
    if network is None or subject.chain_id not in (None, network.chain_id):
        raise InvalidParams("domain.chainId: differs from the scope's chain")
    return await signature_of(
        invocation, SIGN_TYPED_DATA, account, data=subject.to_text()
    )


async def signer(invocation: Invocation, address: str) -> Address:
    """Return the address of an account that the dapp may use for signatures.

    Raises: Unauthorized if the session does not include the account.
    """
    account = invocation.require_account(address)
    dapp_id = invocation.context.peer.dapp_id
    await in_thread(require_key, dapp_id=dapp_id, address=account.address)
    return account


async def signature_of(
    invocation: Invocation, method: str, account: Address, **subject: Any
) -> bytes:
    """Request the user's confirmation, and return the method's result as JSON.

    subject: members of the request's body besides scope and address.
    Raises: UserRejected; Unauthorized if the session has changed since the call; NotSent.
    """
    outcome = await decision_on(
        invocation.context,
        request_signature,
        method=method,
        body={"scope": invocation.scope, "address": account.address, **subject},
    )
    if outcome.state == RequestState.WITHDRAWN:
        raise Unauthorized
    if outcome.state == RequestState.FAILED:
        raise NotSent(**orjson.loads(outcome.outcome)["error"])
    if outcome.state != RequestState.APPROVED:
        raise UserRejected
    return dump(orjson.loads(outcome.outcome)["result"])
