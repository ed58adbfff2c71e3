"""Reads of storage, at any block that is there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from functools import partial

from eth_typing import Address

from jsonrpc.later import Later
from networks.directory import Directory, NetworkView
from nodeapi.encoding import BlockReference
from nodeapi.errors import HeaderForHashNotFound, HeaderNotFound, NotCanonical
from nodeapi.evm.changes import decode_changes
from nodeapi.ports import MAX_SLOTS
from nodeapi.store import queries
from nodeapi.store.base import CacheKey, Reads, settled, tagged_hash, whole_row
from postgres.cache import BytesCache
from postgres.connections import Connections
from postgres.errors import Unavailable
from postgres.lookup import Lookup
from postgres.statement import BYTEA, INT8, Row, Statement, int8, read_bool

Word = bytes | Awaitable[bytes]
"""32 bytes, at once when they are cached."""

Slot = tuple[bytes, int]
"""An address and the number of a slot."""

_StorageKey = tuple[str, int, bytes, bytes, int]
"""Of the cache: "storage", network, hash of the block, address, slot."""

_MAX_QUERIES = 1
"""Of each kind at a time: what comes meanwhile joins the next one."""

_ON_BRANCH = Statement(
    queries.STORAGE_ON_BRANCH, [INT8.oid, BYTEA.oid, BYTEA.oid, BYTEA.oid]
)


@dataclass(frozen=True, slots=True)
class StateRef:
    """The state after a block that is there."""

    network_id: int
    block_hash: bytes


class StateReads(Reads):
    """Answers with values of storage slots.

    Everything raises, now or when awaited: HeaderNotFound, HeaderForHashNotFound,
    NotCanonical; Unavailable.
    """

    def __init__(
        self,
        connections: Connections,
        directory: Directory,
        cache: BytesCache[CacheKey],
    ) -> None:
        super().__init__(connections, directory, cache)
        network, slot = ("network_id", INT8), [("address", BYTEA), ("slot", BYTEA)]
        self._storage_by_hash: Lookup[tuple[int, bytes, bytes, bytes], Row] = Lookup(
            connections,
            queries.STORAGE_BY_HASH,
            [network, ("hash", BYTEA), *slot],
            whole_row,
            max_batch=MAX_SLOTS,
            max_queries=_MAX_QUERIES,
        )
        self._storage_by_number: Lookup[tuple[int, int, bytes, bytes], Row] = Lookup(
            connections,
            queries.STORAGE_BY_NUMBER,
            [network, ("number", INT8), *slot],
            whole_row,
            max_queries=_MAX_QUERIES,
        )
        self._canonicity: Lookup[tuple[int, bytes], Row] = Lookup(
            connections, queries.IS_CANONICAL, [network, ("hash", BYTEA)], whole_row
        )

    def storage_at(
        self, network_id: int, address: bytes, slot: int, block: BlockReference
    ) -> Word:
        """Return the value of a slot after a block, zero when it was never written."""
        if block.hash is not None:
            return self._at_hash(
                network_id, block.hash, address, slot, block.require_canonical
            )
        view = self._directory.current(network_id)
        if isinstance(view, NetworkView):
            return self._storage_in(view, address, slot, block)
        return self._storage_later(view, address, slot, block)

    async def storage_values(
        self, network_id: int, slots: Sequence[Slot], block: BlockReference
    ) -> list[bytes]:
        """Return the values of many slots after the same block, as one query."""
        block_hash = block.hash
        if block_hash is None or block.require_canonical or not slots:
            block_hash = (await self._resolve(network_id, block)).block_hash
        keys = [
            ("storage", network_id, block_hash, address, slot)
            for address, slot in slots
        ]
        words = [self._cache.get(key) for key in keys]
        missing = [place for place, word in enumerate(words) if word is None]
        rows = await asyncio.gather(*(self._row(keys[place]) for place in missing))
        for place, row in zip(missing, rows, strict=True):
            words[place] = await settled(self._word(keys[place], False, row))
        return [word for word in words if word is not None]

    def resolve_state(
        self, network_id: int, block: BlockReference
    ) -> Awaitable[StateRef]:
        """Return the state that a block parameter names, or raise what it lacks."""
        return self._resolve(network_id, block)

    async def _resolve(self, network_id: int, block: BlockReference) -> StateRef:
        if block.hash is not None:
            row = await self._canonicity.get((network_id, block.hash))
            if row is None:
                raise HeaderForHashNotFound
            if block.require_canonical and not read_bool(row[0] or b""):
                raise NotCanonical
            return StateRef(network_id, block.hash)
        view = await settled(self._directory.current(network_id))
        block_hash = self._hash_in(view, block)
        if block_hash is None:
            block_hash = await self._read_hash(view, _number(block))
        return StateRef(network_id, block_hash)

    def _hash_in(self, view: NetworkView, block: BlockReference) -> bytes | None:
        """Return the hash of a block by tag or number, None when it must be read."""
        if view.head_hash is None:
            raise HeaderNotFound
        if block.tag is not None and block.tag != "earliest":
            return tagged_hash(view, block.tag)
        return self._remembered_hash(view, _number(block))

    async def _read_hash(self, view: NetworkView, number: int) -> bytes:
        await self._require_reached(view, number)
        row = await self._canonical_hashes.get((view.id, number))
        if row is None or row[0] is None:
            raise HeaderNotFound
        self._remember_hash(view, number, row[0], row[1])
        return row[0]

    async def _require_reached(self, view: NetworkView, number: int) -> None:
        above = view.head_number is None or number > view.head_number
        if above and not await self._reaches(view, number):
            raise HeaderNotFound

    def _storage_in(
        self, view: NetworkView, address: bytes, slot: int, block: BlockReference
    ) -> Word:
        """Return a slot's value in the chain whose head a view names."""
        block_hash = self._hash_in(view, block)
        if block_hash is None:
            return self._at_number(view, _number(block), address, slot)
        return self._at_hash(view.id, block_hash, address, slot, False)

    async def _storage_later(
        self,
        view: Awaitable[NetworkView],
        address: bytes,
        slot: int,
        block: BlockReference,
    ) -> bytes:
        return await settled(self._storage_in(await view, address, slot, block))

    def _at_hash(
        self,
        network_id: int,
        block_hash: bytes,
        address: bytes,
        slot: int,
        require_canonical: bool,
    ) -> Word:
        cache_key = ("storage", network_id, block_hash, address, slot)
        if not require_canonical:  # which depends on the head
            cached = self._cache.get(cache_key)
            if cached is not None:
                return cached
        make = partial(self._word, cache_key, require_canonical)
        return Later(self._row(cache_key), make)

    def _row(self, cache_key: _StorageKey) -> asyncio.Future[Row | None]:
        _, network_id, block_hash, address, slot = cache_key
        return self._storage_by_hash.get(
            (network_id, block_hash, address, slot.to_bytes(32))
        )

    def _word(
        self, cache_key: _StorageKey, require_canonical: bool, row: Row | None
    ) -> Word:
        """Make the answer of what was read, and keep it."""
        if row is None:
            raise HeaderForHashNotFound
        value, is_canonical = row
        if read_bool(is_canonical or b""):
            return self._keep(cache_key, value)
        if require_canonical:
            raise NotCanonical
        return self._word_on_branch(cache_key)

    async def _word_on_branch(self, cache_key: _StorageKey) -> bytes:
        return self._keep(cache_key, await self._on_branch(*cache_key[1:]))

    def _keep(self, cache_key: _StorageKey, value: bytes | None) -> bytes:
        word = (value or b"").rjust(32, b"\0")
        self._cache.put(cache_key, word)
        return word

    def _at_number(
        self, view: NetworkView, number: int, address: bytes, slot: int
    ) -> Awaitable[bytes]:
        if view.head_number is None or number > view.head_number:
            return self._at_new_number(view, number, address, slot)
        return self._at_known_number(view, number, address, slot)

    async def _at_new_number(
        self, view: NetworkView, number: int, address: bytes, slot: int
    ) -> bytes:
        await self._require_reached(view, number)
        return await self._at_known_number(view, number, address, slot)

    def _at_known_number(
        self, view: NetworkView, number: int, address: bytes, slot: int
    ) -> Later[bytes]:
        key = (view.id, number, address, slot.to_bytes(32))
        make = partial(self._numbered_word, view, number, address, slot)
        return Later(self._storage_by_number.get(key), make)

    def _numbered_word(
        self,
        view: NetworkView,
        number: int,
        address: bytes,
        slot: int,
        row: Row | None,
    ) -> bytes:
        """Make the answer of what was read, and keep it and the block's hash."""
        if row is None:
            raise HeaderNotFound
        value, block_hash, head_hash = row
        assert block_hash is not None
        self._remember_hash(view, number, block_hash, head_hash)
        return self._keep(("storage", view.id, block_hash, address, slot), value)

    async def _on_branch(
        self, network_id: int, block_hash: bytes, address: bytes, slot: int
    ) -> bytes | None:
        """Return a slot's value after a side block.

        It is what the newest block of the branch that wrote the slot has left, else
        what stood there where the branch leaves the canonical chain.
        """
        rows = await self._connections.fetch(
            _ON_BRANCH, [int8(network_id), block_hash, address, slot.to_bytes(32)]
        )
        for is_canonical, diff, value in rows:
            if read_bool(is_canonical or b""):
                return value
            if diff is not None:
                written = decode_changes(diff).storage.get(Address(address), {})
                if slot in written:
                    return written[slot].to_bytes(32)
        raise Unavailable("the branch does not lead to the canonical chain")


def _number(block: BlockReference) -> int:
    """Return the number of a reference by number, or of `earliest`."""
    return block.number or 0
