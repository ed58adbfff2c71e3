"""Values of the states below a checkpoint, proved when a customer reads them.

The header of each stored block is trusted, and its state root with it. So an upstream that
keeps old states, an archive, can prove any value there. Such values are not stored, except
code, which is the same at every block.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import TYPE_CHECKING, TypeVar

from eth_typing import Address

from evm.proved_state import Keys, ProvedValues, Slot
from jsonrpc.errors import ServiceUnavailable
from nodeapi.errors.blocks import HistoryPruned
from nodeapi.proofs.fetch import Fetched
from nodeapi.proofs.values import Anchor
from nodeapi.upstreams.errors import UpstreamError, UpstreamUnavailable
from nodeapi.upstreams.hints import (
    access_list,
    listed_keys,
    most_keys,
    prestate_keys,
)

if TYPE_CHECKING:
    from evm.headers import Header
    from jsonrpc.turns import Turns
    from networks.directory import NetworkView
    from nodeapi.proofs.writer import ValueWriter
    from nodeapi.upstreams.client import UpstreamClient
    from nodeapi.upstreams.pool import UpstreamPool

Answer = TypeVar("Answer")

PRUNED_SECONDS = 10.0
"""Time for which upstreams are not asked again for a state that they do not have."""
HINT_SECONDS = 10.0
"""Time limit for an upstream's list of what a block accesses."""

Admit = Callable[[Hashable, int], None]
"""Counts keys of a customer. Raises: TooManyUnknownValues."""
NodesAt = Callable[["NetworkView", bytes, Keys], Awaitable[tuple[Anchor, Fetched]]]
"""Returns proved values after a block. Raises: HistoryPruned, Unavailable."""

_Place = tuple[int, bytes, Address | Slot]
"""Network id, block hash and key of a value."""
_Name = tuple[int, bytes, Hashable]
"""Network id, block hash and customer of a fetch."""


class PastReader:
    """Fetches and proves values of states below checkpoints, on one event loop."""

    def __init__(
        self,
        admit: Admit,
        nodes_at: NodesAt,
        writer: ValueWriter,
        upstreams: UpstreamPool,
        turns: Turns,
    ) -> None:
        self._admit = admit
        self._nodes_at = nodes_at
        self._writer = writer
        self._upstreams = upstreams
        self._turns = turns
        self._pruned: dict[int, tuple[int, float]] = {}
        """The newest block whose state was refused, and when, by network."""
        self._fetching: dict[_Place, asyncio.Task[ProvedValues]] = {}
        """The fetch of each value that is in flight."""
        self._waiting: dict[_Name, tuple[Keys, asyncio.Task[ProvedValues]]] = {}
        """The fetches that wait for their turn, with their keys."""

    async def close(self) -> None:
        """Cancel all fetches."""
        tasks = {*self._fetching.values()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def values(
        self, network: NetworkView, header: Header, keys: Keys, customer: Hashable
    ) -> ProvedValues:
        """Return proved values after a stored block below the checkpoint.

        Values in flight are waited for.

        Raises: HistoryPruned if no upstream proves one of them; TooManyUnknownValues;
            ServiceUnavailable, Unavailable.
        """
        fetching, network_id, block_hash = self._fetching, network.id, header.hash
        own = Keys(
            {a for a in keys.accounts if (network_id, block_hash, a) not in fetching},
            {s for s in keys.slots if (network_id, block_hash, s) not in fetching},
        )
        if own:
            self._admit(customer, len(own))
            self._join(network, block_hash, own, customer)
        accounts = {a: fetching[network_id, block_hash, a] for a in keys.accounts}
        slots = {s: fetching[network_id, block_hash, s] for s in keys.slots}
        flights = {*accounts.values(), *slots.values()}
        await asyncio.wait(flights)
        if any(task.cancelled() for task in flights):
            raise ServiceUnavailable
        if any(isinstance(task.exception(), HistoryPruned) for task in flights):
            self._note_pruned(network, header.number)
        return ProvedValues(
            {a: task.result().accounts[a] for a, task in accounts.items()},
            {s: task.result().slots[s] for s, task in slots.items()},
        )

    def is_pruned(self, network: NetworkView, number: int) -> bool:
        """Return whether all upstreams have just refused the state after a block.

        So they have, for `PRUNED_SECONDS`, if they refused it after a later one.
        """
        newest, noted = self._pruned.get(network.id, (-1, 0.0))
        return number <= newest and time.monotonic() - noted < PRUNED_SECONDS

    def _note_pruned(self, network: NetworkView, number: int) -> None:
        """Note that no upstream has the state after a block, unless one has failed."""
        clients = self._upstreams.clients(network)
        if not any(map(self._upstreams.is_avoided, clients)):
            self._pruned[network.id] = number, time.monotonic()

    def _join(
        self, network: NetworkView, block_hash: bytes, keys: Keys, customer: Hashable
    ) -> None:
        """Add keys to a fetch that waits for its turn. It goes on without its customer."""
        name = (network.id, block_hash, customer)
        if name not in self._waiting:
            wanted = Keys()
            task = asyncio.create_task(self._fetch(network, wanted, name))
            self._waiting[name] = wanted, task
            task.add_done_callback(self._forget)
        wanted, task = self._waiting[name]
        wanted.update(keys)
        members: list[Address | Slot] = [*keys.accounts, *keys.slots]
        for key in members:
            self._fetching[network.id, block_hash, key] = task

    def _forget(self, done: asyncio.Task[ProvedValues]) -> None:
        for place in [key for key, task in self._fetching.items() if task is done]:
            del self._fetching[place]
        if not done.cancelled():
            done.exception()  # all callers may have disconnected

    async def _fetch(
        self, network: NetworkView, keys: Keys, name: _Name
    ) -> ProvedValues:
        """Return proved values, after their code was stored.

        keys: may grow until the turn has come.
        """
        _, block_hash, customer = name
        try:
            async with self._turns.place(customer):
                del self._waiting[name]
                anchor, fetched = await self._nodes_at(network, block_hash, keys)
        finally:
            if name in self._waiting and self._waiting[name][0] is keys:
                del self._waiting[name]  # it was cancelled
        values = fetched.values
        if values.codes:
            codes = ProvedValues(codes=values.codes)
            await self._writer.write(network.id, anchor, codes)
        return values

    async def access_list(self, network: NetworkView, header: Header) -> bytes | None:
        """Return the RLP of a block's access list, None if no upstream has it.

        It has the hash that the header names, so that it is from Amsterdam on.
        """
        return await self._first(
            network,
            lambda client: access_list(
                client, header.hash, header.block_access_list_hash
            ),
        )

    async def named_in_block(self, network: NetworkView, header: Header) -> Keys:
        """Return what a block accesses, as an upstream's list or trace names it.

        It is empty if none names anything. It only says what to fetch.
        """
        limit, list_hash = most_keys(header.gas_used), header.block_access_list_hash
        listed = await self._first(
            network, lambda client: listed_keys(client, header.hash, list_hash, limit)
        )
        if listed is not None:
            return listed
        traced = await self._first(
            network, lambda client: prestate_keys(client, header.hash, limit)
        )
        return traced or Keys()

    async def _first(
        self, network: NetworkView, ask: Callable[[UpstreamClient], Awaitable[Answer]]
    ) -> Answer | None:
        """Return the first answer of an upstream, None if none has one in time."""
        for client in self._upstreams.by_availability(network):
            try:
                async with asyncio.timeout(HINT_SECONDS):
                    return await ask(client)
            except (UpstreamError, UpstreamUnavailable, TimeoutError):
                continue
        return None
