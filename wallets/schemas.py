"""JSON schemas of the messages between dapps and the wallet.

Patterns are anchored, so they match whole texts. Malformed scopes in a request are
ignored. The wallet only sends valid scopes.
Source: https://chainagnostic.org/CAIPs/caip-2, caip-10, caip-217
"""

from __future__ import annotations

from jsonrpc.params import Schema

STRINGS: Schema = {"type": "array", "items": {"type": "string"}}

SCOPE: Schema = {
    "type": "string",
    "pattern": "^(wallet|[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32})$",
}
"""The wallet itself, or a CAIP-2 chain id."""

_ACCOUNT: Schema = {
    "type": "string",
    "pattern": "^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}:[-.%a-zA-Z0-9]{1,128}$",
}

REQUESTED_SCOPES: Schema = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "required": ["methods", "notifications"],
        "properties": {
            "references": STRINGS,
            "methods": STRINGS,
            "notifications": STRINGS,
            "accounts": STRINGS,
        },
    },
}

SESSION_SCOPES: Schema = {
    "type": "object",
    "propertyNames": SCOPE,
    "additionalProperties": {
        "type": "object",
        "required": ["accounts", "methods", "notifications"],
        "properties": {
            "accounts": {"type": "array", "items": _ACCOUNT},
            "methods": STRINGS,
            "notifications": STRINGS,
        },
        "additionalProperties": False,
    },
}

SESSION_PROPERTIES: Schema = {
    "type": "object",
    "properties": {"expiry": {"type": "string", "format": "date-time"}},
    "additionalProperties": False,
}

SESSION: Schema = {
    "type": "object",
    "required": ["sessionScopes", "sessionProperties"],
    "properties": {
        "sessionScopes": SESSION_SCOPES,
        "sessionProperties": SESSION_PROPERTIES,
    },
    "additionalProperties": False,
}

NOTIFICATION: Schema = {
    "type": "object",
    "required": ["method", "params"],
    "properties": {
        "method": {"const": "eth_subscription"},
        "params": {
            "type": "object",
            "required": ["subscription", "result"],
            "properties": {
                "subscription": {"type": "string", "pattern": "^0x[0-9a-f]{32}$"},
                "result": {"type": "object"},
            },
        },
    },
}
"""The `notification` of a wallet_notify."""
