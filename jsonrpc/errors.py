"""Errors that a client is told about."""

from __future__ import annotations

from typing import ClassVar


class RpcError(Exception):
    """Raised when a call, or a whole request, is answered with an error object.

    http_status: the answer's status when the error is of the request as a whole.
    code: the error object's number.
    reason: a stable word in `data.reason`; "" where the words are geth's, which come
        without data.
    message: a sentence that can stand alone.
    headers: what the answer carries besides.
    details: what stands in `data` beside the reason.
    """

    http_status: ClassVar[int] = 200
    code: ClassVar[int] = -32000
    reason: ClassVar[str] = ""
    headers: ClassVar[dict[str, str]] = {}

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
