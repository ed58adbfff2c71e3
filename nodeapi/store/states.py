"""Reads of storage slots after a given block."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeVar

from eth_typing import Address

from evm.changes import Changes
from evm.headers import EMPTY_TRIE_ROOT
from evm.proved_state import Keys
from jsonrpc.later import Later, all_of, when_all_done
from networks.directory import NetworkView
from nodeapi.encoding import BlockReference
from nodeapi.errors.blocks import (
    HeaderForHashNotFound,
    NotCanonical,
)
from nodeapi.proofs.unknown import UnknownAfter, UnknownPast
from nodeapi.store import queries
from nodeapi.store.base import Reads, Sources, existing, number_of, whole_row
from postgres.lookup import Lookup
from postgres.statement import BYTEA, INT8, Row, Statement, int8, read_bool

T = TypeVar("T")

MAX_SLOTS = 1024
"""Maximum number of slots of `storage_values`: geth's limit for eth_getStorageValues."""

Slot = tuple[bytes, int]
"""An address and the number of a slot."""

_StorageKey = tuple[str, int, bytes, bytes, int]
"""Cache key: "storage", network id, block hash, address, slot."""

_MAX_QUERIES = 1
"""Concurrent queries of each kind. Slots requested during a query are read by the
next query."""

_ON_BRANCH = Statement(
    queries.STORAGE_ON_BRANCH, [INT8.oid, BYTEA.oid, BYTEA.oid, BYTEA.oid]
)


