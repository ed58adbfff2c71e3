"""The limits of clients, read from the environment."""

from __future__ import annotations

from config.variables import clients
from server.bounds import Limits
from server.memory_bounds import ByteLimits


def read_limits() -> Limits:
    """Return the limits that the environment variables set.

    Raises: InvalidSetting if a value can't be parsed.
    """
    size = clients.BUFFER_BYTES.value()
    return Limits(
        ByteLimits(
            size,
            clients.BUFFER_BYTES_PER_KEY.value() or size // 4,
            clients.BUFFER_BYTES_PER_ADDRESS.value() or size // 2,
        ),
        clients.CONNECTIONS_PER_KEY.value(),
        clients.CONNECTIONS_PER_ADDRESS.value(),
        clients.STALL_SECONDS.value(),
    )
