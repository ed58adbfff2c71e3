"""The possible outcomes of one test."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Status(Enum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN_NETWORK = "unknown network"
    UNKNOWN_FORMAT = "unknown format"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one test.

    detail: the difference, the network's name, or the format's name; empty if passed.
    """

    name: str
    status: Status
    detail: str = ""


class Mismatch(Exception):
    """Raised when a result differs from what the fixture expects; one line of text."""


class UnknownNetwork(Exception):
    """Raised for a network name whose forks are not known."""


class UnknownFormat(Exception):
    """Raised for a fixture in a format that this runner does not execute."""


def expect(what: str, expected: object, actual: object) -> None:
    """Compare two values; raises Mismatch when they differ."""
    if expected != actual:
        raise Mismatch(f"{what}: expected {_text(expected)}, got {_text(actual)}")


def _text(value: object) -> str:
    return f"0x{value.hex()}" if isinstance(value, bytes) else str(value)
