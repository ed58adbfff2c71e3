"""Typed data of each known kind, as dapps send it."""

from __future__ import annotations

import copy
import re
from typing import Any

from wallets.signing.known.recognition import LAYOUTS

SIGNER = "0x" + "a1" * 20
SPENDER = "0x" + "5e" * 20
TOKEN = "0x" + "70" * 20
OTHER_TOKEN = "0x" + "71" * 20
NOW = 1_795_000_000
LATER = NOW + 86_400

PERMIT2 = "0x000000000022D473030F116dDEE9F6B43aC78BA3"
SEAPORT = "0x0000000000000068F116a894984e2DB1123eB395"
COW = "0x9008D19f58AAbD9eD0D60971565AA8510560ab41"
"""As their documentation has them, with the checksum of EIP-55."""

OWN_DOMAIN = {
    "name": "A token",
    "version": "1",
    "chainId": 1,
    "verifyingContract": TOKEN,
}
PERMIT2_DOMAIN = {"name": "Permit2", "chainId": 1, "verifyingContract": PERMIT2}
SEAPORT_DOMAIN = {
    "name": "Seaport",
    "version": "1.6",
    "chainId": 1,
    "verifyingContract": SEAPORT,
}
COW_DOMAIN = {
    "name": "Gnosis Protocol",
    "version": "v2",
    "chainId": 1,
    "verifyingContract": COW,
}
DOMAIN_TYPES = {
    "name": "string",
    "version": "string",
    "chainId": "uint256",
    "verifyingContract": "address",
    "salt": "bytes32",
}
DETAILS = {"token": TOKEN, "amount": 1500, "expiration": LATER, "nonce": 0}
TRANSFER = {
    "from": SIGNER,
    "to": SPENDER,
    "value": 1500,
    "validAfter": 0,
    "validBefore": LATER,
    "nonce": "0x" + "11" * 32,
}
OFFERED = {
    "itemType": 2,
    "token": TOKEN,
    "identifierOrCriteria": 7,
    "startAmount": 1,
    "endAmount": 1,
}
WANTED = {
    "itemType": 0,
    "token": "0x" + "00" * 20,
    "identifierOrCriteria": 0,
    "startAmount": 2 * 10**18,
    "endAmount": 2 * 10**18,
    "recipient": SIGNER,
}
MESSAGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "Permit(address owner": (
        OWN_DOMAIN,
        {
            "owner": SIGNER,
            "spender": SPENDER,
            "value": 1500,
            "nonce": 0,
            "deadline": LATER,
        },
    ),
    "Permit(address holder": (
        OWN_DOMAIN,
        {
            "holder": SIGNER,
            "spender": SPENDER,
            "nonce": 0,
            "expiry": LATER,
            "allowed": True,
        },
    ),
    "PermitSingle": (
        PERMIT2_DOMAIN,
        {"details": DETAILS, "spender": SPENDER, "sigDeadline": LATER},
    ),
    "PermitBatch(": (
        PERMIT2_DOMAIN,
        {
            "details": [DETAILS, {**DETAILS, "token": OTHER_TOKEN, "amount": 7}],
            "spender": SPENDER,
            "sigDeadline": LATER,
        },
    ),
    "PermitTransferFrom": (
        PERMIT2_DOMAIN,
        {
            "permitted": {"token": TOKEN, "amount": 1500},
            "spender": SPENDER,
            "nonce": 0,
            "deadline": LATER,
        },
    ),
    "PermitBatchTransferFrom": (
        PERMIT2_DOMAIN,
        {
            "permitted": [
                {"token": TOKEN, "amount": 1500},
                {"token": OTHER_TOKEN, "amount": 7},
            ],
            "spender": SPENDER,
            "nonce": 0,
            "deadline": LATER,
        },
    ),
    "TransferWithAuthorization": (OWN_DOMAIN, TRANSFER),
    "ReceiveWithAuthorization": (OWN_DOMAIN, TRANSFER),
    "CancelAuthorization": (
        OWN_DOMAIN,
        {"authorizer": SIGNER, "nonce": "0x" + "11" * 32},
    ),
    "OrderComponents": (
        SEAPORT_DOMAIN,
        {
            "offerer": SIGNER,
            "zone": "0x" + "00" * 20,
            "offer": [OFFERED],
            "consideration": [WANTED],
            "orderType": 0,
            "startTime": NOW - 60,
            "endTime": LATER,
            "zoneHash": "0x" + "00" * 32,
            "salt": 1,
            "conduitKey": "0x" + "00" * 32,
            "counter": 0,
        },
    ),
    "Order(": (
        COW_DOMAIN,
        {
            "sellToken": TOKEN,
            "buyToken": OTHER_TOKEN,
            "receiver": SIGNER,
            "sellAmount": 1500,
            "buyAmount": 7,
            "validTo": LATER,
            "appData": "0x" + "00" * 32,
            "feeAmount": 0,
            "kind": "sell",
            "partiallyFillable": False,
            "sellTokenBalance": "erc20",
            "buyTokenBalance": "erc20",
        },
    ),
}
"""Domain and message by the beginning of the encoded type."""


def sample(start: str, domain: dict[str, Any] | None = None, **changes: Any) -> Any:
    """Return typed data of a known kind.

    start: the beginning of its encoded type. changes: members of the message.
    """
    encoded = next(one.encoded for one in LAYOUTS if one.encoded.startswith(start))
    own_domain, message = MESSAGES[start]
    used = own_domain if domain is None else domain
    types = {
        name: [
            {"name": member.split()[1], "type": member.split()[0]}
            for member in members.split(",")
        ]
        for name, members in re.findall(r"(\w+)\(([^)]*)\)", encoded)
    }
    types["EIP712Domain"] = [
        {"name": name, "type": kind}
        for name, kind in DOMAIN_TYPES.items()
        if name in used
    ]
    data = {
        "types": types,
        "primaryType": encoded.partition("(")[0],
        "domain": used,
        "message": {**message, **changes},
    }
    return copy.deepcopy(data)
