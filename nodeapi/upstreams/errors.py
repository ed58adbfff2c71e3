"""Errors of calls to upstreams and of the blocks that they return.

No text contains an upstream's URL or headers, because they may contain secrets.
"""

from __future__ import annotations

from typing import Any


class UpstreamUnavailable(Exception):
    """Raised if an upstream can't be reached, or returns no valid JSON-RPC response.

    reason: a short text without secrets. status: the HTTP status, if it is the cause.
    retry_after: seconds from the Retry-After header, if the response has one.
    is_unreachable: whether no connection could be opened. is_late: whether there was no
    response in time.
    """

    def __init__(
        self,
        reason: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        is_unreachable: bool = False,
        is_late: bool = False,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.retry_after = retry_after
        self.is_unreachable = is_unreachable
        self.is_late = is_late


class UnusableAnswer(UpstreamUnavailable):
    """Raised for a result that has another form than the method's, or another hash."""


class UpstreamError(Exception):
    """Raised if an upstream answers a call with an error object.

    code, message, data: the object's members. `data` is None if it is absent.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class MethodUnavailable(UpstreamError):
    """Raised if an upstream does not offer a method or does not permit it."""


class WrongBlock(ValueError):
    """Raised if an upstream's data is not the requested block.

    reason: a text that names the malformed or different part.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class LaterFork(WrongBlock):
    """Raised for a header with members that this version does not know.

    It may be of a later fork. Its hash can't be verified.

    number, timestamp, hash: as claimed. members: the names of the unknown members.
    """

    def __init__(
        self, number: int, timestamp: int, block_hash: bytes, members: tuple[str, ...]
    ) -> None:
        names = ", ".join(members)[:200]
        super().__init__(
            f"the hash of the header of block {number} can't be verified without the "
            f"unknown members {names}"
        )
        self.number = number
        self.timestamp = timestamp
        self.hash = block_hash
        self.members = members


class UnsupportedBlock(Exception):
    """Raised for an authentic block with a format that this version does not know.

    The block has the requested hash, so that the upstream is not at fault.
    """


class UnknownTransactionType(UnsupportedBlock):
    """Raised for a block that can't be rebuilt because of a transaction's type."""

    def __init__(self, transaction_type: int) -> None:
        super().__init__(f"transaction type {transaction_type} is unknown")
        self.type = transaction_type
