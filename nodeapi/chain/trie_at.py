"""The tries at the state after any stored block, computed from the newest tries.

Most networks store only the nodes of the head's state. The tries at an older block result
from writing the older values of all accounts that have changed since then. An account
version contains the storage root, so that a storage trie is rewound only when it is used.
If the network keeps former versions of nodes, these are read instead.

The result is verified: the state trie has the state root of the block's header, and each
storage trie has its account's storage root.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, LiteralString

from eth_typing import Address, Hash32

from evm.changes import AccountValue, Changes
from evm.signatures import keccak
from evm.state_trie import STATE_OWNER, StateTrie, address_key, slot_key, slot_leaf
from evm.trie import EMPTY_ROOT, NodeCache, PathTrie
from evm.trie_nodes import EMPTY
from nodeapi.chain.branch import StateMismatch
from nodeapi.chain.branches import Branches, StoredBlock
from nodeapi.chain.node_versions import NodesAt
from nodeapi.chain.state_reader import (
    CachedState,
    OverlayState,
    StoredNodes,
    StoredState,
    account_value,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import psycopg

    from evm.trie import NodeReader

MAX_CHANGES = 200_000
"""Default maximum number of account versions after a block, or of slot versions of one
account, from which its tries are computed. Each takes some 50 microseconds."""

NODES_CACHED = 100_000
"""Default size of a node cache, 30 to 65 MB."""

_Rows = dict[bytes, bytes | None]
"""Path → RLP of a node, or None for an absent node."""

_ACCOUNTS_SINCE: LiteralString = (
    "WITH later AS MATERIALIZED ("
    "SELECT address, block_number, nonce, balance, code_hash, storage_root"
    " FROM nodeapi_accountversion WHERE network_id = %(network)b"
    " AND block_number > %(number)b LIMIT %(limit)b"
    "), newest AS ("
    "SELECT DISTINCT ON (address) * FROM later ORDER BY address, block_number DESC"
    ") SELECT (SELECT count(*) FROM later), newest.address, newest.nonce,"
    " newest.balance, newest.code_hash, newest.storage_root, earlier.*"
    " FROM newest LEFT JOIN LATERAL ("
    "SELECT nonce, balance, code_hash, storage_root"
    " FROM nodeapi_accountversion AS version WHERE network_id = %(network)b"
    " AND version.address = newest.address AND block_number <= %(number)b"
    " ORDER BY block_number DESC LIMIT 1) AS earlier ON true"
)
_SLOTS_SINCE: LiteralString = (
    "WITH later AS MATERIALIZED ("
    "SELECT slot, block_number, value FROM nodeapi_storageversion"
    " WHERE network_id = %(network)b AND address = %(address)b"
    " AND block_number > %(number)b LIMIT %(limit)b"
    "), newest AS ("
    "SELECT DISTINCT ON (slot) * FROM later ORDER BY slot, block_number DESC"
    ") SELECT newest.slot, newest.value, earlier.value, (SELECT count(*) FROM later)"
    " FROM newest LEFT JOIN LATERAL ("
    "SELECT value FROM nodeapi_storageversion AS version"
    " WHERE network_id = %(network)b AND address = %(address)b"
    " AND version.slot = newest.slot AND block_number <= %(number)b"
    " ORDER BY block_number DESC LIMIT 1) AS earlier ON true"
)


class TooManyChanges(Exception):
    """Raised when a block's tries would result from undoing too many changes."""


class TriesAt(StateTrie):
    """The state trie and the storage tries at the state after one block."""

    def __init__(
        self,
        rewinding: Rewinding,
        reader: NodeReader,
        cache: NodeCache,
        root: Hash32,
        state: CachedState,
    ) -> None:
        super().__init__(reader, cache, root, state)
        self._rewinding = rewinding

    def open_storage(self, address: Address) -> PathTrie:
        """Return an account's storage trie after the block.

        Raises: TooManyChanges, StateMismatch.
        """
        self._rewinding.rewind_storage(address)
        return super().open_storage(address)


