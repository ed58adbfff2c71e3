"""Parsing of the requests of one connection, without I/O.

`RequestReader` passes slices to httptools' parser that end where the headers or the
body of a request may end. The start of the next request is therefore always known,
which the parser itself does not report. A request can be handed over from its first
byte.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote

import httptools

MAX_HEADER_BYTES = 64 * 1024
"""Largest size of a request line with its headers, and of trailers. nginx accepts 32
KiB."""

MAX_HEADERS = 256
"""Maximum number of headers of a request. Browsers send about 20. Each takes some 120
bytes besides its text."""

_FEED_BYTES = 16 * 1024
"""Longest slice of a chunked body that is parsed at once. Its chunks may have one byte."""

MAX_PARTS = 64
"""Number of slices and chunks after which an event of a chunked body ends."""

_FRAMING_PER_BYTE = 8
"""Bytes of framing that a chunk of a single byte may have. More is counted as headers."""

_END_OF_HEADERS = b"\r\n\r\n"
_UPGRADE = re.compile(rb"(?<=\n)upgrade:[^\n]*\n", re.I)
_HOST = re.compile(rb"[A-Za-z0-9._~!$&'()*+;=:%\[\]-]*")
"""A Host header (RFC 9110, 7.2): a name or an address, with a port. Repeated headers, which
are joined by a comma, are none."""

_VERSIONS = {b"HTTP/1.1": "1.1", b"HTTP/1.0": "1.0"}


class MalformedRequest(Exception):
    """Raised when bytes are not an HTTP/1.1 request. The message may be empty."""


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

    def __init__(
        self,
        raw: bytes,
        method: str,
        path: str | None,
        headers: dict[bytes, bytes],
        http_version: str,
        keeps_alive: bool,
    ) -> None:
        self.raw = raw
        self.method = method
        self.path = path
        self.headers = headers
        self.http_version = http_version
        self.keeps_alive = keeps_alive
        self.body: bytes | None = None


class Body:
    """A part of a body.

    data: the received bytes without chunk framing.
    is_last: whether the request is complete.
    size: number of received bytes, including chunk framing.
    parts: number of slices or of chunks that were parsed, whichever is larger; 0 for a
        body of a known length. From MAX_PARTS on, more of the input may be left.
    """

    __slots__ = ("data", "is_last", "parts", "size")

    def __init__(self, data: bytes, is_last: bool, size: int, parts: int = 0) -> None:
        self.data = data
        self.is_last = is_last
        self.size = size
        self.parts = parts

    def framed(self) -> bytes:
        """Return the bytes of this part for another parser of the same request.

        The data of all chunks is in a single chunk. Extensions and trailers are missing.
        """
        if not self.parts:
            return self.data
        data = self.data
        chunk = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
        return chunk + b"0\r\n\r\n" if self.is_last else chunk


class RequestReader:
    """Parses the requests of a connection, one after the other.

    After each `receive`, `next_event` is called until it returns None. A caller may stop
    earlier, to answer a request before the next one is parsed.
    """

    def __init__(self) -> None:
        # Set by the parser's callbacks.
        self._headers: dict[bytes, bytes] = {}
        self._has_headers = False
        self._keeps_alive = False
        self._data: list[bytes] = []
        self._is_complete = False
        self._messages = 0
        self.on_body = self._data.append
        """Receive a part of the body from the parser."""
        self._parser = httptools.HttpRequestParser(self)
        self.input = b""
        """Bytes that are not parsed yet."""
        self.begun = b""
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

    @property
    def pending(self) -> int:
        """Number of bytes of incomplete headers and of unparsed input."""
        return len(self.begun) + len(self.input)

    def receive(self, data: bytes) -> None:
        """Append received bytes to the input."""
        self.input = self.input + data if self.input else data

    def next_event(self) -> Headers | Body | None:
        """Return the next event of the input, or None if more bytes are needed.

        Raises: MalformedRequest, HeadersTooLarge. The reader can't be used afterwards.
        """
        if not self.input:
            return None
        return self._next_of_body() if self._is_in_body else self._next_headers()

    def take_rest(self) -> bytes:
        """Return the unparsed input, and remove it."""
        rest, self.input = self.input, b""
        return rest

    def close(self) -> None:
        """Release the parser, which refers to this object."""
        del self._parser

    def _next_headers(self) -> Headers | None:
        data, begun = self.input, self.begun
        if not begun:
            if data[0] in b"\r\n":
                # Empty lines before a request are ignored (RFC 9112, 2.2).
                data = data.lstrip(b"\r\n")
            self._messages, self._has_headers = 0, False
        start = len(begun)
        text = begun + data if begun else data
        at = text.find(_END_OF_HEADERS, start - 3 if start > 3 else 0)
        end = len(text) if at < 0 else at + len(_END_OF_HEADERS)
        if end > MAX_HEADER_BYTES or text.count(b"\n", 0, end) > MAX_HEADERS + 2:
            raise HeadersTooLarge
        raw, self.input = text[:end], text[end:]
        if at < 0:
            self.begun = raw
            if data:
                self._parse(data)
            return None
        self._is_complete = False
        self._parse(raw[start:])
        if not self._has_headers or self._data or self._messages > 1:
            raise MalformedRequest
        # An idle connection keeps nothing of its last request.
        self.begun, headers, self._headers = b"", self._headers, {}
        found = _headers_of(raw, headers, self._keeps_alive)
        if self._bypasses_parser:
            # uvicorn's parser, too, would take the body for another protocol, or a
            # request.
            found.raw = _UPGRADE.sub(b"", raw)
        self._is_in_body = not self._is_complete
        if self._is_complete:
            found.body = b""
        elif 0 < self._left <= len(self.input):
            found.body = self._take_data()
        return found

    def _next_of_body(self) -> Body:
        if self._left < 0:
            return self._next_of_chunked()
        data = self._take_data()
        return Body(data, not self._is_in_body, len(data))

    def _take_data(self) -> bytes:
        """Return the bytes that have arrived of a body whose length is known."""
        left, data = self._left, self.input
        if len(data) > left:
            data, self.input = data[:left], data[left:]
            self._left = 0
        else:
            self.input = b""
            self._left = left - len(data)
        self._is_in_body = self._left > 0
        if self._bypasses_parser:
            self._bypasses_parser = self._is_in_body
        else:
            self._parse(data)
            self._data.clear()
        return data

    def _next_of_chunked(self) -> Body:
        """Parse a part of a chunked body: all that has arrived, unless chunks are tiny.

        The parser takes slices that end where the body may end: after an empty line. Data
        may consist of empty lines.
        """
        text, at = self._tail + self.input, len(self._tail)
        start = at
        parts = found = 0
        while at < len(text) and not self._is_complete and parts < MAX_PARTS:
            limit = at + _FEED_BYTES
            found = text.find(_END_OF_HEADERS, found, limit)
            # The next search has to find an empty line across the end of this slice.
            end, found = (limit, limit - 3) if found < 0 else (found + 4, found + 4)
            had = len(self._data)
            self._parse(text[at:end])
            parts += max(1, len(self._data) - had)
            at = min(end, len(text))
        self.input, self._tail = text[at:], text[at - 3 : at] if at > 3 else text[:at]
        data = self._join()
        size = at - start
        self._framing += size - len(data) - _FRAMING_PER_BYTE * len(data)
        if self._framing > MAX_HEADER_BYTES:
            raise HeadersTooLarge
        return Body(data, self._is_complete, size, parts)

    def _join(self) -> bytes:
        """Return the data that the parser has found in a part of a body."""
        chunks = self._data
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        chunks.clear()
        if self._messages > 1:
            raise MalformedRequest
        self._is_in_body = not self._is_complete
        return data

    def _parse(self, data: bytes) -> None:
        """Parse a slice. Raises: MalformedRequest."""
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
            raise MalformedRequest from error

    # Callbacks of the parser. An exception in one of them makes the request malformed.

    def on_message_begin(self) -> None:
        """Count the beginning of a request. Called by the parser."""
        self._messages += 1

    def on_header(self, name: bytes, value: bytes) -> None:
        """Receive a header from the parser. Trailers are dropped."""
        if not self._has_headers:
            # The parser has removed the whitespace before the value only.
            name, value, headers = name.lower(), value.rstrip(b" \t"), self._headers
            headers[name] = headers[name] + b", " + value if name in headers else value

    def on_headers_complete(self) -> None:
        """Receive the end of the headers from the parser."""
        headers = self._headers
        if b"transfer-encoding" in headers:
            if headers[b"transfer-encoding"].lower() != b"chunked":
                raise MalformedRequest  # no other coding is decoded
            self._left, self._tail, self._framing = -1, b"", 0
        else:
            # The parser has checked that it is a number of 64 bits, after any zeros.
            # int() refuses more than 4300 of them.
            self._left = int(headers.get(b"content-length", b"").lstrip(b"0") or 0)
        self._keeps_alive = self._parser.should_keep_alive()
        self._has_headers = True

    def on_message_complete(self) -> None:
        """Receive the end of the request from the parser."""
        self._is_complete = True


def _headers_of(raw: bytes, headers: dict[bytes, bytes], keeps_alive: bool) -> Headers:
    """Return a request from its request line and its parsed headers.

    Raises: MalformedRequest if parts of the line are not separated by a single space,
        which the parser accepts; for another version of HTTP; or if the Host header,
        which HTTP/1.1 requires, is missing or is no host.
    """
    try:
        # A line with a version: to the parser, one without it is a request of HTTP/0.9.
        method, target, rest = raw[: raw.index(b"\n")].split(b" ", 2)
        http_version = _VERSIONS[rest[:8]]
    except (ValueError, KeyError):
        raise MalformedRequest from None
    host = headers.get(b"host")
    if not _is_host(host) if host is not None else http_version == "1.1":
        raise MalformedRequest("An HTTP/1.1 request needs one Host header with a host.")
    return Headers(
        raw,
        method.decode("ascii"),
        _path_of(target),
        headers,
        http_version,
        keeps_alive and http_version == "1.1",
    )


@lru_cache(256)
def _is_host(value: bytes) -> bool:
    return _HOST.fullmatch(value) is not None


def _path_of(target: bytes) -> str | None:
    """Return the percent-decoded path of a request target, or None if it has none.

    Source: https://www.rfc-editor.org/rfc/rfc9112#section-3.2
    """
    path = target.decode("latin-1")
    if path[:1] != "/":
        try:
            path = (httptools.parse_url(target).path or b"").decode("latin-1")
        except httptools.HttpParserInvalidURLError:
            return None
        if not path:
            return None
    if "?" in path:
        path = path[: path.index("?")]
    return unquote(path) if "%" in path else path
