"""Counting of a socket's notifications, and the charges for them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from time import perf_counter_ns

from jsonrpc.errors import RpcError
from jsonrpc.later import Later
from keys.grants import Grant
from keys.metering.meter import OK
from nodeapi.frames.writer import FrameWriter
from nodeapi.node import Node
from nodeapi.sockets import limits

logger = logging.getLogger(__name__)

NOTIFICATION = "eth_subscription"
"""The method under which notifications are counted."""


class Charges:
    """Counts the notifications of a socket, and charges its key for them.

    They are charged after they were sent.
    refused: called with the error if the key has too few credits.
    """

    def __init__(
        self,
        node: Node,
        network_id: int,
        writer: FrameWriter,
        refused: Callable[[RpcError], None],
    ) -> None:
        self._node = node
        self._network_id = network_id
        self._writer = writer
        self._refused = refused
        self._sizes: list[int] = []
        """Sizes of notifications that were sent and not yet counted."""
        self._unpaid = 0
        """Credits of notifications that were counted and not yet charged."""
        self._is_paying = False

    def add(self, size: int) -> None:
        """Add a notification that was sent. size: of the frame, in bytes."""
        self._sizes.append(size)

    def settle(self, grant: Grant, read_at: int) -> None:
        """Count the notifications that were added, and charge the key.

        read_at: when the event was looked for, as in `BlockEvent.read_at`.
        """
        if not self._sizes:
            return
        sizes, self._sizes = self._sizes, []
        price = limits.NOTIFICATION_CREDITS
        use = (
            grant.version_id,
            grant.api_key_id,
            self._network_id,
            NOTIFICATION,
            OK,
        )
        microseconds = (perf_counter_ns() - read_at) // 1000
        for size in sizes:
            self._node.meter.book(use, price, microseconds, size)
        self._unpaid += price * len(sizes)
        self._pay(grant)

    def _pay(self, grant: Grant) -> None:
        if self._is_paying or not self._unpaid or not self._writer.is_open:
            return
        self._is_paying = True
        credits, self._unpaid = self._unpaid, 0
        charged = self._node.limiter.charge(grant.api_key_id, grant.limits, credits)
        charged.when_done(partial(self._take, grant))

    def _take(self, grant: Grant, charged: Later[None]) -> None:
        self._is_paying = False
        error = charged.error
        if isinstance(error, RpcError):
            self._refused(error)
        elif error is not None:
            logger.error("notifications were not charged", exc_info=error)
        else:
            self._pay(grant)
