"""New pending transactions for filters, from upstreams or the local pool.

A filter of a client has one filter at an upstream, whose id is part of its state. So the
process that answers a poll need not be the one that created the filter. On a network
without upstreams, the transactions that are added to the local pool are reported.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from networks.directory import NetworkView, UpstreamView
from nodeapi.documents.pending import pending_transaction
from nodeapi.filters.storage import FilterState
from nodeapi.mempool.arrivals import Arrivals
from nodeapi.relay.bounds import CallsInFlight
from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.errors import UpstreamError, UpstreamUnavailable
from nodeapi.upstreams.pool import UpstreamPool

CALL_SECONDS = 5.0
"""Time limit of a call."""

MAX_OBJECTS = 1000
"""Maximum number of transactions that are read at once. Further objects of an upstream
are left out."""

MAX_BYTES = 32 * 2**20
"""Maximum size of an upstream's response."""

MAX_UNREAD = 10_000
"""Maximum number of an upstream's hashes that are kept for a later answer, 0.7 MB."""

_HASH = re.compile(r"0x[0-9a-f]{64}")
_FAILURES = (UpstreamError, UpstreamUnavailable, TimeoutError)


@dataclass(frozen=True, slots=True)
class PendingChanges:
    """New pending transactions.

    found: hashes or transaction objects, as JSON.
    after: the filter's state once they are reported.
    kept: its state if they are left to a later answer.
    """

    found: list[bytes]
    after: FilterState
    kept: FilterState


class PendingFilters:
    """Creates and polls filters of pending transactions.

    pool: the clients for upstreams. arrivals: reads the additions to local pools.
    payer: the id of the API key. The methods raise TooManyRelayedCalls while the key or
        the process has too many calls to upstreams in flight.
    """

    def __init__(self, pool: UpstreamPool, arrivals: Arrivals) -> None:
        self._pool = pool
        self._arrivals = arrivals
        self._calls = CallsInFlight()

    async def open(
        self, network: NetworkView, state: FilterState, payer: int
    ) -> FilterState:
        """Create a filter at an upstream, and return the state with its id.

        If no upstream creates one, the next poll tries again. Without upstreams, the
        state begins after the newest transaction of the local pool.

        Raises: Unavailable.
        """
        if not network.upstreams:
            return replace(state, number=await self._arrivals.newest(network.id))
        with self._calls.hold(payer):
            return await self._open(network, state)

    async def changes(
        self, network: NetworkView, state: FilterState, payer: int
    ) -> PendingChanges:
        """Return the new hashes or transaction objects.

        If the upstream does not have the filter any more, none are found and the states
        have another filter.

        Raises: Unavailable.
        """
        if not network.upstreams:
            return await self._local_changes(network, state)
        with self._calls.hold(payer):
            return await self._upstream_changes(network, state)

    async def _open(self, network: NetworkView, state: FilterState) -> FilterState:
        """Create a filter at an upstream, and return the state with its id."""
        for upstream, client in self._upstreams(network):
            with suppress(*_FAILURES):
                async with asyncio.timeout(CALL_SECONDS):
                    name = await client.call("eth_newPendingTransactionFilter")
                if isinstance(name, str):
                    return replace(state, upstream_id=upstream.id, upstream_filter=name)
        return replace(state, upstream_id=None, upstream_filter=None)

    async def _upstream_changes(
        self, network: NetworkView, state: FilterState
    ) -> PendingChanges:
        client = next(
            (
                client
                for upstream, client in self._upstreams(network)
                if upstream.id == state.upstream_id
            ),
            None,
        )
        if client is not None and state.upstream_filter is not None:
            with suppress(*_FAILURES):
                # An upstream reports each event only once. Unreported ones are kept in the state.
                hashes = state.unread or await self._poll(client, state)
                if state.is_full:
                    found = await self._objects(client, hashes)
                else:
                    found = [b'"%s"' % each.encode() for each in hashes]
                after = replace(state, unread=()) if state.unread else state
                kept = replace(state, unread=hashes[:MAX_UNREAD])
                return PendingChanges(found, after, kept)
        state = await self._open(network, state)
        return PendingChanges([], state, state)

    async def _local_changes(
        self, network: NetworkView, state: FilterState
    ) -> PendingChanges:
        added = await self._arrivals.after(network.id, state.number, MAX_OBJECTS)
        if not added:
            return PendingChanges([], state, state)
        found = [each.document if state.is_full else each.hash for each in added]
        after = replace(state, number=added[-1].number)
        return PendingChanges(found, after, state)

    async def _poll(self, client: UpstreamClient, state: FilterState) -> list[str]:
        """Return the hashes that an upstream reports."""
        async with asyncio.timeout(CALL_SECONDS):
            found = await client.call(
                "eth_getFilterChanges", state.upstream_filter, max_bytes=MAX_BYTES
            )
        return [
            each
            for each in found or ()
            if isinstance(each, str) and _HASH.fullmatch(each)
        ]

    async def _objects(
        self, client: UpstreamClient, hashes: Sequence[str]
    ) -> list[bytes]:
        """Return the transactions that are still pending, as JSON."""
        async with asyncio.timeout(CALL_SECONDS):
            objects: list[Any] = await client.batch(
                [("eth_getTransactionByHash", [h]) for h in hashes[:MAX_OBJECTS]],
                max_bytes=MAX_BYTES,
            )
        documents = []
        for each in objects:
            with suppress(ValueError):  # it is not pending any more, or an error
                documents.append(pending_transaction(each))
        return documents

    def _upstreams(
        self, network: NetworkView
    ) -> list[tuple[UpstreamView, UpstreamClient]]:
        """Return the upstreams with their clients, recently unavailable ones last."""
        pairs = zip(network.upstreams, self._pool.clients(network), strict=True)
        return sorted(pairs, key=lambda pair: self._pool.is_avoided(pair[1]))
