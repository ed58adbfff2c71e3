"""The protocol between the service and a worker process, over a socket.

The service sends settings once, then jobs, each after its length; with a job's length
it passes the descriptor of the file for the result. The worker sends messages: one byte
for the kind, the length of the rest, and the rest.
"""

from __future__ import annotations

import struct
from dataclasses import asdict, dataclass

import orjson

LENGTH = struct.Struct(">Q")
"""Prefix of settings and jobs."""
HEAD = struct.Struct(">cI")
"""Prefix of a worker's message: its kind, and the length of the rest."""

READY = b"r"
PROGRESS = b"p"
"""The worker begins the next transaction."""
DONE = b"d"
"""The job is done; the rest is the result's size."""
FAILED = b"f"
"""The job failed; the rest is geth's message for the caller."""
TOO_LARGE = b"l"
UNAVAILABLE = b"u"
"""The database is unavailable."""
CRASHED = b"c"
"""The worker has failed; the error is logged."""

OUT_OF_MEMORY_STATUS = 3
"""Exit status of a worker at its memory limit, when there may be no memory for a
message."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The settings of a worker process."""

    conninfo: str
    """Database connection string of libpq."""
    memory_bytes: int
    """Memory limit, beyond what it takes when it is ready."""
    result_bytes: int
    """Size limit of a result."""

    def encode(self) -> bytes:
        """Return the settings as JSON."""
        return orjson.dumps(asdict(self))

    @classmethod
    def decode(cls, data: bytes) -> WorkerSettings:
        """Return the settings that `encode` has written."""
        return cls(**orjson.loads(data))
