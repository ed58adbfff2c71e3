"""The envelope of calls and responses: `jsonrpc`, `id`, `method`, `result`, `error`."""

from __future__ import annotations

from typing import Any

from jsonrpc.errors import InvalidRequest, RpcError
from jsonrpc.text import Number, dump

NULL = b"null"


def read_id(message: dict[str, Any]) -> bytes | None:
    """Return a message's id as JSON, or None without id.

    Raises: InvalidRequest if the id is an array or an object.
    """
    try:
        value = message["id"]
    except KeyError:
        return None
    if type(value) is int:
        return b"%d" % value
    if type(value) is Number:
        return value.text.encode()
    if isinstance(value, list | dict):
        raise InvalidRequest
    return dump(value)


def has_rounded_id(message: object) -> bool:
    """Return whether a message's id is a number that parsing may have rounded."""
    return type(message) is dict and type(message.get("id")) is float


def read_method(message: dict[str, Any]) -> str:
    """Return the name of the method that a message calls.

    Raises: InvalidRequest if the name is missing or `jsonrpc` is not "2.0".
    """
    name = message.get("method")
    if message.get("jsonrpc") != "2.0" or type(name) is not str or not name:
        raise InvalidRequest
    return name


def is_response(message: object) -> bool:
    """Return whether a message is a response instead of a call."""
    return (
        type(message) is dict
        and message.get("jsonrpc") == "2.0"
        and not isinstance(message.get("id", []), list | dict)
        and not message.get("method")
        and "params" not in message
        and ("result" in message or message.get("error") is not None)
    )


def write_result(call_id: bytes, result: bytes) -> bytes:
    """Return a response with a result. call_id, result: JSON."""
    # Joined rather than added up, which would copy a large result twice.
    return b"".join((b'{"jsonrpc":"2.0","id":', call_id, b',"result":', result, b"}"))


def around_result(call_id: bytes) -> tuple[bytes, bytes]:
    """Return the text before and after a result that is sent in parts."""
    return b'{"jsonrpc":"2.0","id":' + call_id + b',"result":', b"}"


def write_error(call_id: bytes, error: bytes) -> bytes:
    """Return a response with an error object. call_id, error: JSON."""
    return b'{"jsonrpc":"2.0","id":' + call_id + b',"error":' + error + b"}"


def error_object(error: RpcError, site: str) -> bytes:
    """Convert an exception to an error object, as JSON.

    site: base URL of the links in its data.
    """
    members: dict[str, object] = {"code": error.code, "message": error.message}
    data = error.linked_data(site)
    if data is not None:
        members["data"] = data
    return dump(members)
