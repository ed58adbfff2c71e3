"""Construction of HTTP and JSON-RPC responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from jsonrpc.envelope import (
    NULL,
    around_result,
    error_object,
    is_response,
    read_id,
    read_method,
    write_error,
    write_result,
)
from jsonrpc.errors import BatchTooLarge, InvalidRequest, RpcError
from jsonrpc.stream import Stream


class Reply(NamedTuple):
    """A response with HTTP status, body and headers."""

    status: int
    body: bytes
    headers: Mapping[str, str] = {}


class Parts:
    """A body in several parts, which saves copying a long result."""

    __slots__ = ("_size", "parts")

    def __init__(self, *parts: bytes) -> None:
        self.parts = parts
        self._size = sum(map(len, parts))

    def __len__(self) -> int:
        """Return the number of bytes."""
        return self._size

    def __bytes__(self) -> bytes:
        return b"".join(self.parts)


Body = bytes | Parts
"""The body of a response with status 200 and no special headers."""

Answer = Body | Reply | Stream
"""A stream is sent while it is produced."""

LONG_BYTES = 2**14
"""Results from this number of bytes are sent as separate parts. Copying a shorter
result costs less than sending an additional part."""


def answer_with(call_id: bytes, result: bytes) -> Body:
    """Return the response with a result. call_id, result: JSON."""
    if len(result) < LONG_BYTES:
        return write_result(call_id, result)
    before, after = around_result(call_id)
    return Parts(before, result, after)


def refusal(call_id: bytes, error: RpcError, site: str) -> Reply:
    """Return the response to a single call that has failed.

    site: base URL of the links in the error.
    """
    answer = write_error(call_id, error_object(error, site))
    return Reply(error.http_status, answer, error.headers)


def refuse_all(ids: Iterable[bytes], error: RpcError, site: str) -> list[bytes]:
    """Return the same error for each of a batch's calls.

    site: base URL of the links in the error.
    """
    answer = error_object(error, site)
    return [write_error(call_id, answer) for call_id in ids]


def refuse_large_batch(messages: Sequence[object], limit: int) -> Reply:
    """Return a single error with the id of the first call, as geth does.

    limit: maximum number of calls in a batch. The search for a call ends after this
        number of messages, because a body may contain a million messages that are not
        calls.
    """
    ids = filter(None, map(answerable_id, messages[:limit]))
    call_id = next((i for i in ids if i != NULL), NULL)
    answer = write_error(call_id, error_object(BatchTooLarge(), ""))  # without links
    return Reply(200, array([answer]))


def answerable_id(message: object) -> bytes | None:
    """Return the id to reject a message with, as JSON, or None for a notification.

    The id of a message that is not a request object is null.
    """
    call_id = None
    try:
        if type(message) is not dict:
            raise InvalidRequest
        call_id = read_id(message)
        read_method(message)
    except InvalidRequest:
        return None if is_response(message) else call_id or NULL
    return call_id


def array(answers: Sequence[bytes]) -> bytes:
    """Return the response to a batch."""
    return b"[" + b",".join(answers) + b"]"
