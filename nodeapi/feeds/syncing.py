"""Reports whether networks are behind their upstreams to subscriptions of a process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from networks.directory import Directory
from nodeapi.store import Store
from postgres.errors import Unavailable

logger = logging.getLogger(__name__)

Callback = Callable[[bytes], None]
"""Gets a state as JSON: `false`, or an object with the status. It must not block or
raise."""

POLL_SECONDS = 1.0
"""Interval at which the state of a network with subscribers is read."""

IN_SYNC = b"false"


class SyncingFeed:
    """Reports to subscribers when a network falls behind its upstreams or catches up."""

    def __init__(self, store: Store, directory: Directory) -> None:
        self._store = store
        self._directory = directory
        self._sources: dict[int, _Source] = {}

    def subscribe(self, network_id: int, callback: Callback) -> Callable[[], None]:
        """Call a function with a network's present state, and after each change.

        Returns a function that ends the subscription.
        """
        source = self._sources.get(network_id)
        if source is None:
            source = self._sources[network_id] = _Source(
                self._store, self._directory, network_id
            )
        source.callbacks.append(callback)
        if source.state is not None:
            callback(source.state)

        def unsubscribe() -> None:
            if callback in source.callbacks:
                source.callbacks.remove(callback)
            if not source.callbacks and self._sources.get(network_id) is source:
                del self._sources[network_id]
                source.task.cancel()

        return unsubscribe

    async def close(self) -> None:
        """End all subscriptions."""
        sources = list(self._sources.values())
        self._sources.clear()
        for source in sources:
            source.task.cancel()
        await asyncio.gather(
            *(source.task for source in sources), return_exceptions=True
        )


class _Source:
    """The state of one network, read while it has subscribers.

    state: the last reported state, None before the first read.
    """

    def __init__(self, store: Store, directory: Directory, network_id: int) -> None:
        self.callbacks: list[Callback] = []
        self.state: bytes | None = None
        self._store = store
        self._directory = directory
        self._network_id = network_id
        self.task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while True:
            try:
                self._report(await self._read())
            except Unavailable as error:
                logger.debug("a network's state could not be read: %s", error)
            await asyncio.sleep(POLL_SECONDS)

    async def _read(self) -> bytes:
        """Return the result of eth_syncing. Raises: Unavailable."""
        network = self._directory.get(self._network_id)
        if network is None or not network.upstreams:
            return IN_SYNC
        return await self._store.syncing(self._network_id)

    def _report(self, status: bytes) -> None:
        """Report a state if it differs from the last one."""
        if self.state is not None and (self.state == IN_SYNC) == (status == IN_SYNC):
            return
        self.state = status
        if status != IN_SYNC:
            self.state = b'{"syncing":true,"status":' + status + b"}"
        for callback in list(self.callbacks):
            callback(self.state)