class StateReads(Reads):
    """Reads of storage slots.

    All results fail with HeaderNotFound, HeaderForHashNotFound or NotCanonical,
    depending on the block; and with Unavailable while the database is unavailable. Those
    of a network with a checkpoint fail with UnknownValues as well.
    """

    def __init__(self, sources: Sources) -> None:
        super().__init__(sources)
        network, slot = ("network_id", INT8), [("address", BYTEA), ("slot", BYTEA)]
        self._storage_by_hash: Lookup[tuple[int, bytes, bytes, bytes], Row] = Lookup(
            sources.connections,
            queries.STORAGE_BY_HASH,
            [network, ("hash", BYTEA), *slot],
            whole_row,
            max_batch=MAX_SLOTS,
            max_queries=_MAX_QUERIES,
        )
        self._storage_by_number: Lookup[tuple[int, int, bytes, bytes], Row] = Lookup(
            sources.connections,
            queries.STORAGE_BY_NUMBER,
            [network, ("number", INT8), *slot],
            whole_row,
            max_queries=_MAX_QUERIES,
        )
        self._canonicity: Lookup[tuple[int, bytes], Row] = Lookup(
            sources.connections,
            queries.IS_CANONICAL,
            [network, ("hash", BYTEA)],
            whole_row,
        )
        self._sparse_slots: Lookup[tuple[int, bytes, bytes], Row] = Lookup(
            sources.connections,
            queries.SPARSE_SLOT,
            [network, ("hash", BYTEA), slot[0]],
            whole_row,
            max_queries=_MAX_QUERIES,
        )

    def storage_at(
        self, network_id: int, address: bytes, slot: int, block: BlockReference
    ) -> Later[bytes]:
        """Return the 32 bytes of a slot after a block, zero if never written."""
        return self._after(
            network_id,
            block,
            partial(self._at_hash, address, slot),
            partial(self._at_number, address, slot),
        )

    def storage_values(
        self, network_id: int, slots: Sequence[Slot], block: BlockReference
    ) -> Later[list[bytes]]:
        """Return the values of many slots after one block, with one query.

        If some are unknown, it fails with UnknownValues for all of these.
        """
        return Later.from_coroutine(self._storage_values(network_id, slots, block))

    async def _storage_values(
        self, network_id: int, slots: Sequence[Slot], block: BlockReference
    ) -> list[bytes]:
        block_hash = block.hash
        if block_hash is None or block.require_canonical or not slots:
            block_hash = await self.state_hash(network_id, block)
        keys = [
            ("storage", network_id, block_hash, address, slot)
            for address, slot in slots
        ]
        words = [self._cache.get(key) for key in keys]
        missing = [place for place, word in enumerate(words) if word is None]
        rows = await all_of([self._row(keys[place]) for place in missing])
        found = [
            Later(row).then(partial(self._word, keys[place], False))
            for place, row in zip(missing, rows, strict=True)
        ]
        for place, word in zip(missing, await all_known(found), strict=True):
            words[place] = word
        return [word for word in words if word is not None]

    def state_hash(self, network_id: int, block: BlockReference) -> Later[bytes]:
        """Return the hash of the stored block that a block parameter names."""
        if block.hash is not None:
            found = Later.from_future(self._canonicity.get((network_id, block.hash)))
            return found.then(
                partial(_stored_hash, block.hash, block.require_canonical)
            )
        return self._directory.current(network_id).then(self._hash_at, block)

    def _hash_at(self, view: NetworkView, block: BlockReference) -> Later[bytes]:
        """Return the hash of a block of the chain with a view's head."""
        block_hash = self._known_hash(view, block)
        if block_hash is not None:
            return Later(block_hash)
        return self._hash_in(view, number_of(block)).then(existing)

    def _at_hash(
        self,
        address: bytes,
        slot: int,
        network_id: int,
        block_hash: bytes,
        require_canonical: bool,
    ) -> Later[bytes]:
        cache_key = ("storage", network_id, block_hash, address, slot)
        if not require_canonical:  # which depends on the head
            cached = self._cache.get(cache_key)
            if cached is not None:
                return Later(cached)
        return self._row(cache_key).then(
            partial(self._word, cache_key, require_canonical)
        )

    def _row(self, cache_key: _StorageKey) -> Later[Row | None]:
        _, network_id, block_hash, address, slot = cache_key
        key = (network_id, block_hash, address, slot.to_bytes(32))
        return Later.from_future(self._storage_by_hash.get(key))

    def _word(
        self, cache_key: _StorageKey, require_canonical: bool, row: Row | None
    ) -> Later[bytes]:
        """Return the slot's value in a row, and cache it."""
        _, network_id, block_hash, address, slot = cache_key

        def changed(changes: Changes) -> bytes | None:
            written = changes.storage.get(Address(address), {})
            if slot not in written:
                return None
            return self._keep_word(cache_key, written[slot].to_bytes(32))

        def read(columns: Sequence[bytes | None]) -> Later[bytes]:
            return self._keep(cache_key, columns[0])

        return self._in_row(
            row,
            require_canonical,
            read,
            read,
            changed,
            _ON_BRANCH,
            [int8(network_id), block_hash, address, slot.to_bytes(32)],
        )

    def _keep(self, cache_key: _StorageKey, value: bytes | None) -> Later[bytes]:
        """Return the slot's value, and cache it. value: None without a row."""
        if value is None and self._is_sparse(cache_key[1]):
            _, network_id, block_hash, address, _ = cache_key
            key = (network_id, block_hash, address)
            row = Later.from_future(self._sparse_slots.get(key))
            return row.then(partial(self._keep_if_zero, cache_key))
        word = (value or b"").rjust(32, b"\0")
        self._cache.put(cache_key, word)
        return Later(word)

    def _keep_word(self, cache_key: _StorageKey, word: bytes) -> bytes:
        self._cache.put(cache_key, word)
        return word

    def _keep_if_zero(self, cache_key: _StorageKey, row: Row | None) -> bytes:
        """Return the value of a slot that had no row. row: one of `SPARSE_SLOT`.

        An account without storage at the checkpoint has a row for each slot that was
        written since. The slot's row and this one need not be of one snapshot.

        Raises: UnknownValues.
        """
        _, _, block_hash, address, slot = cache_key
        is_known, storage_root, is_since = existing(row)
        key = Address(address)
        if not read_bool(is_since or b""):
            cached = self._cache.get(cache_key)  # after a read by number
            if cached is None:
                raise UnknownPast(Keys(slots={(key, slot)}), block_hash)
            return cached
        if is_known is None:
            raise UnknownAfter(Keys({key}, {(key, slot)}), block_hash)
        if storage_root not in (None, EMPTY_TRIE_ROOT):
            raise UnknownAfter(Keys(slots={(key, slot)}), block_hash)
        return self._keep_word(cache_key, bytes(32))

    def _at_number(
        self, address: bytes, slot: int, view: NetworkView, number: int
    ) -> Later[bytes]:
        key = (view.id, number, address, slot.to_bytes(32))
        found = Later.from_future(self._storage_by_number.get(key))
        return found.then(partial(self._numbered_word, view, number, address, slot))

    def _numbered_word(
        self,
        view: NetworkView,
        number: int,
        address: bytes,
        slot: int,
        row: Row | None,
    ) -> Later[bytes]:
        """Return the slot's value in a row, and cache it and the block's hash."""
        value, block_hash, head_hash = existing(row)
        assert block_hash is not None
        self._cache_hash(view, number, block_hash, head_hash)
        return self._keep(("storage", view.id, block_hash, address, slot), value)


def all_known(laters: Sequence[Later[T]]) -> Later[list[T]]:
    """Return the values of several reads, in order, like `all_of`.

    All are of one state. It fails with UnknownAfter or UnknownPast for all unknown values
    together, if there are any.
    """

    def read(_: None) -> list[T]:
        errors = [
            later.error
            for later in laters
            if isinstance(later.error, UnknownAfter | UnknownPast)
        ]
        if errors:
            unknown = Keys()
            for error in errors:
                unknown.update(error.keys)
            raise type(errors[0])(unknown, errors[0].block_hash)
        return [later.result() for later in laters]

    return when_all_done(laters).then(read)


def _stored_hash(block_hash: bytes, require_canonical: bool, row: Row | None) -> bytes:
    """Return a block's hash, if the block is stored and canonical as required.

    row: a row of `IS_CANONICAL`, or None if the block is not stored.
    """
    if row is None:
        raise HeaderForHashNotFound
    if require_canonical and not read_bool(row[0] or b""):
        raise NotCanonical
    return block_hash
