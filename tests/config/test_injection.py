"""Text from a client never becomes a separate header of a response."""

from __future__ import annotations

import json
import socket
from urllib.parse import urlsplit

import pytest

from server.supervisor import Server
from tests.support.live import request
from tests.support.waiting import PATIENCE_SECONDS

PLANTED = b"x-planted: 1"
BODY = json.dumps(request("eth_chainId")).encode()

HOSTILE = {
    "folded line": b"x-request-id: a\r\n " + PLANTED,
    "bare line feed": b"x-request-id: a\n" + PLANTED + b"\nx: y",
    "bare carriage return": b"x-request-id: a\r" + PLANTED,
    "encoded": b"x-request-id: a%0d%0ax-planted: 1",
    "origin": b"origin: https://a.example%0d%0ax-planted: 1",
    "folded origin": b"origin: https://a.example\r\n " + PLANTED,
    "traceparent": b"traceparent: 00\x0b\x0d " + PLANTED,
    "host": b"x-forwarded-host: a%0d%0a" + PLANTED,
}

TARGETS = {
    "node": b"POST /v3/%0d%0ax-planted:%201 HTTP/1.1",
    "network": b"POST /%0d%0ax-planted:%201/v3 HTTP/1.1",
    "page": b"POST /account/login?next=/%0d%0ax-planted:%201 HTTP/1.1",
    "redirect": b"POST /dashboard%0d%0ax-planted:%201 HTTP/1.1",
}


def heads(service: Server, target: bytes, line: bytes = b"x: y") -> list[bytes]:
    """Send a request with a raw target and header; return the response's header lines."""
    url = urlsplit(service.base_url)
    head = b"\r\n".join(
        [
            target,
            b"host: localhost",
            b"content-type: application/json",
            b"content-length: %d" % len(BODY),
            b"connection: close",
            line,
            b"",
            b"",
        ]
    )
    with socket.create_connection((url.hostname, url.port), PATIENCE_SECONDS) as client:
        client.sendall(head + BODY)
        answer = b"".join(iter(lambda: client.recv(2**16), b""))
    assert answer.startswith(b"HTTP/1.1 ")
    return answer.partition(b"\r\n\r\n")[0].splitlines()[1:]


@pytest.mark.parametrize("target", TARGETS)
def test_no_path_becomes_a_header(service: Server, target: str) -> None:
    for line in heads(service, TARGETS[target]):
        assert not line.lower().startswith(b"x-planted")


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_header_becomes_another_one(service: Server, kind: str) -> None:
    for line in heads(service, b"POST /v3/nk_x HTTP/1.1", HOSTILE[kind]):
        assert not line.lower().startswith(b"x-planted")
        assert b"planted" not in line


def test_harmless_name_of_a_request_is_echoed(service: Server) -> None:
    """This shows that the ids in the other tests could have been echoed."""
    line = b"x-request-id: planted-1\r\norigin: https://a.example"
    assert b"x-request-id: planted-1" in heads(service, b"POST /v3/nk_x HTTP/1.1", line)
