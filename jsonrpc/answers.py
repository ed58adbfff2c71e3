"""What a request is answered with."""

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
    """An HTTP status, a body, and headers that the status needs."""

    status: int
    body: bytes
    headers: Mapping[str, str] = {}


class Parts:
    """A body in parts: to put them together would copy a long result once more."""

    __slots__ = ("_size", "parts")

    def __init__(self, *parts: bytes) -> None:
        self.parts = parts
        self._size = sum(map(len, parts))

    def __len__(self) -> int:
        """Return how many bytes there are."""
        return self._size

    def __bytes__(self) -> bytes:
        return b"".join(self.parts)


Body = bytes | Parts
"""Of a reply with status 200 and no headers, as most are."""

Answer = Body | Reply | Stream
"""A stream is one that is sent as it is made."""

LONG_BYTES = 2**14
"""Of a result that is not put together with what stands around it: copying a shorter one
costs less than a part more does."""


def answer_with(call_id: bytes, result: bytes) -> Body:
    """Return the answer with a result; both are JSON."""
    if len(result) < LONG_BYTES:
        return write_result(call_id, result)
    before, after = around_result(call_id)
    return Parts(before, result, after)


def refusal(call_id: bytes, error: RpcError) -> Reply:
    """Return the reply to a single call that has failed."""
    answer = write_error(call_id, error_object(error))
    return Reply(error.http_status, answer, error.headers)


def refuse_all(ids: Iterable[bytes], error: RpcError) -> list[bytes]:
    """Return the same answer to many calls of a batch."""
    answer = error_object(error)
    return [write_error(call_id, answer) for call_id in ids]


def refuse_large_batch(messages: Sequence[object], limit: int) -> Reply:
    """Answer, as geth does, with one error under the id of the first call.

    limit: calls of a batch. Beyond as many messages none is looked for: a body may hold
    a million that are no calls.
    """
    ids = filter(None, map(answerable_id, messages[:limit]))
    call_id = next((i for i in ids if i != NULL), NULL)
    return Reply(200, array([write_error(call_id, error_object(BatchTooLarge()))]))


def answerable_id(message: object) -> bytes | None:
    """Return the id under which a message is refused, None when it wants no answer.

    What is no request at all is answered under null.
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
    """Return the body that answers a batch."""
    return b"[" + b",".join(answers) + b"]"
