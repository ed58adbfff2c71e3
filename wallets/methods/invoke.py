"""wallet_invokeMethod: calls a method of a chain, or of the wallet, if it was granted.

As in MetaMask, the result is that of the inner method, without CAIP-27's envelope.
Source: https://chainagnostic.org/CAIPs/caip-27
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

from jsonrpc.errors import MethodNotFound, RequestTimedOut
from jsonrpc.params import Param
from jsonrpc.registry import Method
from networks.directory import NetworkView
from nodeapi.errors.access import MethodNotEntitled
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
    params = [] if request.params == {} else request.params
    found = (own_methods if is_own else chain_methods).find(request.method)
    if found is not None:
        invocation = Invocation(context, scope, granted, network)
        return Answer(await _call(found, invocation, params))
    if network is None:
        raise MethodNotFound(request.method)
    node = await _node_context(context, network, dapp.user_id)
    try:
        result = await context.wallet.calls.call(
            request.method, params, node, size=context.size, room=MAX_RESULT_BYTES
        )
    except MethodNotEntitled as error:  # withdrawn by staff since it was granted
        raise Unauthorized from error
    return Answer(result)


async def _node_context(
    context: Context, network: NetworkView, user: int
) -> NodeContext:
    """Return the context of a call that the wallet's API key pays for.

    user: the id of the dapp's user.

    Raises: Unauthorized if the key may not use the network; see `Wallet.grant`.
    """
    key = await context.wallet.grant()
    if not key.allows_network(network.id):
        raise Unauthorized
    node = context.wallet.node
    return NodeContext(
        *(context.request_id, key, network, node.store, node.tracing),
        *(node.limiter, node.meter, perf_counter_ns()),
        relay=node.relay,
        filters=node.filters,
        user=user,
        values=node.values,
    )


async def _call(
    method: Method, invocation: Invocation, params: list[Any] | dict[str, Any]
) -> bytes:
    """Call a method of the wallet with positional parameters; return its result as JSON.

    A method that waits for the user has no time limit here.

    Raises: RpcError, WalletError.
    """
    arguments = method.signature.decode(params)
    seconds = None if method.is_slow else invocation.context.wallet.calls.limits.seconds
    try:
        async with asyncio.timeout(seconds):
            return method.encode(await method.start(invocation, arguments))
    except TimeoutError as error:
        raise RequestTimedOut from error
