"""Decodes the frames of a dapp, and encodes responses and notifications.

Ids may only be numbers or strings, not null.
Source: https://www.jsonrpc.org/specification
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from jsonrpc import text
from jsonrpc.envelope import NULL, write_error
from jsonrpc.errors import ParseError as NotJson
from jsonrpc.errors import RpcError
from keys.site import site_url
from nodeapi.endpoint.calls import without_collections
from wallets.errors import InvalidParams, InvalidRequest, ParseError, WalletError

CANCEL = "$/cancelRequest"
"""A JSON-RPC notification that withdraws a call's request to the user."""


@dataclass(frozen=True, slots=True)
class Call:
    """A JSON-RPC request that expects a response.

    id: the request's id, as JSON.
    params: the request's `params`, None if it has none.
    """

    id: bytes
    method: str
    params: Any


class Refused(Exception):
    """Raised for a message that is no valid request.

    id: the id of the error response, as JSON.
    """

    def __init__(self, call_id: bytes, error: WalletError) -> None:
        super().__init__(str(error))
        self.id = call_id
        self.error = error


def read_frame(frame: str) -> Any:
    """Return the JSON value of a frame.

    Raises: Refused.
    """
    try:
        encoded = frame.encode("utf-8", "surrogatepass")
        return without_collections(partial(text.parse, encoded))
    except NotJson as error:
        raise Refused(NULL, ParseError()) from error


def read_call(message: Any) -> Call | None:
    """Return the call that a message makes, None for a JSON-RPC notification.

    Raises: Refused.
    """
    if not isinstance(message, dict):
        raise Refused(NULL, InvalidRequest())
    call_id = _read_id(message) if "id" in message else None
    method = message.get("method")
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
        raise Refused(call_id or NULL, InvalidRequest())
    if call_id is None:
        return None
    params = message.get("params")
    if text.has_lone_surrogate(params):
        # Neither the database nor a page can store such a string.
        fault = "a string or a member name contains a lone surrogate"
        raise Refused(call_id, InvalidParams("", "", fault))
    return Call(call_id, method, params)


def read_cancellation(message: Any) -> bytes | None:
    """Return the id, as JSON, of the call that a JSON-RPC notification cancels, or None.

    Source: the Language Server Protocol, `$/cancelRequest`; JSON-RPC has no such message
    """
    if not isinstance(message, dict) or message.get("method") != CANCEL:
        return None
    params = message.get("params")
    if "id" in message or not isinstance(params, dict) or "id" not in params:
        return None
    try:
        return _read_id(params)
    except Refused:
        return None


def write_failure(call_id: bytes, error: WalletError | RpcError) -> bytes:
    """Return an error response. call_id: as JSON."""
    members: dict[str, object] = {"code": error.code, "message": error.message}
    if isinstance(error, RpcError):
        data = error.linked_data(site_url(""))
    else:
        data = error.data
    if data is not None:
        members["data"] = data
    return write_error(call_id, text.dump(members))


def write_session_changed(scopes: bytes) -> bytes:
    """Return a wallet_sessionChanged frame. scopes: the `sessionScopes` as JSON.

    Source: CAIP-311
    """
    return (
        b'{"jsonrpc":"2.0","method":"wallet_sessionChanged",'
        b'"params":{"sessionScopes":' + scopes + b"}}"
    )


def notification_frame(scope: str, subscription: str) -> tuple[bytes, bytes]:
    """Return the parts of a wallet_notify frame before and after its result.

    Source: CAIP-319; its notification is geth's eth_subscription
    """
    before = (
        b'{"jsonrpc":"2.0","method":"wallet_notify","params":{"scope":%b,'
        b'"notification":{"method":"eth_subscription","params":{"subscription":%b,'
        b'"result":' % (text.dump(scope), text.dump(subscription))
    )
    return before, b"}}}}"


def _read_id(message: dict[str, Any]) -> bytes:
    value = message["id"]
    if isinstance(value, text.Number):
        return value.text.encode()
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Refused(NULL, InvalidRequest())
    return text.dump(value)
