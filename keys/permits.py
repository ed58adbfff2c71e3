"""What entitlements come to for requests: what a key may do on which network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

TRACE = "trace"
"""The capability to have blocks traced."""


@dataclass(frozen=True, slots=True)
class Permit:
    """The terms on which a key was granted a capability on one network.

    tracers: those that it may use; empty: all that the network offers.
    expires_at: Unix seconds, None for never.
    """

    tracers: frozenset[str] = frozenset()
    expires_at: float | None = None

    def covers(self, tracer: str) -> bool:
        """Return whether a tracer may be used, where the network offers it."""
        return not self.tracers or tracer in self.tracers

    def has_expired(self, now: float) -> bool:
        """Return whether the permit's time is over; `now`: Unix seconds."""
        return self.expires_at is not None and self.expires_at <= now


Permits = Mapping[tuple[int, str], Permit]
"""By the network's id and the capability."""

NO_PERMITS: Permits = MappingProxyType({})
"""What most keys have."""
