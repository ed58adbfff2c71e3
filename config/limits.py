"""The limits of clients, read from the environment."""

from __future__ import annotations

from config import variables
from server.bounds import Limits
from server.memory_bounds import ByteLimits


def read_limits() -> Limits:
    """Return the limits that the environment variables set.

    Raises: InvalidSetting if a value can't be parsed.
    """
    size = variables.BUFFER_BYTES.value()
    return Limits(
        ByteLimits(
            size,
            variables.BUFFER_BYTES_PER_KEY.value() or size // 4,
            variables.BUFFER_BYTES_PER_ADDRESS.value() or size // 2,
        ),
        variables.CONNECTIONS_PER_KEY.value(),
        variables.CONNECTIONS_PER_ADDRESS.value(),
        variables.STALL_SECONDS.value(),
    )
