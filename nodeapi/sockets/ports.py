"""Interfaces of the parts of a process that a socket uses."""

from __future__ import annotations

import asyncio
from typing import Protocol

from networks.directory import NetworkView
from nodeapi.access import Access
from nodeapi.calls import Calls
from nodeapi.feeds.blocks import Audience, Feeds
from nodeapi.feeds.pending import PendingFeed
from nodeapi.feeds.syncing import SyncingFeed
from nodeapi.ports.access import Limiter, Meter
from nodeapi.ports.events import Filters
from nodeapi.ports.relay import Relay
from nodeapi.ports.store import Store
from nodeapi.ports.tasks import Tracing
from nodeapi.sockets.frame_log import FrameLog


class Service(Protocol):
    """The parts of the node that sockets use; see `nodeapi.service`."""

    @property
    def feeds(self) -> Feeds:
        """The feeds of new blocks."""

    @property
    def syncing(self) -> SyncingFeed:
        """Reports when a network begins or ends to be behind."""

    @property
    def pending_feed(self) -> PendingFeed:
        """Reports new pending transactions of upstreams."""

    @property
    def filters(self) -> Filters:
        """The filters that clients poll."""

    @property
    def relay(self) -> Relay:
        """Asks upstreams."""

    @property
    def store(self) -> Store:
        """Reads blocks, state and trace records."""

    @property
    def tracing(self) -> Tracing:
        """Executes blocks again for traces on demand."""

    @property
    def limiter(self) -> Limiter:
        """Charges keys."""

    @property
    def meter(self) -> Meter:
        """Counts calls and notifications."""


class Hub(Audience, Protocol):
    """The objects that the sockets of a process share; see `nodeapi.sockets.hub`."""

    @property
    def service(self) -> Service:
        """The parts of the node."""

    @property
    def access(self) -> Access:
        """Decides who may use the API."""

    @property
    def calls(self) -> Calls:
        """Answers calls."""

    @property
    def log(self) -> FrameLog:
        """Has a line for each frame."""

    @property
    def long_answers(self) -> asyncio.Semaphore:
        """Held while a long result is read."""

    @property
    def answer_bytes(self) -> int:
        """Size of the longest result."""

    def network(self, network_id: int) -> NetworkView | None:
        """Return a network as it is now, None if it was removed."""
