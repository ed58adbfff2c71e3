"""The head of a request to `/v3`: its line and headers.

A client sends the same head again and again, with other bodies, hence what is found out
from a head alone is kept apart from what is done for each request.
"""

from __future__ import annotations

from jsonrpc.errors import BodyTooLarge, MethodNotAllowed, UnsupportedMediaType
from nodeapi import http
from nodeapi.errors import UnknownPath

_MEDIA_TYPES = {
    b"application/json",
    b"application/json-rpc",
    b"application/jsonrequest",
}


class Head:
    """What the endpoint wants to know of a request before its body.

    client: the IP address that it came from, None on a unix socket. Behind a proxy that
        FORWARDED_ALLOW_IPS names, what that one says (the server has put it into the
        scope): the last address of X-Forwarded-For that is no such proxy's.
    host: as the client wrote it.
    is_plain: whether short answers need no headers but their type and length.
    names_encodings: whether an answer may be wanted compressed.
    """

    __slots__ = (
        "client",
        "headers",
        "host",
        "http_version",
        "is_plain",
        "method",
        "names_encodings",
        "path",
    )

    def __init__(self, scope: http.Scope) -> None:
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        client = scope.get("client")
        self.client: str | None = client[0] if client else None
        self.host = self.headers.get(b"host", b"").decode("latin-1")
        self.http_version: str = scope["http_version"]
        self.is_plain = http.ASK_FOR_MORE.isdisjoint(self.headers)
        self.method: str = scope["method"]
        self.names_encodings = b"accept-encoding" in self.headers
        self.path: str = scope["path"]

    def request_id(self) -> http.RequestId:
        """Return a name for a request with this head."""
        request_id = http.RequestId()
        given = self.headers.get(b"x-request-id")
        if given is not None:
            request_id.take(given)
        return request_id

    def read_path(self) -> tuple[str, str]:
        """Return slug and key of `[/<slug>]/v3[/<key>]`, "" for none.

        The key may be in an Authorization header instead.
        Raises: UnknownPath.
        """
        parts = self.path.split("/")
        if parts[1] == "v3":
            slug, rest = "", parts[2:]
        elif len(parts) > 2 and parts[2] == "v3":
            slug, rest = parts[1], parts[3:]
        else:
            raise UnknownPath
        if any(rest[1:]):
            raise UnknownPath
        return slug, (rest[0] if rest else "") or self._bearer_key()

    def _bearer_key(self) -> str:
        """Return the key of an Authorization header, "" for none."""
        authorization = self.headers.get(b"authorization", b"")
        scheme, _, key = authorization.partition(b" ")
        return key.strip().decode("latin-1") if scheme.lower() == b"bearer" else ""

    def require_json_post(self, max_body_bytes: int) -> None:
        """Check what can be known of a request before its body is read.

        Raises: MethodNotAllowed, UnsupportedMediaType, BodyTooLarge.
        """
        if self.method != "POST":
            raise MethodNotAllowed
        content_type = self.headers.get(b"content-type", b"")
        if (
            content_type != b"application/json"
            and content_type.split(b";")[0].strip().lower() not in _MEDIA_TYPES
        ):
            raise UnsupportedMediaType
        # The server has seen to it that this is a number of 64 bits, after any zeros.
        length = self.headers.get(b"content-length", b"").lstrip(b"0")
        if length and int(length) > max_body_bytes:
            raise BodyTooLarge(max_body_bytes)
