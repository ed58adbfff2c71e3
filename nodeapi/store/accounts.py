"""Reads of accounts and their code after a given block."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from struct import Struct

from eth_typing import Address

from evm.changes import AccountValue, Changes
from evm.headers import EMPTY_TRIE_ROOT
from evm.proved_state import Keys
from evm.world import EMPTY_CODE_HASH
from jsonrpc.later import Later
from networks.directory import NetworkView
from nodeapi.encoding import BlockReference
from nodeapi.proofs.unknown import UnknownAfter, UnknownPast
from nodeapi.store import queries
from nodeapi.store.base import Reads, Sources, existing, whole_row
from nodeapi.store.codes import Codes
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
    depending on the block; and with Unavailable while the database is unavailable. Those
    of a network with a checkpoint fail with UnknownValues as well.
    """

    def __init__(self, sources: Sources) -> None:
        super().__init__(sources)
        self._account_codes = Codes(sources.connections, sources.cache)
        network, address = ("network_id", INT8), ("address", BYTEA)
        self._accounts_by_hash: dict[bool, Lookup[tuple[int, bytes, bytes], Row]] = {
            with_code: Lookup(
                sources.connections,
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
                sources.connections,
                queries.account_by_number(with_code),
                [network, ("number", INT8), address],
                whole_row,
                max_batch=batch,
                max_queries=_MAX_QUERIES,
            )
            for with_code, batch in _MAX_BATCH.items()
        }
        self._sparse_accounts: Lookup[tuple[int, bytes, bytes], Row] = Lookup(
            sources.connections,
            queries.SPARSE_ACCOUNT,
            [network, ("hash", BYTEA), address],
            whole_row,
            max_queries=_MAX_QUERIES,
        )

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
        return self._after(
            network_id,
            block,
            partial(self._account_at_hash, address, with_code),
            partial(self._account_at_number, address, with_code),
        )

    def _account_at_hash(
        self,
        address: bytes,
        with_code: bool,
        network_id: int,
        block_hash: bytes,
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
        _, network_id, block_hash, address = cache_key

        def changed(changes: Changes) -> _Found | None:
            accounts = changes.accounts
            if address not in accounts:
                return None
            return self._keep_packed(
                cache_key, packed_value(accounts[Address(address)])
            )

        return self._in_row(
            row,
            require_canonical,
            partial(self._keep_columns, cache_key),
            partial(self._keep_fork_columns, cache_key),
            changed,
            _ON_BRANCH,
            [int8(network_id), block_hash, address],
        )

    def _account_at_number(
        self, address: bytes, with_code: bool, view: NetworkView, number: int
    ) -> Later[_Found]:
        lookup = self._accounts_by_number[with_code]
        row = Later.from_future(lookup.get((view.id, number, address)))
        return row.then(partial(self._numbered_account, view, number, address))

    def _numbered_account(
        self, view: NetworkView, number: int, address: bytes, row: Row | None
    ) -> Later[_Found]:
        """Return the account in a row, and cache it and the block's hash."""
        *account, block_hash, head_hash = existing(row)
        assert block_hash is not None
        self._cache_hash(view, number, block_hash, head_hash)
        cache_key = ("account", view.id, block_hash, address)
        return self._keep_columns(cache_key, account)

    def _keep_columns(
        self, cache_key: _AccountKey, columns: Sequence[bytes | None]
    ) -> Later[_Found]:
        """Return an account and its code, and cache both.

        columns: nonce, balance, code_hash, storage_root, and code if it was read.
        """
        nonce, balance, code_hash, storage_root, code = columns
        if nonce is None and self._is_sparse(cache_key[1]):
            _, network_id, block_hash, address = cache_key
            key = (network_id, block_hash, address)
            row = Later.from_future(self._sparse_accounts.get(key))
            return row.then(partial(self._keep_if_known, cache_key))
        packed, _ = self._keep_packed(
            cache_key, _packed(nonce, balance, code_hash, storage_root)
        )
        if code is None:
            return Later((packed, None))
        self._cache.put(("code", code_hash), code)
        return Later((packed, code))

    def _keep_if_known(self, cache_key: _AccountKey, row: Row | None) -> _Found:
        """Return the account in a row of `SPARSE_ACCOUNT`, and cache it.

        Raises: UnknownValues; Unavailable after a reorganisation.
        """
        *account, is_known, is_canonical, is_since = row or (None,) * 7
        if row is None or not read_bool(is_canonical or b""):
            raise Unavailable("the chain was reorganised")
        keys = Keys(accounts={Address(cache_key[3])})
        if not read_bool(is_since or b""):
            cached = self._cache.get(cache_key)  # after a read by number
            if cached is None:
                raise UnknownPast(keys, cache_key[2])
            return cached, None
        if is_known is None:
            raise UnknownAfter(keys, cache_key[2])
        return self._keep_packed(cache_key, _packed(*account))

    def _keep_fork_columns(
        self, cache_key: _AccountKey, columns: Sequence[bytes | None]
    ) -> Later[_Found]:
        """Return the account after a side block's fork point, and cache it.

        columns: those of `ACCOUNT_ON_BRANCH` from nonce on. Raises: UnknownValues.
        """
        *account, is_known = columns
        if is_known is None and self._is_sparse(cache_key[1]):
            raise UnknownAfter(Keys(accounts={Address(cache_key[3])}), cache_key[2])
        return Later(self._keep_packed(cache_key, _packed(*account)))

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


def _packed(
    nonce: bytes | None,
    balance: bytes | None,
    code_hash: bytes | None,
    storage_root: bytes | None,
) -> bytes:
    """Pack the columns of an account."""
    if nonce is None or balance is None:
        return _NO_ACCOUNT
    return _PACKED.pack(
        int(nonce),
        int(balance).to_bytes(32),
        code_hash or EMPTY_CODE_HASH,
        storage_root or EMPTY_TRIE_ROOT,
    )


def _unpacked(found: _Found) -> AccountValue | None:
    return unpacked_value(found[0])


def unpacked_value(packed: bytes) -> AccountValue | None:
    """Return the account that `packed_value` has packed."""
    if not packed:
        return None
    nonce, balance, code_hash, storage_root = _PACKED.unpack(packed)
    return AccountValue(nonce, int.from_bytes(balance), code_hash, storage_root)


def packed_value(account: AccountValue | None) -> bytes:
    """Return an account as it is cached under ("account", network id, block hash, address)."""
    if account is None:
        return _NO_ACCOUNT
    nonce, balance, code_hash, storage_root = account
    root = storage_root or EMPTY_TRIE_ROOT
    return _PACKED.pack(nonce, balance.to_bytes(32), code_hash, root)