class _Base:
    """A canonical block whose nodes are stored: the head, or a block with versions."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        network_id: int,
        head: StoredBlock,
        fork_number: int,
    ) -> None:
        """Choose the nearest block. fork_number: the newest canonical ancestor."""
        self.number = fork_number
        self.nodes: NodeReader = NodesAt(connection, network_id, fork_number)
        row = connection.execute(
            "SELECT state_root FROM nodeapi_block"
            " WHERE network_id = %b AND number = %b AND is_canonical",
            (network_id, fork_number),
            binary=True,
        ).fetchone()
        self.root: Hash32 = row[0] if row else head.header.state_root
        if fork_number == head.header.number or not self._has_root():
            self.number = head.header.number
            self.nodes = StoredNodes(connection, network_id)
            self.root = head.header.state_root
        self.state = StoredState(connection, network_id, self.number)

    def _has_root(self) -> bool:
        node = self.nodes.nodes(STATE_OWNER, [b""]).get(b"", EMPTY)
        return keccak(node) == self.root


class Rewinding:
    """The trie nodes after a block: recomputed nodes, and otherwise the stored ones."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        network_id: int,
        head: StoredBlock,
        block: StoredBlock,
        *,
        cache: NodeCache,
        max_changes: int,
    ) -> None:
        """Compute the nodes of the state trie.

        Raises: TooManyChanges, StateMismatch.
        """
        self._connection = connection
        self._network_id = network_id
        self._block = block
        self._cache = cache
        self._max_changes = max_changes
        branches = Branches(connection, network_id)
        self._fork_number, line = branches.side_line(block)
        self._since_fork = Changes()
        for side in line:
            self._since_fork.apply(branches.side_changes(side))
        self._base = _Base(connection, network_id, head, self._fork_number)
        self._is_base = self._fork_number == self._base.number and not line
        fork_state = StoredState(connection, network_id, self._fork_number)
        self.state: StoredState | OverlayState = fork_state
        """The state after the block."""
        if line:
            self.state = OverlayState(fork_state, self._since_fork)
        self._rows: dict[bytes, _Rows] = {}
        """Owner → the nodes that differ from the stored ones."""
        if not self._is_base:
            self._rewind_accounts()

    def nodes(
        self, owner: bytes, paths: Collection[bytes], likely: Collection[bytes] = ()
    ) -> Mapping[bytes, bytes]:
        """Return the nodes of one trie at these paths. Absent nodes are omitted."""
        rows = self._rows.get(owner)
        if not rows:
            return self._base.nodes.nodes(owner, paths, likely)
        stored = self._base.nodes.nodes(
            owner,
            [path for path in paths if path not in rows],
            [path for path in likely if path not in rows],
        )
        wanted = {*paths, *likely}
        return {
            **stored,
            **{path: node for path in wanted if (node := rows.get(path)) is not None},
        }

    def has(self, owner: bytes) -> bool:
        """Return whether the nodes of a trie are those after the block already."""
        return self._is_base or owner in self._rows

    @property
    def size(self) -> int:
        """The number of nodes in memory."""
        return sum(map(len, self._rows.values()))

    def open(
        self, reader: NodeReader | None = None, cache: NodeCache | None = None
    ) -> TriesAt:
        """Return the tries after the block. They can be changed independently.

        reader: reads these nodes, by default directly. cache: by default the shared one.
        """
        return TriesAt(
            self,
            self if reader is None else reader,
            self._cache if cache is None else cache,
            self._block.header.state_root,
            CachedState(self.state),
        )

    def rewind_storage(self, address: Address) -> None:
        """Compute the nodes of an account's storage trie, unless this was done before."""
        owner = address_key(address)
        if self._is_base or owner in self._rows:
            return
        before, after = self._slots_since(address)
        for slot, value in self._since_fork.storage.get(address, {}).items():
            if slot not in before:
                before[slot] = self._base.state.storage(address, slot)
            after[slot] = value
        changed = {slot for slot, value in after.items() if value != before[slot]}
        account, newest = self.state.account(address), self._base.state.account(address)
        root = None if newest is None else newest.storage_root
        trie = PathTrie(owner, self._base.nodes, root, self._cache)
        by_key = {slot_key(slot): slot for slot in changed}
        trie.update(
            {key: slot_leaf(after[slot]) for key, slot in by_key.items()},
            lambda key: slot_leaf(before[by_key[key]]),
        )
        expected = EMPTY_ROOT if account is None else account.storage_root or EMPTY_ROOT
        if trie.root_hash() != expected:
            raise StateMismatch(
                f"the rows of 0x{address.hex()} do not give its storage root after "
                f"block 0x{self._block.header.hash.hex()}"
            )
        self._rows[owner] = dict(trie.dirty_nodes())

    def _rewind_accounts(self) -> None:
        before, after = self._accounts_since()
        for address, account in self._since_fork.accounts.items():
            if address not in before:
                before[address] = self._base.state.account(address)
            after[address] = account
        changed = {
            address: account
            for address, account in after.items()
            if account != before[address]
        }
        base = self._base
        trie = StateTrie(base.nodes, self._cache, base.root, base.state)
        if trie.set_accounts(changed, before.get) != self._block.header.state_root:
            raise StateMismatch(
                "the rows do not give the state of block "
                f"0x{self._block.header.hash.hex()}"
            )
        for owner, rows in trie.dirty_nodes().items():
            self._rows[owner] = dict(rows)

    def _accounts_since(
        self,
    ) -> tuple[dict[Address, AccountValue | None], dict[Address, AccountValue | None]]:
        """Return the base's and the fork point's values of all changed accounts."""
        if self._fork_number == self._base.number:
            return {}, {}
        before, after = {}, {}
        for count, address, *columns in self._connection.execute(
            _ACCOUNTS_SINCE,
            {
                "network": self._network_id,
                "number": self._fork_number,
                "limit": self._max_changes + 1,
            },
            binary=True,
            prepare=True,
        ):
            if count > self._max_changes:
                raise TooManyChanges
            before[Address(address)] = account_value(columns[:4])
            after[Address(address)] = account_value(columns[4:])
        return before, after

    def _slots_since(self, address: Address) -> tuple[dict[int, int], dict[int, int]]:
        """Return the base's and the fork point's values of an account's changed slots."""
        if self._fork_number == self._base.number:
            return {}, {}
        before, after = {}, {}
        for slot, newest, earlier, count in self._connection.execute(
            _SLOTS_SINCE,
            {
                "network": self._network_id,
                "address": address,
                "number": self._fork_number,
                "limit": self._max_changes + 1,
            },
            binary=True,
            prepare=True,
        ):
            if count > self._max_changes:
                raise TooManyChanges
            before[int.from_bytes(slot, "big")] = int.from_bytes(newest, "big")
            after[int.from_bytes(slot, "big")] = int.from_bytes(earlier or b"", "big")
        return before, after


