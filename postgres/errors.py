"""Errors of the database connections."""

from __future__ import annotations


class Unavailable(Exception):
    """Raised when the database cannot answer now: down, lost, too slow or refusing.

    The caller may try again later; nothing was written.
    """


class ConnectionFailed(Unavailable):
    """Raised when the server can't be reached, or a connection to it was lost."""


class TimedOut(Unavailable):
    """Raised when the server has cancelled a statement that took too long."""
