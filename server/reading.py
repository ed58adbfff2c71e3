"""Parsing of the requests of one connection, without I/O.

`RequestReader` passes slices to httptools' parser that end where the headers or the
body of a request may end. The start of the next request is therefore always known,
which the parser itself does not report. A request can be handed over from its first
byte.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

import httptools

MAX_HEADER_BYTES = 64 * 1024
"""Largest size of a request line with its headers, and of trailers. nginx accepts 32
KiB."""

MAX_HEADERS = 256
"""Most headers of a request. Browsers send about 20. Each takes some 120 bytes besides
its text."""

_FRAMING_PER_BYTE = 8
"""Bytes of framing that a chunk of a single byte may have. More is counted as headers."""

_END_OF_HEADERS = b"\r\n\r\n"
_UPGRADE = re.compile(rb"(?<=\n)upgrade:[^\n]*\n", re.I)
_VERSIONS = ("1.1", "1.0")


class MalformedRequest(Exception):
    """Raised when bytes are not an HTTP/1.1 request."""


class HeadersTooLarge(Exception):
    """Raised when a request has too many bytes, or lines, of headers or trailers."""


class Headers:
    """A request line with its headers, and the body if it has arrived with them.

    raw: the headers as they arrived, but without `Upgrade` if there is a body.
    path: percent-decoded, without the query; None if the target is no path.
    headers: by name in lower case. Values of a repeated name are joined by a comma.
    keeps_alive: whether the client may send another request afterwards.
    body: the whole body, which has no framing; None if its parts follow as events.
    """

    __slots__ = (
        "body",
        "headers",
        "http_version",
        "keeps_alive",
        "method",
        "path",
        "raw",
    )

    raw: bytes

    def __init__(
        self,
        method: str,
        path: str | None,
        headers: dict[bytes, bytes],
        http_version: str,
        keeps_alive: bool,
    ) -> None:
        self.method = method
        self.path = path
        self.headers = headers
        self.http_version = http_version
        self.keeps_alive = keeps_alive
        self.body: bytes | None = None


class Body:
    """A part of a body.

    raw: the received bytes, including chunk framing. data: without framing.
    is_last: whether the request is complete.
    """

    __slots__ = ("data", "is_last", "raw")

    def __init__(self, raw: bytes, data: bytes, is_last: bool) -> None:
        self.raw = raw
        self.data = data
        self.is_last = is_last


class RequestReader:
    """Parses the requests of a connection, one after the other.

    After each `receive`, `next_event` is called until it returns None. A caller may stop
    earlier, to answer a request before the next one is parsed.
    """

    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._input = b""
        """Bytes that are not parsed yet."""
        self._begun = b""
        """Parsed bytes of headers that are incomplete."""
        self._is_in_body = False
        self._left = 0
        """Bytes of the body that have not been parsed, or -1 for a chunked body."""
        self._tail = b""
        """The last bytes of a chunked body that were parsed."""
        self._framing = 0
        """Framing bytes of a chunked body, in excess of those that its data may need.
        """
        self._bypasses_parser = False
        """Whether the body is read without the parser, which stops at an Upgrade
        request."""
        # Set by the parser's callbacks.
        self._target = b""
        self._headers: dict[bytes, bytes] = {}
        self._header_count = 0
        self._found: Headers | None = None
        self._data: list[bytes] = []
        self._is_complete = False
        self._messages = 0

    @property
    def pending(self) -> int:
        """Number of bytes of incomplete headers and of unparsed input."""
        return len(self._begun) + len(self._input)

    @property
    def has_begun(self) -> bool:
        """Whether the headers of a request are partially received."""
        return self._begun != b""

    def receive(self, data: bytes) -> None:
        """Append received bytes to the input."""
        self._input = self._input + data if self._input else data

    def next_event(self) -> Headers | Body | None:
        """Return the next event of the input, or None if more bytes are needed.

        Raises: MalformedRequest, HeadersTooLarge. The reader can't be used afterwards.
        """
        if not self._input:
            return None
        return self._next_of_body() if self._is_in_body else self._next_headers()

    def take_rest(self) -> bytes:
        """Return the unparsed input, and remove it."""
        rest, self._input = self._input, b""
        return rest

    def close(self) -> None:
        """Release the parser, which refers to this object."""
        del self._parser

    def _next_headers(self) -> Headers | None:
        data, begun = self._input, self._begun
        if not begun and data[0] in b"\r\n":
            # Empty lines before a request are ignored (RFC 9112, 2.2).
            data = data.lstrip(b"\r\n")
            if not data:
                self._input = b""
                return None
        overlap = begun[-3:]
        at = (overlap + data if overlap else data).find(_END_OF_HEADERS)
        if at < 0:
            self._input, self._begun = b"", begun + data
            if not begun:
                self._messages, self._found = 0, None
            self._parse(data)
            if len(self._begun) > MAX_HEADER_BYTES:
                raise HeadersTooLarge
            return None
        end = at + len(_END_OF_HEADERS) - len(overlap)
        self._input = data[end:]
        data = data[:end]
        if len(begun) + end > MAX_HEADER_BYTES:
            raise HeadersTooLarge
        if not begun:
            self._messages, self._found = 0, None
        self._is_complete = False
        self._parse(data)
        found = self._found
        if found is None or self._data or self._messages > 1:
            raise MalformedRequest
        raw = begun + data
        # uvicorn's parser, too, would take the body for another protocol, or a request.
        found.raw = _UPGRADE.sub(b"", raw) if self._bypasses_parser else raw
        if raw.startswith(b" ", len(found.method) + 1):
            raise MalformedRequest  # the parser skips more than one space
        self._is_in_body = not self._is_complete
        if self._is_complete:
            found.body = b""
        elif 0 < self._left <= len(self._input):
            found.body = self._next_of_body().data
        # An idle connection keeps nothing of its last request.
        self._begun = self._target = b""
        self._found, self._headers = None, {}
        return found

    def _next_of_body(self) -> Body:
        if self._left < 0:
            return self._next_of_chunked()
        left, data = self._left, self._input
        if len(data) > left:
            data, self._input = data[:left], data[left:]
            self._left = 0
        else:
            self._input = b""
            self._left = left - len(data)
        if self._bypasses_parser:
            self._bypasses_parser = self._left > 0
            self._is_in_body = self._bypasses_parser
            return Body(data, data, not self._is_in_body)
        self._parse(data)
        return self._body(data)

    def _next_of_chunked(self) -> Body:
        """Parse a chunked body as far as it has arrived.

        The parser takes slices that end where the body may end: after an empty line. All
        slices of the input make one event, because data may consist of empty lines.
        """
        text, at = self._tail + self._input, len(self._tail)
        start = at
        found = 0
        while at < len(text) and not self._is_complete:
            found = text.find(_END_OF_HEADERS, found)
            end = len(text) if found < 0 else found + len(_END_OF_HEADERS)
            self._parse(text[at:end])
            found = at = end
        raw, self._input, self._tail = text[start:at], text[at:], text[:at][-3:]
        body = self._body(raw)
        self._framing += len(raw) - len(body.data) - _FRAMING_PER_BYTE * len(body.data)
        if self._framing > MAX_HEADER_BYTES:
            raise HeadersTooLarge
        return body

    def _body(self, raw: bytes) -> Body:
        """Return the data that the parser has found in a part of a body."""
        parts = self._data
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        if self._messages > 1:
            raise MalformedRequest
        self._is_in_body = not self._is_complete
        return Body(raw, data, self._is_complete)

    def _parse(self, data: bytes) -> None:
        """Parse a slice. Raises: MalformedRequest, HeadersTooLarge."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # The parser takes what follows for another protocol. Here the request is
            # answered as one that does not ask for an upgrade (RFC 9110, 7.8).
            if self._left < 0 or self._parser.get_method() == b"CONNECT":
                raise MalformedRequest from None
            self._parser = httptools.HttpRequestParser(self)
            self._is_complete = not self._left
            self._bypasses_parser = not self._is_complete
        except httptools.HttpParserError as error:
            if self._header_count > MAX_HEADERS:
                raise HeadersTooLarge from error
            raise MalformedRequest from error

    # Callbacks of the parser. An exception in one of them makes the request malformed.

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._messages += 1
        self._target = b""
        self._headers = {}
        self._header_count = 0
        self._data.clear()

    def on_url(self, target: bytes) -> None:
        """Receive a part of the request target from the parser."""
        self._target += target

    def on_header(self, name: bytes, value: bytes) -> None:
        """Receive a header from the parser. Trailers are dropped."""
        self._header_count += 1
        if self._header_count > MAX_HEADERS:
            raise HeadersTooLarge
        if self._found is None and not self._is_in_body:
            # The parser has removed the whitespace before the value only.
            name, value, headers = name.lower(), value.rstrip(b" \t"), self._headers
            headers[name] = headers[name] + b", " + value if name in headers else value

    def on_headers_complete(self) -> None:
        """Receive the end of the headers from the parser."""
        parser, headers = self._parser, self._headers
        version = parser.get_http_version()
        if version not in _VERSIONS:
            raise MalformedRequest
        if b"transfer-encoding" in headers:
            if headers[b"transfer-encoding"].lower() != b"chunked":
                raise MalformedRequest  # no other coding is decoded
            self._left, self._tail, self._framing = -1, b"", 0
        else:
            # The parser has checked that it is a number of 64 bits, after any zeros.
            length = headers.get(b"content-length")
            self._left = 0 if length is None else int(length.lstrip(b"0") or 0)
        self._found = Headers(
            parser.get_method().decode("ascii"),
            _path_of(self._target),
            headers,
            version,
            version == "1.1" and parser.should_keep_alive(),
        )

    def on_body(self, data: bytes) -> None:
        """Receive a part of the body from the parser."""
        self._data.append(data)

    def on_message_complete(self) -> None:
        """Receive the end of the request from the parser."""
        self._is_complete = True


def _path_of(target: bytes) -> str | None:
    """Return the percent-decoded path of a request target, or None if it has none.

    Source: https://www.rfc-editor.org/rfc/rfc9112#section-3.2
    """
    if not target.startswith(b"/"):
        try:
            target = httptools.parse_url(target).path
        except httptools.HttpParserInvalidURLError:
            return None
        if not target:
            return None
    path = target.partition(b"?")[0].decode("latin-1")
    return unquote(path) if "%" in path else path
