"""The OpenRPC document of the wallet, generated from the method registries.

Events are methods without a result, because OpenRPC has no other notifications.
Source: https://spec.open-rpc.org/
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jsonrpc.params import Schema
from jsonrpc.registry import Method
from nodeapi import VERSION
from nodeapi.schemas.openrpc import content_descriptor
from wallets import errors
from wallets.errors import WalletError
from wallets.methods import chain, confirmed, own, transactions  # noqa: F401
from wallets.methods.outer import session_methods
from wallets.proposals import Known
from wallets.registries import chain_methods, own_methods
from wallets.schemas import NOTIFICATION, SCOPE, SESSION_SCOPES

_EVENTS: Mapping[str, tuple[str, Mapping[str, Schema]]] = {
    "wallet_sessionChanged": (
        "The session has changed. If there are no scopes, it has ended.",
        {"sessionScopes": SESSION_SCOPES},
    ),
    "wallet_notify": (
        "A subscription has a new result.",
        {"scope": SCOPE, "notification": NOTIFICATION},
    ),
}


def document(socket_url: str, offer: Mapping[str, Known]) -> dict[str, Any]:
    """Return the OpenRPC document of the wallet as a JSON object.

    socket_url: URL of the dapps' WebSocket. offer: what can be granted, by scope.
    """
    invoked = [*chain_methods, *own_methods]
    kinds = error_classes()
    return {
        "openrpc": "1.3.2",
        "info": {
            "title": "Portcullis wallet API",
            "description": "The Multichain API (CAIP-25, 27, 285, 311, 312, 319), as "
            "JSON-RPC 2.0 over a WebSocket. `x-invoked` lists the wallet's own methods "
            "for wallet_invokeMethod; /openrpc.json lists the node's.",
            "version": VERSION,
            "license": {"name": "MIT"},
        },
        "servers": [{"name": "wallet", "url": socket_url}],
        "methods": [
            *(_method(method, "by-name", kinds) for method in session_methods),
            *(_event(name, *described) for name, described in _EVENTS.items()),
        ],
        "x-invoked": [_method(method, "by-position", ()) for method in invoked],
        "x-scopes": {
            scope: {
                "methods": list(known.all_methods),
                "notifications": list(known.notifications),
            }
            for scope, known in offer.items()
        },
        "components": {"errors": {kind.__name__: _error(kind) for kind in kinds}},
    }


def error_classes() -> list[type[WalletError]]:
    """Return the classes of errors that dapps may get, by name."""
    found = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    kinds = [kind for kind in found if issubclass(kind, WalletError)]
    return sorted(
        (kind for kind in kinds if kind is not WalletError),
        key=lambda kind: kind.__name__,
    )


def raised_when(kind: type[WalletError]) -> str:
    """Return the summary of an error's docstring from its "When" on."""
    text = (kind.__doc__ or "").partition("\n\n")[0]
    words = " ".join(text.replace("`", "").split()).removeprefix("Raised ")
    return words[:1].upper() + words[1:]


def _method(
    method: Method, structure: str, kinds: Sequence[type[WalletError]]
) -> dict[str, Any]:
    return {
        "name": method.name,
        "summary": method.summary,
        "paramStructure": structure,
        "params": [content_descriptor(param) for param in method.signature.params],
        "result": {"name": "result", "schema": method.result},
        "errors": [{"$ref": f"#/components/errors/{kind.__name__}"} for kind in kinds],
    }


def _event(name: str, summary: str, params: Mapping[str, Schema]) -> dict[str, Any]:
    return {
        "name": name,
        "summary": summary,
        "paramStructure": "by-name",
        "params": [
            {"name": param, "required": True, "schema": schema}
            for param, schema in params.items()
        ],
    }


def _error(kind: type[WalletError]) -> dict[str, Any]:
    text = getattr(kind, "text", "") or raised_when(kind)
    return {"code": kind.code, "message": text}
