"""Texts for failed connections."""

from __future__ import annotations

import socket

import httpx
import pytest

from nodeapi.upstreams.reasons import reason_of


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            caused(httpx.ConnectError("all"), ConnectionRefusedError(111)),
            "connection refused",
        ),
        (
            caused(httpx.ConnectError("all"), socket.gaierror(-2)),
            "the host name was not found",
        ),
        (httpx.ConnectError("secret"), "no connection"),
        (httpx.ConnectTimeout("secret"), "timeout while connecting"),
        (httpx.ReadTimeout("secret"), "timeout"),
        (httpx.ReadError("secret"), "the connection was closed"),
        (httpx.RemoteProtocolError("secret"), "the response is not HTTP"),
        (ConnectionResetError(104), "the connection was closed"),
        (UnicodeError("secret"), "the URL is invalid"),
        (ZeroDivisionError("secret"), "ZeroDivisionError"),
    ],
)
def test_reason_has_words_and_nothing_of_the_error(
    error: Exception, reason: str
) -> None:
    assert reason_of(error) == reason
