"""Reads of accounts and their code after a given block."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from struct import Struct

from eth_typing import Address

from evm.changes import AccountValue, decode_changes
from evm.headers import EMPTY_TRIE_ROOT
from evm.world import EMPTY_CODE_HASH
from jsonrpc.later import Later
from networks.directory import Directory, NetworkView
from nodeapi.encoding import BlockReference
from nodeapi.errors.blocks import HeaderForHashNotFound, NotCanonical
from nodeapi.store import queries
from nodeapi.store.base import CacheKey, Reads, existing, number_of, whole_row
from nodeapi.store.codes import Codes
from postgres.cache import BytesCache
from postgres.connections import Connections
from postgres.errors import Unavailable
from postgres.lookup import Lookup
from postgres.statement import BYTEA, INT8, Row, Statement, int8, read_bool

_MAX_BATCH = {False: 256, True: 64}
"""Accounts read by one query, without and with code."""

_MAX_QUERIES = 1
"""Concurrent queries of each kind. Accounts requested during a query are read by the
next query."""

_PACKED = Struct("!Q32s32s32s")
"""Nonce, balance, code hash and storage root, as they are cached."""

_NO_ACCOUNT = b""

_Found = tuple[bytes, bytes | None]
"""An account as it is cached, and its code if the same query has read it."""

_AccountKey = tuple[str, int, bytes, bytes]
"""Cache key: "account", network id, block hash, address."""

_ON_BRANCH = Statement(queries.ACCOUNT_ON_BRANCH, [INT8.oid, BYTEA.oid, BYTEA.oid])


class AccountReads(Reads):
    """Reads of accounts and their code.

    All results fail with HeaderNotFound, HeaderForHashNotFound or NotCanonical,
    depending on the block; and with Unavailable while the database is unavailable.
    """

    def __init__(
        self,
        connections: Connections,
        directory: Directory,
        cache: BytesCache[CacheKey],
    ) -> None:
        super().__init__(connections, directory, cache)
        self._account_codes = Codes(connections, cache)
        network, address = ("network_id", INT8), ("address", BYTEA)
        self._accounts_by_hash: dict[bool, Lookup[tuple[int, bytes, bytes], Row]] = {
            with_code: Lookup(
                connections,
                queries.account_by_hash(with_code),
                [network, ("hash", BYTEA), address],
                whole_row,
                max_batch=batch,
                max_queries=_MAX_QUERIES,
            )
            for with_code, batch in _MAX_BATCH.items()
        }
        self._accounts_by_number: dict[bool, Lookup[tuple[int, int, bytes], Row]] = {
            with_code: Lookup(
                connections,
                queries.account_by_number(with_code),
                [network, ("number", INT8), address],
                whole_row,
                max_batch=batch,
                max_queries=_MAX_QUERIES,
            )
            for with_code, batch in _MAX_BATCH.items()
        }

    def account(
        self, network_id: int, address: bytes, block: BlockReference
    ) -> Later[AccountValue | None]:
        """Return an account after a block, or None if it does not exist.

        Without storage, the storage root is the root of the empty trie.
        """
        return self._account(network_id, address, block, False).then(_unpacked)

    def code(
        self, network_id: int, address: bytes, block: BlockReference
    ) -> Later[bytes]:
        """Return the code of an account after a block, empty if it has none."""
        return self._account(network_id, address, block, True).then(self._code)

    def _account(
        self, network_id: int, address: bytes, block: BlockReference, with_code: bool
    ) -> Later[_Found]:
        """Return an account. with_code: whether to read the code in the same query."""
        if block.hash is not None:
            return self._account_at_hash(
                network_id, block.hash, address, with_code, block.require_canonical
            )
        current = self._directory.current(network_id)
        return current.then(self._account_in, address, block, with_code)

    def _account_in(
        self, view: NetworkView, address: bytes, block: BlockReference, with_code: bool
    ) -> Later[_Found]:
        """Return an account in the chain with a view's head."""
        block_hash = self._known_hash(view, block)
        if block_hash is not None:
            return self._account_at_hash(view.id, block_hash, address, with_code, False)
        number = number_of(block)
        read = partial(self._account_at_number, view, number, address, with_code)
        return self._if_reached(view, number, read).then(existing)

    def _account_at_hash(
        self,
        network_id: int,
        block_hash: bytes,
        address: bytes,
        with_code: bool,
        require_canonical: bool,
    ) -> Later[_Found]:
        cache_key = ("account", network_id, block_hash, address)
        if not require_canonical:  # which depends on the head
            cached = self._cache.get(cache_key)
            if cached is not None:
                return Later((cached, None))
        lookup = self._accounts_by_hash[with_code]
        row = Later.from_future(lookup.get((network_id, block_hash, address)))
        return row.then(partial(self._account_found, cache_key, require_canonical))

    def _account_found(
        self, cache_key: _AccountKey, require_canonical: bool, row: Row | None
    ) -> Later[_Found]:
        """Return the account in a row, and cache it."""
        if row is None:
            raise HeaderForHashNotFound
        *account, is_canonical = row
        if read_bool(is_canonical or b""):
            return Later(self._keep_account(cache_key, account))
        if require_canonical:
            raise NotCanonical
        _, network_id, block_hash, address = cache_key
        rows = self._connections.fetch(
            _ON_BRANCH, [int8(network_id), block_hash, address]
        )
        return Later.from_future(rows).then(
            lambda found: self._keep_packed(cache_key, _on_branch(found, address))
        )

    def _account_at_number(
        self, view: NetworkView, number: int, address: bytes, with_code: bool
    ) -> Later[_Found]:
        lookup = self._accounts_by_number[with_code]
        row = Later.from_future(lookup.get((view.id, number, address)))
        return row.then(partial(self._numbered_account, view, number, address))

    def _numbered_account(
        self, view: NetworkView, number: int, address: bytes, row: Row | None
    ) -> _Found:
        """Return the account in a row, and cache it and the block's hash."""
        *account, block_hash, head_hash = existing(row)
        assert block_hash is not None
        self._cache_hash(view, number, block_hash, head_hash)
        return self._keep_account(("account", view.id, block_hash, address), account)

    def _keep_account(
        self, cache_key: _AccountKey, account: Sequence[bytes | None]
    ) -> _Found:
        """Return an account and its code, and cache both.

        account: the columns nonce, balance, code_hash, storage_root and code.
        """
        *fields, code = account
        packed, _ = self._keep_packed(cache_key, _packed(fields))
        if code is not None:
            self._cache.put(("code", fields[2]), code)
        return packed, code

    def _keep_packed(self, cache_key: _AccountKey, packed: bytes) -> _Found:
        self._cache.put(cache_key, packed)
        return packed, None

    def _code(self, found: _Found) -> Later[bytes]:
        """Return an account's code, which is read unless the account's query did."""
        if found[1] is not None:
            return Later(found[1])
        account = _unpacked(found)
        if account is None or account.code_hash == EMPTY_CODE_HASH:
            return Later(b"")
        return self._account_codes.get(account.code_hash)


