"""The log index's numbers: positions of logs, and keys of their addresses and topics.

A key is a number of 8 bytes instead of the 20 or 32 bytes of an address or a topic, which
makes the index's rows less than half as large. Two values may have the same key. A search
therefore compares the logs that the index finds with the filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

MAX_TOPICS = 4
"""Maximum number of topics of a log."""

POSITION_BITS = 24
"""Low bits of a position, which contain the log's index in its block; the others contain
the block's number. A block with more logs would need 6 billion gas."""


@lru_cache(maxsize=2**16)
def key(value: bytes) -> int:
    """Return the key of an address or a topic: a signed 64-bit number.

    It consists of the first 8 bytes of the value's BLAKE2b hash.
    """
    digest = blake2b(value, digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def event_key(address: bytes, topics: Sequence[bytes]) -> int | None:
    """Return the key of an address together with the first topic.

    The first topic identifies the event of a contract. None for a log without topics.
    """
    return key(address + topics[0]) if topics else None
