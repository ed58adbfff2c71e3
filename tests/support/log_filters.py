"""Filters of logs, and a simple reference for the logs that they select."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

UNKNOWN_TOPIC = "0x" + "12" * 32
UNKNOWN_ADDRESS = "0x" + "12" * 20


def matching(logs: Sequence[Any], wanted: dict[str, Any]) -> list[Any]:
    """Return the log objects that match the addresses and topics of a filter."""
    return [log for log in logs if _matches(log, wanted)]


def _matches(log: Any, wanted: dict[str, Any]) -> bool:
    addresses = wanted.get("address")
    if isinstance(addresses, str):
        addresses = [addresses]
    if addresses and log["address"] not in addresses:
        return False
    topics = wanted.get("topics") or []
    if len(log["topics"]) < len(topics):
        return False
    for topic, alternatives in zip(log["topics"], topics, strict=False):
        one_of = [alternatives] if isinstance(alternatives, str) else alternatives
        if one_of and None not in one_of and topic not in one_of:
            return False
    return True


def random_filter(chance: random.Random, logs: Sequence[Any]) -> dict[str, Any]:
    """Return a filter whose addresses and topics mostly occur in the logs."""
    wanted: dict[str, Any] = {}
    if chance.random() < 0.6:
        addresses = [UNKNOWN_ADDRESS, *(log["address"] for log in logs)]
        wanted["address"] = _alternatives(chance, addresses)
    if chance.random() < 0.7:
        wanted["topics"] = [
            _topic(chance, place, logs) for place in range(chance.randrange(5))
        ]
    return wanted


def _topic(chance: random.Random, place: int, logs: Sequence[Any]) -> Any:
    if chance.random() < 0.4:
        return chance.choice([None, [], [None, UNKNOWN_TOPIC]])
    found = [log["topics"][place] for log in logs if len(log["topics"]) > place]
    return _alternatives(chance, [UNKNOWN_TOPIC, *found])


def _alternatives(chance: random.Random, values: Sequence[str]) -> Any:
    if chance.random() < 0.5:
        return chance.choice(values)
    return chance.choices(values, k=chance.randrange(1, 4))