def _packed(columns: Sequence[bytes | None]) -> bytes:
    """Pack an account. columns: nonce, balance, code_hash and storage_root."""
    nonce, balance, code_hash, storage_root = columns
    if nonce is None or balance is None:
        return _NO_ACCOUNT
    return _PACKED.pack(
        int(nonce),
        int(balance).to_bytes(32),
        code_hash or EMPTY_CODE_HASH,
        storage_root or EMPTY_TRIE_ROOT,
    )


def _unpacked(found: _Found) -> AccountValue | None:
    if not found[0]:
        return None
    nonce, balance, code_hash, storage_root = _PACKED.unpack(found[0])
    return AccountValue(nonce, int.from_bytes(balance), code_hash, storage_root)


def _on_branch(rows: list[Row], address: bytes) -> bytes:
    """Return an account after a side block, packed.

    rows: the blocks from the side block down to the canonical chain, the newest first.
    The newest block of the branch that changed the account has its value. Without such
    a block it is the account where the branch leaves the canonical chain.
    """
    for is_canonical, diff, *columns in rows:
        if read_bool(is_canonical or b""):
            return _packed(columns)
        if diff is not None:
            changed = decode_changes(diff).accounts
            if address in changed:
                return _packed_value(changed[Address(address)])
    raise Unavailable("the branch does not lead to the canonical chain")


def _packed_value(account: AccountValue | None) -> bytes:
    if account is None:
        return _NO_ACCOUNT
    nonce, balance, code_hash, storage_root = account
    root = storage_root or EMPTY_TRIE_ROOT
    return _PACKED.pack(nonce, balance.to_bytes(32), code_hash, root)
