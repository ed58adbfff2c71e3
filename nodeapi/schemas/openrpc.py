"""The OpenRPC document, generated from the registry of methods.

Source: https://spec.open-rpc.org/
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from jsonrpc.errors import (
    InternalError,
    InvalidParams,
    RpcError,
    ServiceUnavailable,
    error_classes,
)
from jsonrpc.params import Param
from jsonrpc.registry import Method, MethodRegistry
from nodeapi import VERSION
from nodeapi.schemas.building import COMPONENTS
from nodeapi.schemas.sample_arguments import ARGUMENTS, UNFOUND

_OF_EVERY_METHOD: tuple[type[RpcError], ...] = (
    InvalidParams,
    InternalError,
    ServiceUnavailable,
)


class Server(NamedTuple):
    """A network in the document.

    name: its slug. summary: its display name.
    url: its base URL. Calls are posted to it with the key in a header.
    tracers: the tracers that it offers.
    examples: parameter name → argument for which the network has data.
    """

    name: str
    summary: str
    url: str
    tracers: Sequence[str]
    examples: Mapping[str, Any]


def document(
    registry: MethodRegistry, servers: Sequence[Server] = ()
) -> dict[str, Any]:
    """Return the document of all registered methods.

    servers: the networks. A method has an example for each of them on which its arguments
        exist. Without networks, each method has an example that shows the form.
    """
    described = {"servers": [_server(one) for one in servers]} if servers else {}
    return {
        "openrpc": "1.3.2",
        "info": {
            "title": "Portcullis node API",
            "description": "Ethereum JSON-RPC, at POST {base_url}/v3/<API_KEY>.",
            "version": VERSION,
            "license": {"name": "MIT"},
        },
        **described,
        "methods": [_method(method, servers) for method in registry],
        "components": {
            "schemas": COMPONENTS,
            "errors": {kind.__name__: _error(kind) for kind in error_classes()},
        },
    }


def _server(server: Server) -> dict[str, Any]:
    return {
        "name": server.name,
        "summary": server.summary,
        "url": server.url,
        "x-tracers": list(server.tracers),
    }


def _method(method: Method, servers: Sequence[Server]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": method.name,
        "summary": method.summary,
        "paramStructure": "by-position",
        "params": [content_descriptor(param) for param in method.signature.params],
        "result": method.result,
        "errors": [_reference(kind) for kind in _OF_EVERY_METHOD],
        "x-credits": method.credits,
    }
    if method.capability is not None:
        described["x-entitlement"] = method.capability
    params = method.signature.params
    pairings = [
        _example(params, server.name, {**UNFOUND, **server.examples})
        for server in servers
    ] or [_example(params, method.name, ARGUMENTS)]
    if examples := [pairing for pairing in pairings if pairing is not None]:
        described["examples"] = examples
    return described


def _example(
    params: Sequence[Param], name: str, known: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return an example call, or None if an argument is unknown.

    name: that of the example. known: arguments by the name of their parameter. The
        example ends before the first optional one that is not known.
    """
    if any(param.required and param.name not in known for param in params):
        return None
    arguments = [
        {"name": param.name, "value": known[param.name]}
        for param in takewhile(lambda each: each.name in known, params)
    ]
    return {"name": name, "params": arguments}


def content_descriptor(param: Param) -> dict[str, Any]:
    """Return the description of a parameter in the document."""
    described = {"summary": param.summary} if param.summary else {}
    return {
        "name": param.name,
        **described,
        "required": param.required,
        "schema": param.schema,
    }


def _reference(kind: type[RpcError]) -> dict[str, str]:
    return {"$ref": f"#/components/errors/{kind.__name__}"}


def _error(kind: type[RpcError]) -> dict[str, Any]:
    """Describe a class of errors, from its docstring."""
    summary = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
    described: dict[str, Any] = {"code": kind.code, "message": kind.text or summary}
    if kind.reason:
        described["data"] = {"reason": kind.reason}
    return described
