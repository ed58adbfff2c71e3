"""Subscriptions and filters."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol

from networks.directory import NetworkView
from nodeapi.log_filter import LogSelection
from nodeapi.ports.answers import Answer


class Notifier(Protocol):
    """Opens and ends the subscriptions of a socket; see `nodeapi.sockets.peer`."""

    async def subscribe(self, kind: str, options: Any) -> str:
        """Open a subscription and return its id. It begins after the call's response.

        kind: the first argument of eth_subscribe. options: the second one, or None.
        Raises: NoSuchSubscription, InvalidParams, TooManySubscriptions, Unavailable.
        """

    def unsubscribe(self, subscription: str) -> bool:
        """End a subscription. Return False if the socket has none with this id."""


class Filters(Protocol):
    """The filters that clients poll; see `nodeapi.filters`.

    key_id: the API key, to which a filter belongs together with its network.
    """

    async def add_logs(
        self, network: NetworkView, key_id: int, criteria: dict[str, Any]
    ) -> str:
        """Create a filter of new logs, and return its id. criteria: JSON."""

    async def add_blocks(self, network: NetworkView, key_id: int) -> str:
        """Create a filter of new blocks, and return its id."""

    async def add_pending(
        self, network: NetworkView, key_id: int, *, is_full: bool
    ) -> str:
        """Create a filter of new pending transactions, and return its id."""

    async def criteria(
        self, network: NetworkView, key_id: int, name: str
    ) -> dict[str, Any]:
        """Return the criteria of a filter of logs. Raises: FilterNotFound."""

    async def remove(self, network: NetworkView, key_id: int, name: str) -> bool:
        """Remove a filter. Return whether it existed."""

    async def poll(
        self,
        network: NetworkView,
        key_id: int,
        name: str,
        select: Callable[[dict[str, Any]], LogSelection],
        owner: Hashable,
        room: int,
    ) -> Answer:
        """Return an array of the events since the last poll, and advance the filter.

        A long array ends before the newest block. The next poll continues there.

        select: returns which logs a filter reports, from its criteria. Its errors are
            raised.
        room: bytes that the array may have.

        Raises: FilterNotFound; Unavailable; LogSearchTimedOut; ResultTooLarge.
        """
