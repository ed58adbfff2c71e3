"""New pending transactions, for the subscriptions of a process.

While a network has subscribers, one of its upstreams is asked for new transactions: by
a subscription over a WebSocket, otherwise by polling a filter. An upstream that stops
responding is replaced by another one. On a network without upstreams, the local pool is
polled.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from networks.directory import Directory
from nodeapi.documents.pending import pending_transaction
from nodeapi.mempool.arrivals import Arrivals
from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.errors import UpstreamError, UpstreamUnavailable
from nodeapi.upstreams.pool import UpstreamPool
from postgres.errors import Unavailable

logger = logging.getLogger(__name__)

Callback = Callable[[bytes], None]
"""Gets a hash or a transaction object as JSON. It must not block or raise."""

POLL_SECONDS = 0.5
"""Pause between two polls of a filter, or of a local pool."""

CHECK_SECONDS = 5.0
"""Interval at which an upstream with a subscription is called, to detect that it is
unavailable although the subscription is still open."""

RETRY_SECONDS = 1.0
"""Pause after a failure, before this or another upstream is asked."""

CALL_SECONDS = 5.0
"""Time limit of a call."""

MAX_REMEMBERED = 10_000
"""Number of the last hashes that are kept, so that no hash is reported twice after a change
of upstreams."""

MAX_WAITING = 1_000
"""Maximum number of transactions whose objects are not read yet. The oldest are dropped."""

BATCH = 100
"""Maximum number of transaction objects that are read with one request."""

MAX_BATCH_BYTES = 32 * 2**20
"""Maximum size of a response with transaction objects."""

_HASH = re.compile(r"0x[0-9a-f]{64}")


class PendingFeed:
    """Reports new pending transactions to subscribers, each at most once.

    Transactions are lost while no upstream responds. Objects are also lost if hashes
    arrive faster than the upstream returns objects.
    """

    def __init__(
        self, pool: UpstreamPool, directory: Directory, arrivals: Arrivals
    ) -> None:
        self._pool = pool
        self._directory = directory
        self._arrivals = arrivals
        self._sources: dict[int, _Source] = {}

    def subscribe(
        self, network_id: int, callback: Callback, full: bool = False
    ) -> Callable[[], None]:
        """Call back with each new pending transaction of a network.

        full: whether to report transaction objects instead of hashes.

        Return a function that ends the subscription. It can be called repeatedly.
        """
        source = self._sources.get(network_id)
        if source is None:
            source = _Source(self._pool, self._directory, self._arrivals, network_id)
            self._sources[network_id] = source
        subscription = _Subscription(callback, full)
        source.subscriptions.add(subscription)

        def unsubscribe() -> None:
            source.subscriptions.discard(subscription)
            if not source.subscriptions:
                source.stop()
                if self._sources.get(network_id) is source:
                    del self._sources[network_id]

        return unsubscribe

    async def close(self) -> None:
        """End all subscriptions."""
        sources = [*self._sources.values()]
        self._sources.clear()
        for source in sources:
            source.stop()
        await asyncio.gather(
            *(source.task for source in sources), return_exceptions=True
        )


class _Subscription:
    """A subscriber. Two subscribers with the same callback are not equal."""

    __slots__ = ("callback", "full")

    def __init__(self, callback: Callback, full: bool) -> None:
        self.callback = callback
        self.full = full


class _Source:
    """The new pending transactions of one network, until it is stopped."""

    def __init__(
        self,
        pool: UpstreamPool,
        directory: Directory,
        arrivals: Arrivals,
        network_id: int,
    ) -> None:
        self.subscriptions: set[_Subscription] = set()
        self._pool = pool
        self._directory = directory
        self._arrivals = arrivals
        self._last_arrival: int | None = None
        """The last reported addition to the local pool; None before the first read."""
        self._network_id = network_id
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._waiting: OrderedDict[str, None] = OrderedDict()
        """Hashes whose objects are to be read."""
        self._has_work = asyncio.Event()
        self.task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """Cancel the requests to the upstream."""
        self.task.cancel()

    async def _run(self) -> None:
        while True:
            client = self._choose()
            if client is None:
                await self._read_local_pool()
            else:
                try:
                    async with asyncio.TaskGroup() as group:
                        reading = group.create_task(self._read_objects(client))
                        await self._listen(client)
                        reading.cancel()
                except* (UpstreamError, UpstreamUnavailable, TimeoutError):
                    self._pool.avoid(client)
                except* Exception:
                    logger.exception("new pending transactions could not be read")
            await asyncio.sleep(RETRY_SECONDS)

    def _choose(self) -> UpstreamClient | None:
        """Return the upstream to ask, or None if the network has no upstreams.

        Upstreams with a WebSocket URL are preferred.
        """
        try:
            network = self._directory.get(self._network_id)
        except Unavailable:
            return None
        if network is None or not network.upstreams:
            return None
        clients = self._pool.by_availability(network)
        return next(
            (
                client
                for client in clients
                if client.can_subscribe and not self._pool.is_avoided(client)
            ),
            clients[0],
        )

    async def _read_local_pool(self) -> None:
        """Poll the local pool while the network has no upstreams."""
        with suppress(Unavailable):
            if self._last_arrival is None:
                self._last_arrival = await self._arrivals.newest(self._network_id)
            while self._has_local_pool():
                await asyncio.sleep(POLL_SECONDS)
                added = await self._arrivals.after(
                    self._network_id, self._last_arrival, MAX_WAITING
                )
                for each in added:
                    self._last_arrival = each.number
                    self._report(each.hash, full=False)
                    self._report(each.document, full=True)

    def _has_local_pool(self) -> bool:
        """Return whether the network has no upstreams. Raises: Unavailable."""
        network = self._directory.get(self._network_id)
        return network is not None and not network.upstreams

    async def _listen(self, client: UpstreamClient) -> None:
        """Read an upstream's transactions until its configuration changes.

        Raises: UpstreamError, UpstreamUnavailable, TimeoutError.
        """
        if not client.can_subscribe:
            await self._poll(client)
            return
        async with asyncio.TaskGroup() as group:
            subscribing = group.create_task(
                client.subscribe("newPendingTransactions", callback=self._take)
            )
            while self._is_current(client):
                await asyncio.sleep(CHECK_SECONDS)
                async with asyncio.timeout(CALL_SECONDS):
                    await client.call("eth_blockNumber")
            subscribing.cancel()

    async def _poll(self, client: UpstreamClient) -> None:
        """Poll a filter of an upstream."""
        async with asyncio.timeout(CALL_SECONDS):
            name = await client.call("eth_newPendingTransactionFilter")
        try:
            while self._is_current(client):
                await asyncio.sleep(POLL_SECONDS)
                async with asyncio.timeout(CALL_SECONDS):
                    found = await client.call("eth_getFilterChanges", name)
                for each in found if isinstance(found, list) else ():
                    self._take(each)
        finally:
            with suppress(UpstreamError, UpstreamUnavailable, TimeoutError):
                async with asyncio.timeout(1):
                    await client.call("eth_uninstallFilter", name)

    def _is_current(self, client: UpstreamClient) -> bool:
        """Return whether the network still has this upstream."""
        try:
            network = self._directory.get(self._network_id)
        except Unavailable:
            return True
        return network is not None and client in self._pool.clients(network)

    def _take(self, found: Any) -> None:
        """Report a transaction's hash, unless it was reported before."""
        if not isinstance(found, str) or not _HASH.fullmatch(found):
            return
        if found in self._seen:
            return
        _remember(self._seen, found, MAX_REMEMBERED)
        self._report(b'"%s"' % found.encode(), full=False)
        if any(each.full for each in self.subscriptions):
            _remember(self._waiting, found, MAX_WAITING)
            self._has_work.set()

    async def _read_objects(self, client: UpstreamClient) -> None:
        """Read the objects of new transactions, and report them."""
        while True:
            await self._has_work.wait()
            hashes = list(self._waiting)[:BATCH]
            if not hashes:
                self._has_work.clear()
                continue
            for each in hashes:
                del self._waiting[each]
            async with asyncio.timeout(CALL_SECONDS):
                found = await client.batch(
                    [("eth_getTransactionByHash", [each]) for each in hashes],
                    max_bytes=MAX_BATCH_BYTES,
                )
            for document in found:
                with suppress(ValueError):  # it is not pending any more, or an error
                    self._report(pending_transaction(document), full=True)

    def _report(self, document: bytes, *, full: bool) -> None:
        for each in list(self.subscriptions):
            if each.full is full:
                each.callback(document)


def _remember(hashes: OrderedDict[str, None], added: str, limit: int) -> None:
    """Add a hash, and drop the oldest one if there are more than `limit`."""
    hashes[added] = None
    while len(hashes) > limit:
        hashes.popitem(last=False)
