"""Allowlist checks before the methods are called.

Keys without allowlists use a dispatcher without these checks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jsonrpc.registry import Method, MethodRegistry
from nodeapi import schemas
from nodeapi.methods.context import Context

_NAMING_ADDRESSES = (schemas.ADDRESS, schemas.POSITIONS_BY_ADDRESS)
"""Schemas of parameters that are an address, or have addresses for keys."""


def guard(registry: MethodRegistry) -> MethodRegistry:
    """Return a registry whose methods check the key's allowlists before they run."""
    return registry.map(_guarded)


def _guarded(method: Method) -> Method:
    positions = [
        position
        for position, param in enumerate(method.signature.params)
        if param.schema in _NAMING_ADDRESSES
    ]

    def handler(context: Context, *arguments: Any) -> Any:
        allowlists = context.grant.allowlists
        if allowlists is not None:
            allowlists.require_method(method.name)
            for position in positions:
                named = arguments[position]
                allowlists.require_contracts([named] if type(named) is bytes else named)
        return method.handler(context, *arguments)

    return replace(method, handler=handler)