def trie_at(
    connection: psycopg.Connection[Any],
    network_id: int,
    block_hash: bytes,
    *,
    cache: NodeCache | None = None,
    max_changes: int = MAX_CHANGES,
) -> TriesAt:
    """Return the tries at the state after a stored block, canonical or not.

    The connection should have a consistent snapshot (REPEATABLE READ), because a
    concurrent import would change the nodes.

    cache: for nodes, shared by any blocks of any networks.
    max_changes: maximum number of account versions since the block.

    Raises: LookupError if the block is not stored; TooManyChanges; StateMismatch if the
        database is damaged.
    """
    return rewind(
        connection, network_id, block_hash, cache=cache, max_changes=max_changes
    ).open()


def rewind(
    connection: psycopg.Connection[Any],
    network_id: int,
    block_hash: bytes,
    *,
    cache: NodeCache | None = None,
    max_changes: int = MAX_CHANGES,
) -> Rewinding:
    """Return the trie nodes after a stored block, like `trie_at`."""
    branches = Branches(connection, network_id)
    block = branches.find(block_hash)
    if block is None:
        raise LookupError(f"block 0x{block_hash.hex()} is not stored")
    return Rewinding(
        connection,
        network_id,
        branches.head(),
        block,
        cache=NodeCache(NODES_CACHED) if cache is None else cache,
        max_changes=max_changes,
    )
