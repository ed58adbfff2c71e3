"""Dispatches a dapp's calls.

Calls are checked in MetaMask's order: first that the method exists, then the types of
the parameters, and then the method's own rules.
"""

from __future__ import annotations

import logging
from typing import Any

from django.db import Error as DatabaseError

from jsonrpc.errors import RpcError
from jsonrpc.params import Param
from jsonrpc.registry import Method
from postgres.errors import Unavailable
from wallets.errors import InternalError, InvalidParams, MethodNotFound, WalletError
from wallets.methods import invoke, sessions
from wallets.registries import session_methods
from wallets.scopes import ShapeError
from wallets.serving.context import Answer, Context

__all__ = ["answer", "invoke", "session_methods", "sessions"]

logger = logging.getLogger(__name__)

_BY_NAME = frozenset({"wallet_createSession", "wallet_invokeMethod"})
"""Methods whose parameters must be an object; the others ignore an array."""


async def answer(context: Context, name: str, params: Any) -> Answer:
    """Run a call and return its result.

    params: the request's `params`, None if it has none.
    Raises: WalletError, and RpcError for errors of methods behind wallet_invokeMethod.
        Every other exception is logged and raised as InternalError.
    """
    method = session_methods.find(name)
    if method is None:
        raise MethodNotFound(name)
    arguments = _decode(method, params)
    try:
        answered: Answer = await method.handler(context, *arguments)
    except (WalletError, RpcError):
        raise
    except (Unavailable, DatabaseError) as error:
        logger.info("%s in request %s: %s", name, context.request_id, error)
        raise InternalError from error
    except Exception as error:
        message = "%s crashed in request %s"
        logger.error(message, name, context.request_id, exc_info=error)
        raise InternalError from error
    return answered


def _decode(method: Method, params: Any) -> list[Any]:
    """Return a handler's arguments from named parameters; unknown names are ignored.

    Raises: InvalidParams, for the first fault.
    """
    if method.name not in _BY_NAME and (params is None or isinstance(params, list)):
        params = {}
    if not isinstance(params, dict):
        raise InvalidParams("", "", "expected an object")
    return [_argument(param, params) for param in method.signature.params]


def _argument(param: Param, params: dict[str, Any]) -> Any:
    if param.name not in params:
        if param.required:
            raise InvalidParams(param.name, "", "required")
        return param.default
    try:
        # null is an ordinary value: an optional parameter has to be left out instead.
        return param.decoder(params[param.name])
    except ShapeError as error:
        raise InvalidParams(param.name, error.path, str(error)) from error
