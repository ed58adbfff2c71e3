"""The protocol between the service and a worker process, over a socket.

The service sends settings once, then messages, each after its length. A message is a
trace job, or an array of task jobs. With a message's length it passes the descriptor of a
file for a long result. A trace job always has one; the worker keeps that of an array until
it is used.

The worker sends messages: one byte for the kind, the length of the rest, and the rest. To
an array, it sends any number of messages with outcomes, and one at the end. Tasks without
an outcome were not executed.
"""

from __future__ import annotations

import struct
from dataclasses import asdict, dataclass

import orjson
from eth_typing import Address

from evm.proved_state import Keys

MARKER = struct.Struct(">H")
"""Content of the marker file: the place of the executing task in its array, plus one; 0
while none is executing."""
REPLAYS = struct.Struct(">QQQ")
"""The rest of the marker file: the numbers of `nodeapi.chain.replay_counts.ReplayCounts`."""
MARKER_BYTES = MARKER.size + REPLAYS.size
LENGTH = struct.Struct(">Q")
"""Prefix of settings and jobs."""
HEAD = struct.Struct(">cI")
"""Prefix of a worker's message: its kind, and the length of the rest."""

PREPARE = b"prepare"
"""A message to a worker: it loads what the first proof of a blob needs. It answers with
READY."""

READY = b"r"
PROGRESS = b"p"
"""The worker begins the next transaction, or a long task makes progress."""
DONE = b"d"
"""The job is done; the rest is the result's size."""
FAILED = b"f"
"""The job failed; the rest is geth's message for the caller."""
REFUSED = b"x"
"""The job failed; the rest is an array of an error object's code, message and data."""
UNKNOWN = b"k"
"""Values of a sparse state are unknown, which have to be proved before the job or task is
executed again. The rest is their keys; see `encode_keys`."""
UNKNOWN_NODES = b"n"
"""Trie nodes of a sparse state are unknown. The rest are the keys whose proofs have them."""
TOO_LARGE = b"l"
UNAVAILABLE = b"u"
"""The database is unavailable."""
CRASHED = b"c"
"""The worker has failed; the error is logged."""

OUTCOMES = b"t"
"""Outcomes of tasks. The rest is any number of outcomes, each after its OUTCOME header."""
END = b"e"
"""No further task of the array is executed."""

SECONDS = struct.Struct(">d")
"""Prefix of the rest of an outcome of a trace job: the seconds of processor time."""

OUTCOME = struct.Struct(">HcQdI")
"""Head of a task's outcome: the task's place in its array, the kind, the gas used, the
seconds of processor time, and the length of the rest. The kind is DONE with the result; SPOOLED; FAILED with an array of an
error object's code, message and data, and whether it is lasting; UNKNOWN or UNKNOWN_NODES; TIMED_OUT;
TOO_LARGE, with the limit if it is not that of results; UNAVAILABLE or CRASHED."""
SPOOLED = b"s"
"""The result is in the file; the rest is its size."""
TIMED_OUT = b"o"

INLINE_BYTES = 2**18
"""Maximum size of a result in a message. A longer one is written to the file."""

TASKS_AT_ONCE = 64
"""Maximum number of tasks in an array. Large ones count several times."""

OUT_OF_MEMORY_STATUS = 3
"""Exit status of a worker at its memory limit, when there may be no memory for a
message."""


MAX_KEYS = 1024
"""Most keys of one outcome. What is left is found by the next execution."""


def encode_keys(keys: Keys) -> bytes:
    """Return up to MAX_KEYS keys as JSON."""
    accounts = sorted(keys.accounts)[:MAX_KEYS]
    slots = sorted(keys.slots)[: MAX_KEYS - len(accounts)]
    return orjson.dumps(
        [
            [address.hex() for address in accounts],
            [[address.hex(), f"{slot:x}"] for address, slot in slots],
        ]
    )


def decode_keys(data: bytes) -> Keys:
    """Return the keys that `encode_keys` has written."""
    accounts, slots = orjson.loads(data)
    return Keys(
        {Address(bytes.fromhex(name)) for name in accounts},
        {(Address(bytes.fromhex(name)), int(slot, 16)) for name, slot in slots},
    )


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The settings of a worker process."""

    conninfo: str
    """Database connection string of libpq."""
    memory_bytes: int
    """Memory limit, in addition to the memory of a ready worker."""
    result_bytes: int
    """Size limit of a result."""

    def encode(self) -> bytes:
        """Return the settings as JSON."""
        return orjson.dumps(asdict(self))

    @classmethod
    def decode(cls, data: bytes) -> WorkerSettings:
        """Return the settings that `encode` has written."""
        return cls(**orjson.loads(data))
