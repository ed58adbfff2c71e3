"""Texts for failed connections."""

from __future__ import annotations

import socket

import httptools
import pytest

from nodeapi.upstreams.reasons import reason_of


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (caused(OSError("all"), ConnectionRefusedError(111)), "connection refused"),
        (caused(OSError("all"), socket.gaierror(-2)), "the host name was not found"),
        (OSError("secret"), "no connection"),
        (TimeoutError("secret"), "timeout"),
        (httptools.HttpParserError("secret"), "the response is not HTTP"),
        (ConnectionResetError(104), "the connection was closed"),
        (UnicodeError("secret"), "the URL is invalid"),
        (ZeroDivisionError("secret"), "ZeroDivisionError"),
    ],
)
def test_reason_has_words_and_nothing_of_the_error(
    error: Exception, reason: str
) -> None:
    assert reason_of(error) == reason
