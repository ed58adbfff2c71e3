"""Limits of the clients' memory and connections, and a log of exceeded limits."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import lru_cache

from server.addresses import owner_of
from server.memory_bounds import BufferedBytes, ByteLimits

logger = logging.getLogger(__name__)

LOG_SECONDS = 60.0
"""Interval of log lines about disconnected clients."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the clients of one worker process.

    buffered: bytes. per_key, per_address: connections.
    stall_seconds: longest time for which a client may read nothing of a response.
    """

    buffered: ByteLimits = field(
        default=ByteLimits(256 * 2**20, 64 * 2**20, 128 * 2**20)
    )
    per_key: int = 1000
    per_address: int = 1000
    stall_seconds: float = 300.0


class ConnectionLimit:
    """Counts the open connections of each owner: an API key, or a client's address.

    most: maximum number of concurrent connections of one owner.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[Hashable, int] = {}

    def take(self, owner: Hashable) -> bool:
        """Count another connection. Return False, without counting it, above the limit.

        owner: None for a connection without owner, which is not limited.
        """
        if owner is None:
            return True
        count = self._open.get(owner, 0)
        if count >= self._most:
            return False
        self._open[owner] = count + 1
        return True

    def give_back(self, owner: Hashable) -> None:
        """Undo a successful `take`."""
        if owner is None:
            return
        count = self._open[owner] - 1
        if count:
            self._open[owner] = count
        else:
            del self._open[owner]


@dataclass(slots=True)
class Bounds:
    """The limits of a process, and the counts of its clients.

    is_proxy: whether an address is a proxy's, whose connections carry many clients.
    """

    limits: Limits
    is_proxy: Callable[[str], bool]
    buffered: BufferedBytes = field(init=False)
    of_keys: ConnectionLimit = field(init=False)
    of_addresses: ConnectionLimit = field(init=False)
    owner_of: Callable[[str | None], str | None] = field(init=False)
    """Returns the owner of an address's connections: itself, or its /64 in IPv6."""
    disconnected: Counter[str] = field(default_factory=Counter)
    """Clients so far, by the limit: process, key, address, connections, stalled."""
    _logged: int = field(default=0, init=False)
    _logged_at: float = field(default=-LOG_SECONDS, init=False)

    def __post_init__(self) -> None:
        self.buffered = BufferedBytes(self.limits.buffered)
        self.of_keys = ConnectionLimit(self.limits.per_key)
        self.of_addresses = ConnectionLimit(self.limits.per_address)
        self.owner_of = lru_cache(4096)(owner_of)

    def log(self, now: float) -> None:
        """Log the number of disconnected clients, at most one line a minute.

        Has to be called regularly.

        now: seconds since any fixed time.
        """
        count = self.disconnected.total()
        if count > self._logged and now - self._logged_at >= LOG_SECONDS:
            logger.warning(
                "disconnected %d clients beyond a limit; since the start: %s",
                count - self._logged,
                ", ".join(f"{why} {n}" for why, n in self.disconnected.items()),
            )
            self._logged, self._logged_at = count, now
