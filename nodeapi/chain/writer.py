"""Writes the canonical chain: executes and verifies blocks, and commits them with the head."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from eth_typing import Hash32

from evm.blocks import Block, decode_block
from evm.changes import Changes, encode_changes
from evm.errors import InvalidBlock
from evm.header_rules import UNCLE_DEPTH
from evm.state_trie import StateTrie
from evm.tracers.record import RECORD_LIMIT_BYTES
from evm.trie import NodeCache
from nodeapi.chain.appearances import AppearanceRows
from nodeapi.chain.branch import Branch
from nodeapi.chain.branches import Branches, SideBlock, StoredBlock
from nodeapi.chain.errors import detached
from nodeapi.chain.forkchoice import Forkchoice, Tags, set_forkchoice
from nodeapi.chain.lookahead import Lookahead
from nodeapi.chain.node_versions import CLOSED, NodeVersions, Window, steps_of
from nodeapi.chain.position import ANCESTORS_KEPT, Position, generation
from nodeapi.chain.rows import BlockRow, Rows, block_row
from nodeapi.chain.sparse import SparseNodes, SparseState, SparseTrie
from nodeapi.chain.state_reader import (
    CachedState,
    OverlayState,
    StoredNodes,
    StoredState,
)
from nodeapi.chain.verification import checked_fork, verify_block
from nodeapi.proofs.values import NoProof

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

    from evm.chain_config import ChainConfig
    from evm.headers import Header
    from evm.state_trie import DirtyNodes
    from nodeapi.chain.database import Pipeline
    from nodeapi.chain.sparse import Prover
    from nodeapi.chain.verification import Parent, Verified

NODES_CACHED = 400_000
"""Cached trie nodes (120 to 260 MB): twice the branch nodes of a trie of 480,000 keys.
"""


@dataclass(slots=True)
class Batch:
    """Verified canonical blocks that are committed in one transaction."""

    raw: list[bytes] = field(default_factory=list)
    rows: list[BlockRow] = field(default_factory=list)
    versions: list[tuple[int, Changes]] = field(default_factory=list)
    changes: Changes = field(default_factory=Changes)
    nodes: DirtyNodes = field(default_factory=dict)
    """Modified trie nodes. If no versions are kept, they are set when the batch is
    complete."""
    window: Window = CLOSED
    """The blocks whose former trie nodes are kept."""
    node_versions: list[tuple[int, DirtyNodes]] = field(default_factory=list)
    """Block number and nodes that the block has changed, if versions are kept."""
    gas_used: int = 0
    forkchoice: Forkchoice | None = None
    """Forkchoice to be stored with the last block, which is its head."""

    def add_nodes(self, number: int, nodes: DirtyNodes) -> None:
        """Add the nodes that a block has changed."""
        self.node_versions.append((number, nodes))
        for owner, rows in nodes.items():
            self.nodes[owner] = {**self.nodes.get(owner, {}), **rows}


class ChainWriter:
    """Extends a network's canonical chain, stores side blocks, and moves to their branches.

    `nodeapi.chain.importers` decides which of these a block needs. Only one writer may run
    (see `import_lock`).
    """

    _head: Position
    _batch: Batch
    """The batch that is being collected."""
    _leaving: Batch
    """The batch that is being committed, otherwise empty."""
    _stored_state: StoredState
    _stored_nodes: StoredNodes
    _state: CachedState
    _nodes_cached: NodeCache
    _trie: StateTrie
    _branch: Branch | None
    """The branch to which the last side block was added. None after the head changed."""
    _highest_side_block: int
    """Highest number of a side block. Side blocks above it don't exist."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        network_id: int,
        config: ChainConfig,
        *,
        batch_blocks: int = 1,
        batch_gas: int = 200_000_000,
        writer: psycopg.Connection[Any] | None = None,
        pipeline: Pipeline | None = None,
        record_limit_bytes: int | None = RECORD_LIMIT_BYTES,
        prover: Prover | None = None,
    ) -> None:
        """Start at the network's head. Block 0 has to be stored.

        batch_blocks, batch_gas: a batch is committed when it reaches one of these
            sizes.
        writer: a second connection, which commits a batch while the next one is
            executed.
        pipeline: reads a block's data while the block before it is executed.
        record_limit_bytes: see `verify_block`.
        prover: proves unknown values of a sparse state. Each block is then committed
            before the next one is executed, because proofs are those of the stored head.
        """
        self._connection = connection
        self._writer = writer
        self._pipeline = pipeline
        self._thread = ThreadPoolExecutor(1, "commit")
        self._commit_under_way: Future[None] | None = None
        self._network_id = network_id
        self._config = config
        self._verify = partial(
            verify_block, config=config, record_limit_bytes=record_limit_bytes
        )
        self._prover = prover
        self._batch_blocks = batch_blocks
        self._batch_gas = batch_gas
        self._rows = Rows(connection, network_id)
        self._node_versions = NodeVersions(connection, network_id)
        self._branches = Branches(connection, network_id)
        self._lookahead = Lookahead()
        self._open()

    @property
    def head(self) -> Block:
        """The newest canonical block, committed or pending."""
        return self._head.block

    def is_known(self, block_hash: Hash32) -> bool:
        """Return whether a block is stored, canonical or not, or pending."""
        return (
            any(row.hash == block_hash for row in self._batch.rows)
            or any(row.hash == block_hash for row in self._leaving.rows)
            or self._branches.find(block_hash) is not None
        )

    def commit(self) -> None:
        """Commit the pending blocks. Each batch is one transaction with its head."""
        self._begin_commit()
        self._end_commit()

    def close(self) -> None:
        """Wait for the running commit. Pending blocks are discarded."""
        self._thread.shutdown()

    def _begin_commit(self) -> None:
        """Commit the batch, in the background if there is a second connection."""
        self._end_commit()
        batch = self._batch
        if not batch.rows:
            return
        self._branch = None
        if not batch.window.is_open:
            batch.nodes = self._trie.dirty_nodes()
            self._trie.mark_clean()
        self._stored_nodes.pending = batch.nodes
        self._leaving = batch
        self._begin_batch()
        self._commit_under_way = self._thread.submit(self._write, batch)
        if self._writer is None:
            self._end_commit()

    def _end_commit(self) -> None:
        """Wait until the running commit has completed."""
        if self._commit_under_way is None:
            return
        under_way, self._commit_under_way = self._commit_under_way, None
        under_way.result()
        last = self._leaving.rows[-1]
        self._leaving = Batch()
        self._stored_nodes.pending = {}
        self._stored_state = self._state_at(last.number)
        self._state.absorb(Changes(), self._below())

    def _write(self, batch: Batch) -> None:
        """Commit a batch. Runs in its own thread."""
        connection = self._writer or self._connection
        rows, last = Rows(connection, self._network_id), batch.rows[-1]
        with rows.transaction():
            rows.insert_blocks(batch.rows)
            rows.insert_logs(batch.rows)
            rows.insert_versions(batch.versions)
            rows.insert_codes(batch.changes.codes)
            NodeVersions(connection, self._network_id).write(
                batch.window, batch.node_versions, last.number
            )
            AppearanceRows(connection, self._network_id).insert(batch.rows)
            rows.replace_nodes(batch.nodes)
            rows.set_head(last.number, last.hash, before=batch.rows[0].parent_hash)
            if batch.forkchoice is not None:
                set_forkchoice(connection, self._network_id, batch.forkchoice)

    def _below(self) -> OverlayState:
        """Return the state at the head: stored rows and the changes of both batches."""
        leaving = OverlayState(self._stored_state, self._leaving.changes)
        return OverlayState(leaving, self._batch.changes)

    # The head and its state

    def _open(self) -> None:
        """Discard all pending blocks, and restart from the stored head."""
        head = self._branches.head()
        self._head = self._position(head)
        self._branch = None
        self._highest_side_block = self._branches.highest_side_block()
        self._leaving = Batch()
        self._stored_state = self._state_at(head.header.number)
        self._stored_nodes = self._open_nodes()
        self._begin_batch()
        self._state = CachedState(self._stored_state, self._pipeline)
        self._lookahead.forget()
        self._nodes_cached = NodeCache(NODES_CACHED, self._stored_nodes.nodes_below)
        self._trie = self._tries(self._state)

    def _begin_batch(self) -> None:
        self._batch = Batch(window=self._node_versions.window())
        self._stored_nodes.collected = self._batch.nodes

    def _open_nodes(self) -> StoredNodes:
        if self._prover is None:
            return StoredNodes(self._connection, self._network_id)
        return SparseNodes(self._connection, self._network_id, self._prover)

    def _tries(self, state: CachedState) -> StateTrie:
        """Return new tries at the head's state. All share the cached nodes."""
        root = self.head.header.state_root
        if isinstance(self._stored_nodes, SparseNodes):
            return SparseTrie(self._stored_nodes, self._nodes_cached, root, state)
        return StateTrie(self._stored_nodes, self._nodes_cached, root, state)

    def _position(self, block: StoredBlock) -> Position:
        line = [b.block() for b in self._branches.ancestors(block, UNCLE_DEPTH + 1)]
        return Position(
            line[0],
            block.total_difficulty,
            tuple(self._branches.ancestor_hashes(block, ANCESTORS_KEPT)),
            tuple(map(generation, line)),
        )

    def _state_at(self, number: int) -> StoredState:
        if self._prover is None:
            return StoredState(self._connection, self._network_id, number)
        return SparseState(self._connection, self._network_id, number, self._prover)

    def _aim(self, target: Header, fork_number: int | None) -> None:
        """Tell the prover to which block the state is moved, and where its branch begins.

        fork_number: None for a block on top of the head.
        """
        if self._prover is not None:
            self._prover.target, self._prover.fork_number = target, fork_number

    def _provide(self, block: Block, parent: Parent, state: CachedState) -> None:
        """Load the data that a block will probably read.

        Raises: InvalidBlock, before upstreams are asked, if a header breaks a rule: its
            gas limits how much they may name.
        """
        if self._prover is None or not isinstance(self._stored_state, SparseState):
            self._lookahead.provide(block, state)
            return
        checked_fork(block.header, parent, self._config)
        expected = self._prover.expect(block)
        if expected is None:
            expected = self._lookahead.guess(block)
        with suppress(NoProof):  # what the block does read is asked for again
            self._stored_state.require(expected)

    def _tags(self) -> Tags:
        return Tags.stored(self._connection, self._network_id)

    def _set_tags(self, forkchoice: Forkchoice) -> None:
        """Store the safe and finalized blocks of the head, unless they are the same."""
        tags = self._tags()
        if (tags.safe, tags.finalized) == (forkchoice.safe, forkchoice.finalized):
            return
        with self._rows.transaction():
            set_forkchoice(self._connection, self._network_id, forkchoice)
            self._rows.announce()

    def _keep_what_was_before(self) -> None:
        """Commit the pending blocks before an invalid block.

        The invalid block has modified the trie. So the pending blocks, at most one
        batch, are executed again from the last commit.
        """
        self._end_commit()
        # A prefetch in flight would leave its transaction open.
        self._state.absorb(Changes(), self._below())
        pending = self._batch.raw
        self._open()
        for raw in pending:
            self._execute(decode_block(raw), raw)
        self.commit()

    # A block on top of the head

    def _extends(self, header: Header) -> bool:
        """Return whether a block's parent is the head, and the block is not stored yet."""
        return header.parent_hash == self.head.header.hash and (
            header.number > self._highest_side_block
            or self._branches.find(header.hash) is None
        )

    def _extend(
        self,
        block: Block,
        raw: bytes,
        following: bytes | None,
        forkchoice: Forkchoice | None = None,
    ) -> None:
        """Add a block on top of the head, and begin a commit if the batch is complete.

        following: the RLP of the next block, if known.
        forkchoice: is committed with the block at once.

        Raises: InvalidBlock or NoProof, after committing the preceding blocks.
        """
        try:
            self._execute(block, raw, following)
        except (InvalidBlock, NoProof):
            self._keep_what_was_before()
            raise
        batch = self._batch
        if forkchoice is not None:
            batch.forkchoice = forkchoice
            self.commit()
        elif len(batch.rows) >= self._batch_blocks or batch.gas_used >= self._batch_gas:
            self._begin_commit()

    def _execute(
        self, block: Block, raw: bytes, following: bytes | None = None
    ) -> None:
        """Verify a block on top of the head, and add it to the batch."""
        self._aim(block.header, None)
        parent = self._head.parent(self._state, self._trie)
        self._provide(block, parent, self._state)
        self._lookahead.prepare(following, self._state)
        verified = self._executed(block, parent)
        self._lookahead.learn(block, self._state)
        number, batch = block.header.number, self._batch
        batch.raw.append(raw)
        batch.rows.append(block_row(verified, is_canonical=True))
        batch.versions.append((number, verified.changes))
        batch.changes.apply(verified.changes)
        batch.gas_used += block.header.gas_used
        if batch.window.is_open:
            batch.add_nodes(number, self._trie.dirty_nodes())
            self._trie.mark_clean()
        self._state.absorb(verified.changes, self._below())
        self._head = self._head.followed_by(block, verified.total_difficulty)

    def _executed(self, block: Block, parent: Parent) -> Verified:
        """Verify a block. Raises: InvalidBlock, NoProof."""
        verified = self._verify(block, parent)
        access_list = verified.outcome.access_list
        if self._prover is not None and access_list is not None:
            self._prover.executed(access_list.raw)
        return verified

    # A block anywhere else

    def _store_elsewhere(
        self, block: Block, tags: Tags | None = None
    ) -> tuple[StoredBlock, bool]:
        """Store a block that does not extend the head as a side block.

        tags: see `_branch_to`.

        Return the stored block, and whether it is new.

        Raises: InvalidBlock, BelowFinalized.
        """
        self.commit()
        stored = self._branches.find(block.header.hash)
        if stored is not None:
            return stored, False
        parent = self._branches.find(block.header.parent_hash)
        if parent is None:
            raise detached(block.header, self._branches.genesis_hash())
        return self._add_side_block(block, self._branch_to(parent, tags)), True

    def _add_side_block(self, block: Block, branch: Branch) -> StoredBlock:
        """Verify a block on the branch of its parent, and store it as a side block."""
        header = block.header
        self._branch = None  # until the block is stored: execution moves its tries
        parent = branch.parent
        self._provide(block, parent, branch.state)
        verified = self._executed(block, parent)
        self._lookahead.learn(block, branch.state)
        row = block_row(verified, is_canonical=False)
        with self._rows.transaction():
            ids = self._rows.insert_blocks([row])
            self._rows.insert_codes(verified.changes.codes)
            self._rows.insert_side_diffs(
                [(ids[row.hash], encode_changes(verified.changes))]
            )
            self._rows.announce()
        side = SideBlock(ids[row.hash], row.number, row.hash)
        branch.append(side, verified)
        self._branch = branch
        self._highest_side_block = max(self._highest_side_block, row.number)
        return StoredBlock(
            side.id, header, row.total_difficulty, is_canonical=False, body=row.body
        )

    def _branch_to(self, block: StoredBlock, tags: Tags | None = None) -> Branch:
        """Return the branch that ends with a stored block, canonical or not.

        The branch of the last side block is used again if possible. Otherwise it is
        computed from the rows. No blocks may be pending.

        tags: the stored safe and finalized blocks. Raises: BelowFinalized if the branch
            leaves the chain below the finalized block.
        """
        kept, tip = self._branch, block.header.hash
        if kept is not None and kept.position.block.header.hash == tip:
            if tags is not None:
                tags.require_above_finalized(kept.fork_number, tip)
            self._aim(block.header, kept.fork_number)
            return kept
        fork_number, line = self._branches.side_line(block)
        if tags is not None:
            tags.require_above_finalized(fork_number, tip)
        self._aim(block.header, fork_number)
        state = CachedState(self._stored_state)
        self._branch = Branch(
            fork_number,
            line,
            self._position(block),
            self._state_at(fork_number),
            state,
            self._tries(state),
            self._branches.rewind(fork_number),
            map(self._branches.side_changes, line),
        )
        return self._branch

    def _switch_to(self, branch: Branch, forkchoice: Forkchoice | None) -> int:
        """Make a branch the canonical chain, in one transaction.

        forkchoice: its safe and finalized blocks are stored. None leaves the stored ones.

        Returns: the number of blocks that became side blocks.
        """
        old, new = self.head.header, branch.position.block.header
        appearances = AppearanceRows(self._connection, self._network_id)
        with self._rows.transaction():
            self._move_versions(branch)
            appearances.remove_above(branch.fork_number)
            depth = self._branches.demote_after(branch.fork_number)
            for versions in self._branches.promote(branch.line):
                self._rows.insert_versions(versions)
            appearances.insert_stored([side.id for side in branch.line])
            self._rows.replace_nodes(branch.trie.dirty_nodes())
            self._rows.set_head(new.number, new.hash, before=old.hash)
            if forkchoice is not None:
                set_forkchoice(self._connection, self._network_id, forkchoice)
            if depth:
                self._rows.insert_reorganisation(
                    branch.fork_number, old.hash, new.hash, depth, len(branch.line)
                )
        self._branch = None
        self._head = branch.position
        self._highest_side_block = max(self._highest_side_block, old.number)
        self._stored_state = self._state_at(new.number)
        self._state.absorb(branch.changes, self._below())
        self._lookahead.forget()
        self._trie = self._tries(self._state)
        return depth

    def _move_versions(self, branch: Branch) -> None:
        """Replace the versions of nodes above the fork point by the branch's.

        The rows of the former branch have to be present still.
        """
        versions = self._node_versions
        window = versions.window()
        if not window.is_open:
            versions.write(window, [], branch.fork_number)
            return
        versions.delete_above(branch.fork_number)
        trie = self._tries(CachedState(self._stored_state))
        trie.apply(self._branches.rewind(branch.fork_number))
        before = {owner: dict(rows) for owner, rows in trie.dirty_nodes().items()}
        versions.insert(steps_of(trie, self._changes_of(branch)), before)

    def _changes_of(self, branch: Branch) -> Iterator[tuple[int, Changes]]:
        """Yield number and changes of each block of a branch, before they are applied."""
        for side in branch.line:
            stored = self._branches.find(side.hash)
            if stored is not None:
                self._aim(stored.header, branch.fork_number)
            yield side.number, self._branches.side_changes(side)
