"""What the service and a worker process say to each other over a socket.

Down: settings once, then jobs, each preceded by its length; with a job's length comes
the descriptor of the file for its answer. Up: messages of one byte that says what they
are, the length of the rest, and that.
"""

from __future__ import annotations

import struct
from dataclasses import asdict, dataclass

import orjson

LENGTH = struct.Struct(">Q")
"""Before what goes down."""
HEAD = struct.Struct(">cI")
"""Before what comes up: a kind and the bytes that follow."""

READY = b"r"
PROGRESS = b"p"
"""Another transaction begins."""
DONE = b"d"
"""The rest is the answer's size."""
FAILED = b"f"
"""The rest is a message in geth's words, for the caller."""
TOO_LARGE = b"l"
UNAVAILABLE = b"u"
"""The database does not answer."""
CRASHED = b"c"
"""A fault of ours; it is in the log."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What a worker process has to know, and may use."""

    conninfo: str
    """Of the database, in libpq's form."""
    memory_bytes: int
    """What it may have on top of what it has when it is ready."""
    result_bytes: int
    """The longest answer."""

    def encode(self) -> bytes:
        """Return the settings as JSON."""
        return orjson.dumps(asdict(self))

    @classmethod
    def decode(cls, data: bytes) -> WorkerSettings:
        """Return the settings that `encode` wrote."""
        return cls(**orjson.loads(data))
