"""Kernel options of a connection."""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import sys
import termios
from contextlib import suppress

_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with zero seconds. Closing then discards unsent data, which the kernel
would otherwise try to send for minutes."""


def reset(transport: asyncio.Transport) -> None:
    """Close a connection at once, and discard the kernel's unsent data."""
    connection = transport.get_extra_info("socket")
    with suppress(OSError, ValueError):  # it is closed already
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    transport.abort()


if sys.platform == "linux":

    def unacknowledged_bytes(transport: asyncio.Transport) -> int:
        """Return the number of sent bytes that the client has not acknowledged.

        Source: SIOCOUTQ in tcp(7), which has the number of TIOCOUTQ.
        """
        try:
            descriptor = transport.get_extra_info("socket").fileno()
            answer = fcntl.ioctl(descriptor, termios.TIOCOUTQ, b"\0" * 4)
        except (AttributeError, OSError, ValueError):  # it is closed already
            return 0
        (size,) = struct.unpack("i", answer)
        return int(size)

else:

    def unacknowledged_bytes(transport: asyncio.Transport) -> int:
        """Return 0: there is no portable way to ask."""
        return 0
