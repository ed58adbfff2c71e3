"""The table of errors, generated from their classes."""

from __future__ import annotations

import inspect
from http import HTTPStatus
from typing import NamedTuple

import keys.errors  # defines error classes
import keys.limiter.errors  # noqa: F401  # likewise
import nodeapi.errors  # noqa: F401  # likewise
from jsonrpc.errors import RpcError, error_classes


class ErrorEntry(NamedTuple):
    """A row of the table of errors."""

    reason: str
    """The value of `data.reason`; empty for errors with geth's messages."""
    code: int
    status: HTTPStatus
    """The HTTP status of a single call; a batch always gets 200."""
    name: str
    when: str
    """The condition, as a sentence."""


def error_entries() -> list[ErrorEntry]:
    """Return an entry for each error class, those with a reason first."""
    entries = [
        ErrorEntry(
            error.reason,
            error.code,
            HTTPStatus(error.http_status),
            error.__name__,
            _sentence(error),
        )
        for error in error_classes()
        if not error.__name__.startswith("_")  # base classes
    ]
    return sorted(entries, key=lambda entry: (not entry.reason, entry))


def _sentence(error: type[RpcError]) -> str:
    """Return the first sentence of an error's docstring: `When …`."""
    text = (inspect.getdoc(error) or "").partition("\n\n")[0]
    words = " ".join(text.removeprefix("Raised ").split())
    return words[:1].upper() + words[1:]
