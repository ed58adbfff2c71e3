"""`rpc_modules` and `rpc.discover`: the available namespaces and methods."""

from __future__ import annotations

import re
from functools import cache

from jsonrpc.text import dump
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.schemas import openrpc
from nodeapi.schemas.building import named


@registry.method(
    "rpc_modules",
    result=named(
        "modules", {"type": "object", "additionalProperties": {"type": "string"}}
    ),
    summary="Returns the namespaces of methods with their versions.",
)
def modules(context: Context) -> bytes:
    """Return the namespaces. Every version is 1.0, as in geth."""
    names = {re.split(r"[_.]", method.name)[0] for method in registry}
    return dump(dict.fromkeys(sorted(names), "1.0"))


@registry.method(
    "rpc.discover",
    result=named("openrpc", {"type": "object"}),
    summary="Returns the OpenRPC document of this service.",
)
def discover(context: Context) -> bytes:
    """Return the OpenRPC document, which is generated from the registry of methods."""
    return _document()


@cache
def _document() -> bytes:
    return dump(openrpc.document(registry))
