"""Free ports for servers that can't choose one themselves."""

from __future__ import annotations

import secrets
import socket


def free_port() -> int:
    """Return a free port below the range of ephemeral ports.

    Another test's connection could get a port that the kernel chooses.
    """
    while is_listening(port := 20_000 + secrets.randbelow(12_000)):
        continue
    return port


def is_listening(port: int) -> bool:
    """Return whether a server on this machine listens on a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
