"""What a request is answered with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from jsonrpc.envelope import (
    NULL,
    error_object,
    is_response,
    read_id,
    read_method,
    write_error,
)
from jsonrpc.errors import BatchTooLarge, InvalidRequest, RpcError
from jsonrpc.stream import Stream


class Reply(NamedTuple):
    """An HTTP status, a body, and headers that the status needs."""

    status: int
    body: bytes
    headers: Mapping[str, str] = {}


Answer = bytes | Reply | Stream
"""Bytes are the body of a reply with status 200 and no headers, as most are.

A stream is one that is sent as it is made.
"""


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
