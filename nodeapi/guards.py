"""Allowlist checks before the methods are called.

Keys without allowlists use a dispatcher without these checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from jsonrpc.params import Schema
from jsonrpc.registry import Method, MethodRegistry
from nodeapi.methods.context import Context
from nodeapi.methods.eth_calls import AskedCall
from nodeapi.methods.log_criteria import LogCriteria
from nodeapi.methods.trace_calls import TypedCall
from nodeapi.schemas.calls import CALL
from nodeapi.schemas.logs import LOG_CRITERIA
from nodeapi.schemas.parity import CALLS_WITH_TYPES
from nodeapi.schemas.state import POSITIONS_BY_ADDRESS
from nodeapi.schemas.values import ADDRESS

_CREATION = b""
"""The recipient of a call that creates a contract. It is in no allowlist."""


def _recipient(call: AskedCall | TypedCall) -> bytes:
    return _CREATION if call.to is None else call.to


def _searched(criteria: LogCriteria) -> list[bytes]:
    addresses = criteria.wanted.addresses or ()
    return [bytes.fromhex(address[2:]) for address in addresses]


_ADDRESSES_IN: list[tuple[Schema, Callable[[Any], Iterable[bytes]]]] = [
    (ADDRESS, lambda address: [address]),
    (POSITIONS_BY_ADDRESS, lambda positions: positions),
    (CALL, lambda call: [_recipient(call)]),
    (CALLS_WITH_TYPES, lambda calls: map(_recipient, calls)),
    (LOG_CRITERIA, _searched),
]
"""Schemas of parameters that name contracts, each with a function that returns their
addresses from a decoded argument."""


def guard(registry: MethodRegistry) -> MethodRegistry:
    """Return a registry whose methods check the key's allowlists before they run."""
    return registry.map(_guarded)


def _guarded(method: Method) -> Method:
    naming = [
        (position, read)
        for position, param in enumerate(method.signature.params)
        for schema, read in _ADDRESSES_IN
        if param.schema == schema
    ]

    def handler(context: Context, *arguments: Any) -> Any:
        allowlists = context.grant.allowlists
        if allowlists is not None:
            allowlists.require_method(method.name)
            for position, read in naming:
                allowlists.require_contracts(read(arguments[position]))
        return method.handler(context, *arguments)

    return replace(method, handler=handler)
