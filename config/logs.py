"""Formatters for log lines without API keys, as text or as JSON."""

from __future__ import annotations

import logging
import re
import sys
import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

import orjson

# An API key in a path that some other program wrote into a message. Anything may stand
# before it: Django writes a line break in a path as the two characters \n.
_API_KEY = re.compile(r"((?:nk|mt)_[0-9A-Za-z]{4})[0-9A-Za-z]{4,}([0-9A-Za-z]{4})")


def redact(text: str) -> str:
    """Return the text with each API key replaced by its hint."""
    return _API_KEY.sub(r"\1…\2", text)


def timestamp(seconds: float) -> str:
    """Return a Unix time in RFC 3339 format, with milliseconds."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class RedactingFormatter(logging.Formatter):
    """Formats a record, traceback included, and shortens the API keys in it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the finished line."""
        return redact(super().format(record))


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON, and shortens the API keys in it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the finished line."""
        document = {
            "time": timestamp(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            document["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            document["stack"] = self.formatStack(record.stack_info)
        # JSON can't contain invalid Unicode, such as half a surrogate pair.
        plain = {
            name: value.encode(errors="backslashreplace").decode()
            for name, value in document.items()
        }
        return redact(orjson.dumps(plain).decode())


def catch_everything() -> None:
    """Log everything that Python itself would write to standard error.

    Uncaught exceptions, warnings and formatting errors would otherwise be written without
    redaction.
    """
    logging.raiseExceptions = False
    logging.captureWarnings(True)
    sys.excepthook = _log_uncaught
    threading.excepthook = lambda failed: logging.getLogger("threads").critical(
        "a thread ended", exc_info=failed.exc_value
    )
    sys.unraisablehook = lambda failed: logging.getLogger("python").error(
        "%s", failed.err_msg or "an exception was ignored", exc_info=failed.exc_value
    )


def _log_uncaught(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> Any:
    logging.getLogger("python").critical("ends", exc_info=(kind, error, trace))
