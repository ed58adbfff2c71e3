"""wallet_invokeMethod: calls a method of a chain, or of the wallet, if it was granted.

As in MetaMask, the result is that of the inner method, without CAIP-27's envelope.
Source: https://chainagnostic.org/CAIPs/caip-27
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

from django.conf import settings

from jsonrpc.calls import Call, count
from jsonrpc.errors import (
    MethodNotFound,
    RequestTimedOut,
    RpcError,
    ServiceUnavailable,
)
from jsonrpc.params import Param
from jsonrpc.registry import Method
from jsonrpc.stream import ResultTooLarge, Stream
from nodeapi.errors.access import MethodNotEntitled
from nodeapi.methods import registry as node_methods
from nodeapi.methods.context import Context as NodeContext
from wallets import caip
from wallets.errors import Unauthorized
from wallets.methods.invocation import Invocation
from wallets.registries import chain_methods, own_methods, session_methods
from wallets.schemas import SCOPE
from wallets.scopes import ShapeError
from wallets.serving.context import Answer, Context

MAX_RESULT_BYTES = 8 * 2**20
"""Longest result; it is held in memory and sent as one frame."""


@dataclass(frozen=True, slots=True)
class Request:
    """The inner call.

    params: an array, or an object of named parameters.
    """

    method: str
    params: list[Any] | dict[str, Any]


def _decode_scope(value: Any) -> str:
    if not isinstance(value, str):
        raise ShapeError("", "expected a string")
    try:
        return str(caip.parse_scope(value))
    except ValueError as error:
        raise ShapeError("", str(error)) from error


def _decode_request(value: Any) -> Request:
    if not isinstance(value, dict):
        raise ShapeError("", "expected an object")
    method = value.get("method")
    if not isinstance(method, str) or not method:
        raise ShapeError("method", "expected the name of a method")
    params = value.get("params")
    if params is None:
        params = []
    if not isinstance(params, list | dict):
        raise ShapeError("params", "expected an array or an object")
    return Request(method, params)


@session_methods.method(
    "wallet_invokeMethod",
    params=[
        Param("scope", _decode_scope, SCOPE),
        Param(
            "request",
            _decode_request,
            {
                "type": "object",
                "required": ["method"],
                "properties": {"method": {"type": "string"}, "params": {}},
            },
        ),
    ],
    result={},
    summary="Calls a method that the session permits, in one of its scopes.",
)
async def invoke_method(context: Context, scope: str, request: Request) -> Answer:
    """Return the inner method's result.

    Raises: Unauthorized for everything that was not granted; the inner method's errors.
    """
    dapp = await context.wallet.store.dapp(context.peer.dapp_id)
    granted = None if dapp is None else dapp.allowed.scopes.get(scope)
    if dapp is None or granted is None or request.method not in granted.methods:
        raise Unauthorized
    network = context.wallet.network(scope)
    is_own = caip.parse_scope(scope).namespace == caip.WALLET
    if network is None and not is_own:
        raise Unauthorized  # the chain is no longer served
    found = (own_methods if is_own else chain_methods).find(request.method)
    target: Invocation | NodeContext
    if found is not None:
        target = Invocation(context, scope, granted, network)
    else:
        found = None if network is None else node_methods.find(request.method)
        if found is None or network is None:
            raise MethodNotFound(request.method)
        key = await context.wallet.grant()
        if not key.allows_network(network.id):
            raise Unauthorized
        node = context.wallet.node
        target = NodeContext(
            *(context.request_id, key, network, node.store, node.tracing),
            *(node.limiter, node.meter, perf_counter_ns()),
            relay=node.relay,
            filters=node.filters,
            user=dapp.user_id,
        )
        try:
            target.authorise(found)
        except MethodNotEntitled as error:  # withdrawn by staff since it was granted
            raise Unauthorized from error
        return Answer(await _call_charged(found, target, request.params))
    return Answer(await _call(found, target, request.params))


async def _call_charged(
    method: Method, target: NodeContext, params: list[Any] | dict[str, Any]
) -> bytes:
    """Call a method of the node and charge the wallet's API key, as over HTTP.

    Raises: RpcError; see `keys.limiter.errors`.
    """
    call = Call()
    call.method, call.credits = method, 0
    result = b""
    try:
        await target.charge(method.credits)
        call.credits = method.credits
        result = await _call(method, target, params)
    except BaseException as error:
        # Other errors, such as an unavailable database, are not the key's fault.
        call.error = error if isinstance(error, RpcError) else ServiceUnavailable()
        raise
    finally:
        count(call, len(result), target)
    return result


async def _call(
    method: Method, target: Invocation | NodeContext, params: list[Any] | dict[str, Any]
) -> bytes:
    """Call a method with positional parameters and return its result as JSON.

    Raises: RpcError.
    """
    if isinstance(params, dict) and not params:
        params = []
    arguments = method.signature.decode(params)
    try:
        async with asyncio.timeout(_seconds(method, target)):
            if method.takes_room:
                arguments = [*arguments, MAX_RESULT_BYTES]
            value = await method.start(target, arguments)
            if isinstance(value, Stream):
                return await _whole(value)
            return method.encode(value)
    except TimeoutError as error:
        raise RequestTimedOut from error


def _seconds(method: Method, target: Invocation | NodeContext) -> float | None:
    """Return the time limit of a method in seconds; None if it waits for the user."""
    if not method.is_slow:
        return settings.NODEAPI_REQUEST_TIMEOUT
    return (
        settings.NODEAPI_SLOW_REQUEST_TIMEOUT
        if isinstance(target, NodeContext)
        else None
    )


async def _whole(stream: Stream) -> bytes:
    """Return a stream's content.

    Raises: ResultTooLarge above MAX_RESULT_BYTES.
    """
    try:
        if stream.size > MAX_RESULT_BYTES:
            raise ResultTooLarge(stream.size, MAX_RESULT_BYTES, stream.advice)
        return await stream.read()
    finally:
        await stream.aclose()
