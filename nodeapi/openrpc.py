"""The OpenRPC document, generated from the register of methods.

Source: https://spec.open-rpc.org/
"""

from __future__ import annotations

from typing import Any

from jsonrpc.errors import (
    InternalError,
    InvalidParams,
    RpcError,
    ServiceUnavailable,
    error_classes,
)
from jsonrpc.params import Param
from jsonrpc.registry import Method, MethodRegistry
from nodeapi import schemas
from nodeapi.version import VERSION

_OF_EVERY_METHOD: tuple[type[RpcError], ...] = (
    InvalidParams,
    InternalError,
    ServiceUnavailable,
)


def document(registry: MethodRegistry) -> dict[str, Any]:
    """Return the document of what is registered."""
    return {
        "openrpc": "1.3.2",
        "info": {
            "title": "Portcullis node API",
            "description": "Ethereum JSON-RPC, at POST {base_url}/v3/<API_KEY>.",
            "version": VERSION,
            "license": {"name": "MIT"},
        },
        "methods": [_method(method) for method in registry],
        "components": {
            "schemas": schemas.COMPONENTS,
            "errors": {kind.__name__: _error(kind) for kind in error_classes()},
        },
    }


def _method(method: Method) -> dict[str, Any]:
    return {
        "name": method.name,
        "summary": method.summary,
        "paramStructure": "by-position",
        "params": [_param(param) for param in method.signature.params],
        "result": method.result,
        "errors": [_reference(kind) for kind in _OF_EVERY_METHOD],
        "x-credits": method.credits,
    }


def _param(param: Param) -> dict[str, Any]:
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
    """Describe a kind of error; what it is raised for stands in its docstring."""
    summary = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
    described: dict[str, Any] = {"code": kind.code, "message": kind.text or summary}
    if kind.reason:
        described["data"] = {"reason": kind.reason}
    return described
