"""Permits: the entitlements of a key in the form that requests check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

TRACE = "trace"
"""The capability to request traces."""


@dataclass(frozen=True, slots=True)
class Permit:
    """The terms of a key's capability on one network.

    tracers: permitted tracers. An empty set permits all that the network offers.
    expires_at: Unix seconds, or None for no expiry.
    """

    tracers: frozenset[str] = frozenset()
    expires_at: float | None = None

    def covers(self, tracer: str) -> bool:
        """Return whether the permit includes a tracer. An empty set permits all tracers."""
        return not self.tracers or tracer in self.tracers

    def has_expired(self, now: float) -> bool:
        """Return whether the permit has expired. now: Unix seconds."""
        return self.expires_at is not None and self.expires_at <= now


Permits = Mapping[tuple[int, str], Permit]
"""(network id, capability) → permit."""

NO_PERMITS: Permits = MappingProxyType({})
"""The permits of most keys."""
