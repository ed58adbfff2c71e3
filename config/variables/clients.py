"""Memory and connections of clients."""

from __future__ import annotations

from config.env import Group, count, duration

CLIENTS = Group("Memory and connections of clients")

BUFFER_BYTES = CLIENTS.variable(
    "BUFFER_BYTES",
    count,
    256 * 2**20,
    "Bytes of unfinished requests and unread responses that each worker buffers.",
)

BUFFER_BYTES_PER_KEY = CLIENTS.variable(
    "BUFFER_BYTES_PER_KEY",
    count,
    None,
    "Part of `BUFFER_BYTES` that one API key can use.",
    "a quarter of `BUFFER_BYTES`",
)

BUFFER_BYTES_PER_ADDRESS = CLIENTS.variable(
    "BUFFER_BYTES_PER_ADDRESS",
    count,
    None,
    "Part of `BUFFER_BYTES` that one client address can use.",
    "half of `BUFFER_BYTES`",
)

CONNECTIONS_PER_KEY = CLIENTS.variable(
    "CONNECTIONS_PER_KEY",
    count,
    1000,
    "Maximum number of HTTP connections of one API key, in each worker.",
)

CONNECTIONS_PER_ADDRESS = CLIENTS.variable(
    "CONNECTIONS_PER_ADDRESS",
    count,
    1000,
    "Maximum number of HTTP connections of one client address, in each worker.",
)

STALL_SECONDS = CLIENTS.variable(
    "STALL_SECONDS",
    duration,
    300.0,
    "Seconds after which a client that reads nothing of its response is disconnected."
    " It does not apply to clients behind a proxy, which has a limit of its own.",
)
