"""The table of errors, made from their classes."""

from __future__ import annotations

import inspect
from http import HTTPStatus
from typing import NamedTuple

import keys.errors  # brings its classes into the table
import keys.limiter.errors  # noqa: F401  # likewise
import nodeapi.errors  # noqa: F401  # likewise
from jsonrpc.errors import RpcError, error_classes


class ErrorEntry(NamedTuple):
    """A row of the table of errors."""

    reason: str
    """The word in `data.reason`, empty where the words are geth's."""
    code: int
    status: HTTPStatus
    """Of the answer to a single call; in a batch it is 200."""
    name: str
    when: str
    """When it is raised, as a sentence."""


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
        if not error.__name__.startswith("_")  # what several have in common
    ]
    return sorted(entries, key=lambda entry: (not entry.reason, entry))


def _sentence(error: type[RpcError]) -> str:
    """Return the first sentence of an error's docstring: `When …`."""
    text = (inspect.getdoc(error) or "").partition("\n\n")[0]
    words = " ".join(text.removeprefix("Raised ").split())
    return words[:1].upper() + words[1:]
