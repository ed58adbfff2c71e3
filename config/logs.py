"""Log lines without secrets."""

from __future__ import annotations

import logging
import re

# An API key, or a token of the management API, in what somebody wrote into a message. Anything may stand
# before it: Django writes a line break in a path as the two characters \n.
_API_KEY = re.compile(r"((?:nk|mt)_[0-9A-Za-z]{4})[0-9A-Za-z]{4,}([0-9A-Za-z]{4})")


def redact(text: str) -> str:
    """Return a text in which API keys are shortened to their hints."""
    return _API_KEY.sub(r"\1…\2", text)


class RedactingFormatter(logging.Formatter):
    """Formats a record, traceback included, and shortens the API keys in it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the finished line."""
        return redact(super().format(record))
