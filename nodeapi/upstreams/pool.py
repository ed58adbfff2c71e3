"""The clients of a process for the upstreams of all networks."""

from __future__ import annotations

import asyncio
import time

from networks.directory import Directory, NetworkView, UpstreamView
from nodeapi.upstreams.client import UpstreamClient

AVOID_SECONDS = 5.0
"""Time for which an upstream is called last after it was unavailable."""

_Key = tuple[int, str, tuple[tuple[str, str], ...]]


class UpstreamPool:
    """Clients of upstreams. Each client is created when it is first needed.

    The client of an upstream that was changed, disabled or removed is closed.
    """

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._clients: dict[_Key, UpstreamClient] = {}
        self._failed_at: dict[UpstreamClient, float] = {}
        self._closing: set[asyncio.Task[None]] = set()
        directory.subscribe(self._close_removed)

    def clients(self, network: NetworkView) -> list[UpstreamClient]:
        """Return the clients of a network's upstreams, in the configured order."""
        return [self._client(upstream) for upstream in network.upstreams]

    def by_availability(self, network: NetworkView) -> list[UpstreamClient]:
        """Return the clients of a network's upstreams, recently unavailable ones last."""
        return sorted(self.clients(network), key=self.is_avoided)

    def avoid(self, client: UpstreamClient) -> None:
        """Mark an upstream as unavailable for `AVOID_SECONDS`."""
        self._failed_at[client] = time.monotonic()

    async def close(self) -> None:
        """Close all clients."""
        clients = [*self._clients.values()]
        self._clients.clear()
        self._failed_at.clear()
        await asyncio.gather(
            *self._closing,
            *(client.close() for client in clients),
            return_exceptions=True,
        )

    def _client(self, upstream: UpstreamView) -> UpstreamClient:
        key = _key(upstream)
        client = self._clients.get(key)
        if client is None:
            client = UpstreamClient(upstream.url, upstream.headers)
            self._clients[key] = client
        return client

    def is_avoided(self, client: UpstreamClient) -> bool:
        """Return whether an upstream was unavailable in the last `AVOID_SECONDS`."""
        failed_at = self._failed_at.get(client)
        return failed_at is not None and time.monotonic() - failed_at < AVOID_SECONDS

    def _close_removed(self) -> None:
        if not self._clients:
            return
        networks = self._directory.all()
        kept = {_key(each) for network in networks for each in network.upstreams}
        for key in self._clients.keys() - kept:
            client = self._clients.pop(key)
            self._failed_at.pop(client, None)
            closing = asyncio.get_running_loop().create_task(client.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)


def _key(upstream: UpstreamView) -> _Key:
    return upstream.id, upstream.url, tuple(sorted(upstream.headers.items()))
