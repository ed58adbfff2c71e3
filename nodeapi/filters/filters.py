"""Creating, polling and removing filters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from jsonrpc.stream import ResultTooLarge, Stream
from networks.directory import NetworkView
from nodeapi.errors.logs import FilterNotFound
from nodeapi.filters.changes import ChainMoved, changed_logs
from nodeapi.filters.pending import PendingFilters
from nodeapi.filters.storage import BLOCKS, LOGS, PENDING, FilterState, FilterStorage
from nodeapi.logs.filter import LogSelection
from nodeapi.results.answers import Answer
from nodeapi.results.spool import Spool, SpoolCount
from nodeapi.store import Store
from nodeapi.store.changes import BlockChanges, BlockId
from nodeapi.store.traces import SHORT_BYTES
from postgres.errors import Unavailable

_ATTEMPTS = 5
"""Number of attempts of a poll while the chain or the filter's state changes."""

POLL_BYTES = 2**23
"""Size of an answer at which the logs of further blocks are left to the next poll."""

_ADVICE = "poll this filter in a request of its own"


class Filters:
    """The filters of all API keys. They outlive this process; see `nodeapi.filters`.

    key_id: the API key, to which a filter belongs together with its network.
    select: parses the criteria of a filter to the logs that it selects.
    spooled: counts the bytes of long results.

    All methods raise ServiceUnavailable while Redis is unavailable.
    """

    def __init__(
        self,
        storage: FilterStorage,
        store: Store,
        pending: PendingFilters,
        spooled: SpoolCount,
    ) -> None:
        self._storage = storage
        self._store = store
        self._pending = pending
        self._spooled = spooled

    async def close(self) -> None:
        """Close the connections to Redis."""
        await self._storage.close()

    async def add_logs(
        self, network: NetworkView, key_id: int, criteria: dict[str, Any]
    ) -> str:
        """Create a filter of new logs, and return its id. criteria: JSON.

        Raises: TooManyFilters, as the other methods that create filters.
        """
        state = await self._at_head(network, LOGS)
        return await self._add(key_id, replace(state, criteria=criteria))

    async def add_blocks(self, network: NetworkView, key_id: int) -> str:
        """Create a filter of new blocks, and return its id."""
        return await self._add(key_id, await self._at_head(network, BLOCKS))

    async def add_pending(
        self, network: NetworkView, key_id: int, *, is_full: bool
    ) -> str:
        """Create a filter of new pending transactions, and return its id.

        is_full: whether to return transaction objects instead of hashes.

        Raises: TooManyFilters, TooManyRelayedCalls, Unavailable.
        """
        state = FilterState(network_id=network.id, kind=PENDING, is_full=is_full)
        return await self._add(key_id, await self._pending.open(network, state, key_id))

    async def criteria(
        self, network: NetworkView, key_id: int, name: str
    ) -> dict[str, Any]:
        """Return the criteria of a filter of logs. Raises: FilterNotFound."""
        _, state = await self._read(network, key_id, name)
        if state.kind != LOGS or state.criteria is None:
            raise FilterNotFound
        return state.criteria

    async def remove(self, network: NetworkView, key_id: int, name: str) -> bool:
        """Remove a filter. Return whether it existed."""
        try:
            await self._read(network, key_id, name)
        except FilterNotFound:
            return False
        return await self._storage.remove(key_id, name)

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

        select: its errors are raised.
        owner: the account that a long result counts for until it has been read.
        room: bytes that the array may have. The filter does not advance beyond events
            that do not fit.

        Raises: FilterNotFound; Unavailable; LogSearchTimedOut; TooManyRelayedCalls;
            ResultTooLarge.
        """
        for _ in range(_ATTEMPTS):
            old, state = await self._read(network, key_id, name)
            spool = Spool(SHORT_BYTES, self._spooled, owner)
            try:
                kept = state
                if state.kind == PENDING:
                    after, kept = await self._write_pending(
                        spool, network, key_id, state
                    )
                else:
                    after = await self._write_changes(
                        spool, network, state, select, owner, room
                    )
                is_too_large = spool.size > room
                new = kept if is_too_large else after
                is_replaced = await self._storage.replace(
                    key_id, name, old, new.encode()
                )
                if is_too_large and is_replaced:
                    raise ResultTooLarge(spool.size, room, _ADVICE)
                # If the state is unchanged, no other answer has reported these events.
                if is_replaced or (after == state and not is_too_large):
                    return spool.answer(_ADVICE)
            except ChainMoved:
                pass
            except BaseException:
                spool.close()
                raise
            spool.close()
        raise Unavailable("the chain changes faster than a filter can be read")

    async def _write_pending(
        self, spool: Spool, network: NetworkView, key_id: int, state: FilterState
    ) -> tuple[FilterState, FilterState]:
        """Write the array of new pending transactions.

        Returns: the state after them, and the state if they are not reported.
        """
        changes = await self._pending.changes(network, state, key_id)
        spool.write(b"[" + b",".join(changes.found) + b"]")
        return changes.after, changes.kept

    async def _write_changes(
        self,
        spool: Spool,
        network: NetworkView,
        state: FilterState,
        select: Callable[[dict[str, Any]], LogSelection],
        owner: Hashable,
        room: int,
    ) -> FilterState:
        """Write the array of blocks or logs, and return the state after them."""
        changes = await self._store.changes_since(
            network.id, bytes.fromhex(state.block_hash[2:])
        )
        if changes is None:  # the block was a side block and has been deleted
            spool.write(b"[]")
            return replace(
                await self._at_head(network, state.kind), criteria=state.criteria
            )
        newest = changes.newest
        if state.kind == BLOCKS:
            hashes = [b'"0x%s"' % h.hex().encode() for _, h in changes.added]
            spool.write(b"[" + b",".join(hashes) + b"]")
        else:
            selection = select(state.criteria or {})
            newest = await self._write_logs(
                spool, network.id, changes, selection, owner, room
            )
        number, block_hash = newest
        return replace(state, number=number, block_hash="0x" + block_hash.hex())

    async def _write_logs(
        self,
        spool: Spool,
        network_id: int,
        changes: BlockChanges,
        selection: LogSelection,
        owner: Hashable,
        room: int,
    ) -> BlockId:
        """Write the array of changed logs, and return the block up to which it reaches.

        An array that is too long ends before the newest block. It is larger than `room`
        only if the logs up to the first possible end are.
        """
        merged = MergedArray(spool)
        reached: BlockId | None = None
        changed = changed_logs(
            *(self._store, network_id, changes),
            *(selection.wanted, selection.selects, owner),
        )
        async with aclosing(changed):
            async for logs, block in changed:
                if reached and spool.size + _size(logs) > room:
                    await _discard(logs)
                    break
                await merged.add(logs)
                reached = block or reached
                if block and spool.size >= POLL_BYTES:
                    break
            else:
                reached = changes.newest
        merged.close()
        return reached or changes.newest

    async def _at_head(self, network: NetworkView, kind: str) -> FilterState:
        """Return the state of a filter that begins after the head."""
        number = await self._store.head_number(network.id)
        block_hash = await self._store.canonical_hash(network.id, number)
        if block_hash is None:
            raise Unavailable("the network has no blocks yet")
        return FilterState(
            network_id=network.id,
            kind=kind,
            number=number,
            block_hash="0x" + block_hash.hex(),
        )

    async def _add(self, key_id: int, state: FilterState) -> str:
        return await self._storage.add(key_id, state.encode())

    async def _read(
        self, network: NetworkView, key_id: int, name: str
    ) -> tuple[bytes, FilterState]:
        """Return the state of a filter, encoded and decoded. Raises: FilterNotFound."""
        found = await self._storage.read(key_id, name)
        if found is None:
            raise FilterNotFound
        state = FilterState.decode(found)
        if state.network_id != network.id:
            raise FilterNotFound
        return found, state


def _size(logs: Answer) -> int:
    return logs.size if isinstance(logs, Stream) else len(logs)


async def _discard(logs: Answer) -> None:
    if isinstance(logs, Stream):
        await logs.aclose()


class MergedArray:
    """Writes the elements of JSON arrays to a spool, as one array.

    The arrays must have no white space around their brackets.
    """

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._separator = b"["

    async def add(self, array: Answer) -> None:
        """Write the elements of an array.

        Raises: the errors of `Spool.write`.
        """
        if isinstance(array, bytes):
            self._write_members(array[1:-1])
            return
        async with aclosing(array):
            held = b""  # bytes that are not written, such as the closing bracket
            is_opened = is_begun = False
            async for chunk in array:
                held += chunk
                if not is_opened:
                    held = held[1:]
                    is_opened = True
                if is_begun:
                    self._spool.write(held[:-1])
                elif len(held) > 1:
                    self._write_members(held[:-1])
                    is_begun = True
                held = held[-1:]
                await asyncio.sleep(0)  # other tasks may run between

    def close(self) -> None:
        """Write the end of the array."""
        self._spool.write(b"]" if self._separator == b"," else b"[]")

    def _write_members(self, members: bytes) -> None:
        """Write elements after those before, or the beginning of the first of them."""
        if members:
            self._spool.write(self._separator + members)
            self._separator = b","
