"""Filters of logs by address and topics, and the filter of a subscription.

Source: https://geth.ethereum.org/docs/interacting-with-geth/rpc/pubsub; go-ethereum
    eth/filters/filter.go `filterLogs`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from jsonrpc.errors import InvalidParams
from nodeapi.encoding import address, hash32
from nodeapi.logs.keys import MAX_TOPICS

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
    """Which new logs a filter reports.

    first, last: numbers of the first and the last block, both included. last: None for
        no last block.
    """

    wanted: LogFilter
    first: int = 0
    last: int | None = None

    def selects(self, number: int) -> bool:
        """Return whether logs of the block with a number are reported."""
        return self.first <= number and (self.last is None or number <= self.last)


def read_filter(value: Any) -> LogFilter:
    """Return the filter in the params of an eth_subscribe; None and {} match all logs.

    Block ranges are rejected, because a subscription sends new blocks only.
    Raises: InvalidParams.
    """
    given = {} if value is None else value
    if not isinstance(given, dict):
        raise InvalidParams("invalid argument 1: expected an object")
    for name in ("fromBlock", "toBlock", "blockHash"):
        if given.get(name) not in (None, "latest"):
            raise InvalidParams(
                f"invalid argument 1: {name}: a subscription only sends new logs"
            )
    topics = given.get("topics") or []
    if not isinstance(topics, list) or len(topics) > MAX_TOPICS:
        raise InvalidParams(
            f"invalid argument 1: topics: expected an array of at most {MAX_TOPICS}"
        )
    return LogFilter(
        addresses=_alternatives("address", given.get("address"), address),
        topics=tuple(
            _alternatives(f"topics[{place}]", topic, hash32)
            for place, topic in enumerate(topics)
        ),
    )


def _alternatives(where: str, value: Any, read: Any) -> frozenset[str] | None:
    if value is None or value == []:
        return None
    values = value if isinstance(value, list) else [value]
    if len(values) > MAX_ALTERNATIVES:
        raise InvalidParams(
            f"invalid argument 1: {where}: more than {MAX_ALTERNATIVES} alternatives"
        )
    try:
        return frozenset("0x" + read(one).hex() for one in values)
    except ValueError as error:
        raise InvalidParams(f"invalid argument 1: {where}: {error}") from error


def _as_bytes(values: frozenset[str]) -> list[bytes]:
    return [bytes.fromhex(value[2:]) for value in sorted(values)]
