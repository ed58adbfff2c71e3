"""Free ports for servers that can't choose one themselves."""

from __future__ import annotations

import secrets
import socket


def free_port() -> int:
    """Return a port that no server has, and below those that connections are given.

    Connections of other tests could take one of the kernel's choice before we do.
    """
    while is_listening(port := 20_000 + secrets.randbelow(12_000)):
        continue
    return port


def is_listening(port: int) -> bool:
    """Return whether a server of this machine has a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
