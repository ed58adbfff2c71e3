"""Serialization of HTTP/1.1 responses."""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus

from server.request import Headers, Response
from server.socket_request import SocketRequest

_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode()
    for status in HTTPStatus
}
_CLOSE = b"connection: close\r\n"
_NO_BODY = (HTTPStatus.NO_CONTENT.value, HTTPStatus.NOT_MODIFIED.value)


def closing_response(status: HTTPStatus, text: str = "") -> bytes:
    """Return a whole response with `connection: close`. text: a plain text body."""
    kind = "content-type: text/plain; charset=utf-8\r\n" if text else ""
    return (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n{kind}"
        f"content-length: {len(text)}\r\nconnection: close\r\n\r\n{text}"
    ).encode()


MALFORMED = "Invalid HTTP request received."
EXPECTATION_FAILED = closing_response(
    HTTPStatus.EXPECTATION_FAILED, "The only known expectation is 100-continue."
)
HEADERS_TOO_LARGE = closing_response(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
INTERNAL_ERROR = closing_response(
    HTTPStatus.INTERNAL_SERVER_ERROR, "Internal Server Error"
)


def status_and_headers(
    request: SocketRequest,
    response: Response,
    defaults: bytes,
    length: bytes,
    keeps_alive: bool,
) -> tuple[bytes, bool]:
    """Return the status line with the headers, and whether the connection stays open.

    defaults: header lines of every response, with line ends.
    length: the header line, with its line end, that defines the body's length.
    keeps_alive: False adds `connection: close`. The response can contain it, too.
    """
    headers = response.headers
    encode = _constant_lines if type(headers) is tuple else _lines
    lines, closes = encode(headers)
    if closes or (request.expects_continue and request.body is None):
        keeps_alive = False  # the client may send the body or not
    status = response.status
    whole = b"%b%b%b%b%b\r\n" % (
        _STATUS_LINES[status],
        defaults,
        lines,
        b"" if status in _NO_BODY else length,
        b"" if keeps_alive else _CLOSE,
    )
    return whole, keeps_alive


def _lines(headers: Headers) -> tuple[bytes, bool]:
    """Return header lines without `connection: close`, and whether they had it."""
    lines = [b"%b: %b\r\n" % header for header in headers]
    closes = _CLOSE in lines
    if closes:
        lines.remove(_CLOSE)
    return b"".join(lines), closes


_constant_lines = lru_cache(64)(_lines)
"""Cached, for tuples: applications use them for headers that do not change."""
