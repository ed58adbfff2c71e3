"""HTTP responses, read from raw sockets."""

from __future__ import annotations

import re
import socket


def read_response(client: socket.socket) -> tuple[int, bytes]:
    """Return the status and the body of a response that has a content-length."""
    received = b""
    while b"\r\n\r\n" not in received:
        part = client.recv(65536)
        assert part, received
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head, re.I)
    assert found is not None, head
    while len(body) < int(found[1]):
        part = client.recv(2**20)
        assert part, "the response ends too early"
        body += part
    return int(head.split()[1]), body
