"""The transaction pool of a network: an upstream's, or the local one."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson

from networks.directory import NetworkView
from nodeapi.errors.relay import PoolNotAvailable, RelayedError
from nodeapi.mempool.local import LocalPool
from nodeapi.relay.bounds import CallsInFlight, SharedReads
from nodeapi.upstreams.errors import (
    MethodUnavailable,
    UpstreamError,
    UpstreamUnavailable,
)
from nodeapi.upstreams.pool import UpstreamPool

READ_SECONDS = 10.0
"""Time limit for reading from one upstream."""

MAX_BYTES = 16 * 2**20
"""Maximum size of an upstream's response. Parsing a longer one would block the event loop
for too long."""


class TransactionPools:
    """Reads the pools of all networks.

    payer: the id of the API key. All methods raise TooManyRelayedCalls while the key or
    the process has too many calls in flight; RelayedError if all available upstreams
    answer with an error; PoolNotAvailable if none answers; and Unavailable without the
    database.
    """

    def __init__(
        self, upstreams: UpstreamPool, local: LocalPool, calls: CallsInFlight
    ) -> None:
        self._upstreams = upstreams
        self._local = local
        self._calls = calls
        self._reads = SharedReads()

    async def close(self) -> None:
        """Cancel all reads."""
        await self._reads.close()

    async def status(self, network: NetworkView, payer: int) -> bytes:
        """Return the numbers of pending and queued transactions, as JSON."""
        with self._calls.hold(payer):
            if network.upstreams:
                return await self._ask_json(network, "txpool_status")
            return await self._local.status(network.id)

    async def content(self, network: NetworkView, payer: int) -> bytes:
        """Return the transaction objects by address and nonce, as JSON."""
        with self._calls.hold(payer):
            if network.upstreams:
                return await self._ask_json(network, "txpool_content")
            return await self._reads.get(
                ("content", network.id), lambda: self._local.content(network.id)
            )

    async def inspect(self, network: NetworkView, payer: int) -> bytes:
        """Return a line of text for each transaction by address and nonce, as JSON."""
        with self._calls.hold(payer):
            if network.upstreams:
                return await self._ask_json(network, "txpool_inspect")
            return await self._reads.get(
                ("inspect", network.id), lambda: self._local.inspect(network.id)
            )

    async def content_from(
        self, network: NetworkView, address: bytes, payer: int
    ) -> bytes:
        """Return the transaction objects of a sender by nonce, as JSON."""
        with self._calls.hold(payer):
            if network.upstreams:
                name = "0x" + address.hex()
                return await self._ask_json(network, "txpool_contentFrom", name)
            return await self._local.content_from(network.id, address)

    async def _ask_json(self, network: NetworkView, method: str, *params: str) -> bytes:
        """Return an upstream's result as JSON. Equal calls in flight are joined."""

        async def read() -> bytes:
            found = await self._ask(network, method, *params)
            return await asyncio.to_thread(orjson.dumps, found)

        return await self._reads.get((network.id, method, params), read)

    async def _ask(self, network: NetworkView, method: str, *params: str) -> Any:
        """Return the result of the first upstream that answers without an error.

        A MethodUnavailable is reported only if no upstream gives another reason.
        """
        failures: list[UpstreamError] = []
        for client in self._upstreams.by_availability(network):
            try:
                async with asyncio.timeout(READ_SECONDS):
                    return await client.call(method, *params, max_bytes=MAX_BYTES)
            except UpstreamError as error:
                failures.append(error)
            except (UpstreamUnavailable, TimeoutError):
                self._upstreams.avoid(client)
        failures.sort(key=lambda error: isinstance(error, MethodUnavailable))
        for failure in failures:
            raise RelayedError(failure.code, failure.message, failure.data)
        raise PoolNotAvailable
