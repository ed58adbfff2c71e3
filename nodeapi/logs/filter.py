"""Filters of logs by block, address and topics.

Source: https://geth.ethereum.org/docs/interacting-with-geth/rpc/pubsub; go-ethereum
    eth/filters/filter.go `filterLogs`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

MAX_ALTERNATIVES = 1000
"""Addresses, and alternatives for one topic; geth's limit."""


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Addresses and topics as `0x…`, as in log objects; None matches any."""

    addresses: frozenset[str] | None
    topics: tuple[frozenset[str] | None, ...]

    def matches(self, log: Mapping[str, Any]) -> bool:
        """Return whether a log object matches."""
        return self.matches_members(log["address"], log["topics"])

    def matches_members(self, address: str, topics: Sequence[str]) -> bool:
        """Return whether a log with this address and these topics matches.

        It needs at least as many topics as the filter has positions.
        """
        return (
            (self.addresses is None or address in self.addresses)
            and len(self.topics) <= len(topics)
            and all(
                wanted is None or topic in wanted
                for wanted, topic in zip(self.topics, topics, strict=False)
            )
        )

    @property
    def matches_all(self) -> bool:
        """Whether every log matches."""
        return self.addresses is None and not self.topics

    def digest(self) -> bytes:
        """Return 16 bytes that name the filter. Equal filters have equal ones.

        A filter may have thousands of values, and should not be kept as a key.
        """
        parts = [self.addresses, *self.topics]
        text = ";".join(
            "*" if part is None else ",".join(sorted(part)) for part in parts
        )
        return blake2b(text.encode(), digest_size=16).digest()

    def address_bytes(self) -> list[bytes] | None:
        """Return the addresses as bytes, None if any matches."""
        return None if self.addresses is None else _as_bytes(self.addresses)

    def topic_bytes(self, position: int) -> list[bytes] | None:
        """Return the alternatives of a topic as bytes, None if any matches.

        position: 0 to 3.
        """
        if position >= len(self.topics):
            return None
        wanted = self.topics[position]
        return None if wanted is None else _as_bytes(wanted)


@dataclass(frozen=True, slots=True)
class LogSelection:
    """Which new logs a filter or a subscription reports.

    first, last: numbers of the first and the last block, both included. last: None for
        no last block.
    """

    wanted: LogFilter
    first: int = 0
    last: int | None = None

    def selects(self, number: int) -> bool:
        """Return whether logs of the block with a number are reported."""
        return self.first <= number and (self.last is None or number <= self.last)


def _as_bytes(values: frozenset[str]) -> list[bytes]:
    return [bytes.fromhex(value[2:]) for value in sorted(values)]
