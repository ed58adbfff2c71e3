"""Frames: what a dapp sends, read as calls, and what it is told, as JSON.

Source: https://www.jsonrpc.org/specification; ids are narrower, as dapps need no more
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jsonrpc import text
from jsonrpc.envelope import NULL, write_error
from jsonrpc.errors import ParseError as NotJson
from jsonrpc.errors import RpcError
from wallets.errors import InvalidRequest, ParseError, WalletError


@dataclass(frozen=True, slots=True)
class Call:
    """A request that has to be answered.

    id: as JSON.
    params: the message's member, None where it has none.
    """

    id: bytes
    method: str
    params: Any


class Refused(Exception):
    """Raised for a message that is no call; id: what its error is answered with."""

    def __init__(self, call_id: bytes, error: WalletError) -> None:
        super().__init__(str(error))
        self.id = call_id
        self.error = error


def read_frame(frame: str) -> Any:
    """Return what a frame holds.

    Raises: Refused.
    """
    try:
        return text.parse(frame.encode("utf-8", "surrogatepass"))
    except NotJson as error:
        raise Refused(NULL, ParseError()) from error


def read_call(message: Any) -> Call | None:
    """Return the call that a message is, None for one that wants no answer.

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
    return Call(call_id, method, message.get("params"))


def write_failure(call_id: bytes, error: WalletError | RpcError) -> bytes:
    """Return the answer that tells of an error."""
    members: dict[str, object] = {"code": error.code, "message": error.message}
    if error.data is not None:
        members["data"] = error.data
    return write_error(call_id, text.dump(members))


def write_session_changed(scopes: bytes) -> bytes:
    """Return a wallet_sessionChanged; scopes: the `sessionScopes` as JSON.

    Source: CAIP-311
    """
    return (
        b'{"jsonrpc":"2.0","method":"wallet_sessionChanged",'
        b'"params":{"sessionScopes":' + scopes + b"}}"
    )


def around_notification(scope: str, subscription: str) -> tuple[bytes, bytes]:
    """Return what stands before and behind the result in a wallet_notify.

    Source: CAIP-319, around geth's eth_subscription
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
