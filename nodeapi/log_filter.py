"""The filter of a subscription to logs.

Source: https://geth.ethereum.org/docs/interacting-with-geth/rpc/pubsub; go-ethereum
    eth/filters/filter.go `filterLogs`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jsonrpc.errors import InvalidParams
from nodeapi.encoding import address, hash32

MAX_ALTERNATIVES = 1000
"""Addresses, and alternatives for one topic; geth's limit."""

MAX_TOPICS = 4
"""Topics of a log at most."""


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Addresses and topics as `0x…`, as in log objects; None matches any."""

    addresses: frozenset[str] | None
    topics: tuple[frozenset[str] | None, ...]

    def matches(self, log: Mapping[str, Any]) -> bool:
        """Return whether a log object matches."""
        topics = log["topics"]
        return (
            (self.addresses is None or log["address"] in self.addresses)
            and len(self.topics) <= len(topics)
            and all(
                wanted is None or topic in wanted
                for wanted, topic in zip(self.topics, topics, strict=False)
            )
        )


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
            raise InvalidParams(f"invalid argument 1: {name}: only new logs are sent")
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
