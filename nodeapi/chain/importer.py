"""The importer: executes and verifies blocks, and commits them with the head."""

from __future__ import annotations

import gc
from concurrent.futures import Future, ThreadPoolExecutor
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
from nodeapi.chain.batch import Batch
from nodeapi.chain.branch import Branch
from nodeapi.chain.branches import Branches, SideBlock, StoredBlock
from nodeapi.chain.errors import detached
from nodeapi.chain.forkchoice import (
    Forkchoice,
    Move,
    Tags,
    UnknownHead,
    admitted,
    set_forkchoice,
)
from nodeapi.chain.lookahead import Lookahead
from nodeapi.chain.node_versions import NodeVersions, steps_of
from nodeapi.chain.position import ANCESTORS_KEPT, Position, generation
from nodeapi.chain.rows import Rows, block_row
from nodeapi.chain.state_reader import (
    CachedState,
    OverlayState,
    StoredNodes,
    StoredState,
)
from nodeapi.chain.verification import verify_block

if TYPE_CHECKING:
    import psycopg

    from evm.chain_config import ChainConfig
    from nodeapi.chain.database import Pipeline

BULK_BATCH_BLOCKS = 32
"""Blocks per commit in bulk imports, and thus the maximum to execute again after a crash.
"""

NODES_CACHED = 400_000
"""Cached trie nodes (120 to 260 MB): twice the branch nodes of a trie of 480,000 keys.
"""


class Importer:
    """Imports blocks into one network. Only one importer may run (see `import_lock`).

    There are two modes. For files, the block with the highest total difficulty or height
    becomes the head, up to the head of a given forkchoice. For followed networks, the
    caller moves the head with `follow`.
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
    _followed: int
    """Number of the head after the last `follow`."""
    _frozen: bool
    """Whether the forkchoice's head is reached. Further blocks do not extend the chain.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        network_id: int,
        config: ChainConfig,
        *,
        forkchoice: Forkchoice | None = None,
        follows_forkchoice: bool = False,
        batch_blocks: int = 1,
        batch_gas: int = 200_000_000,
        writer: psycopg.Connection[Any] | None = None,
        pipeline: Pipeline | None = None,
        record_limit_bytes: int | None = RECORD_LIMIT_BYTES,
    ) -> None:
        """Start at the network's head. Block 0 has to be stored.

        forkchoice: the desired head. Without it, total difficulty and height decide.
        follows_forkchoice: only `follow` changes the branch of the head, regardless of
            total difficulty and height. Can't be combined with `forkchoice`.
        batch_blocks, batch_gas: a batch is committed when it reaches one of these
            sizes.
        writer: a second connection, which commits a batch while the next one is
            executed.
        pipeline: reads a block's data while the block before it is executed.
        record_limit_bytes: see `verify_block`.
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
        assert forkchoice is None or not follows_forkchoice
        self._forkchoice = forkchoice
        self._follows_forkchoice = follows_forkchoice
        self._batch_blocks = batch_blocks
        self._batch_gas = batch_gas
        self._rows = Rows(connection, network_id)
        self._node_versions = NodeVersions(connection, network_id)
        self._branches = Branches(connection, network_id)
        self._lookahead = Lookahead()
        self._open()
        if forkchoice is not None:
            self._adopt(forkchoice)

    @property
    def head(self) -> Block:
        """The newest canonical block, committed or pending."""
        return self._head.block

    def add(self, raw: bytes, following: bytes | None = None) -> Block | None:
        """Import a block and return it, or None if it is stored already.

        following: the RLP of the next block, if known.

        The block may stay pending until the next `commit`.

        Raises: InvalidBlock (such as UnknownParent), after committing the preceding
            blocks; RlpError if `raw` is not the RLP of a block; BelowFinalized, before
            execution, if the block could never become canonical; ForkchoiceMismatch,
            after which the importer can't be used any more.
        """
        block = self._lookahead.decode(raw)
        header = block.header
        extends = header.parent_hash == self.head.header.hash and not self._frozen
        if not extends or (
            header.number <= self._highest_side_block
            and self._branches.find(header.hash) is not None
        ):
            return block if self._add_elsewhere(block) else None
        try:
            self._extend(block, raw, following)
        except InvalidBlock:
            self._keep_what_was_before()
            raise
        return block

    def is_known(self, block_hash: Hash32) -> bool:
        """Return whether a block is stored, canonical or not, or pending."""
        return (
            any(row.hash == block_hash for row in self._batch.rows)
            or any(row.hash == block_hash for row in self._leaving.rows)
            or self._branches.find(block_hash) is not None
        )

    def follow(self, forkchoice: Forkchoice) -> Move:
        """Make a known block the head, with its safe and finalized blocks.

        One transaction writes the whole move, whether it extends the chain by the
        pending blocks, reorganises it to any depth, or goes back to an ancestor. If
        the new head is not the last block that was added on top of the head, pending
        blocks are committed first. A forkchoice without finalized block keeps the
        stored one.

        Raises, without moving the head: UnknownHead; BelowFinalized if the new head
        does not descend from the stored finalized block; ForkchoiceMismatch if safe or
        finalized are not on the new head's chain, or finalized would move back.
        """
        self._end_commit()
        if forkchoice.head == self.head.header.hash:
            depth = self._follow_extension(forkchoice)
            added = self.head.header.number - self._followed
        else:
            self.commit()
            wanted = self._branches.find(forkchoice.head)
            if wanted is None:
                raise UnknownHead(f"0x{forkchoice.head.hex()} is not stored")
            fork_number, sides = self._branches.side_line(wanted)
            line = {side.hash: side.number for side in sides}
            forkchoice = self._admitted(forkchoice, fork_number, line)
            depth = self._switch_to(self._branch_to(wanted), forkchoice)
            added = len(line)
        self._followed = self.head.header.number
        return Move.of(depth, added)

    def _follow_extension(self, forkchoice: Forkchoice) -> int:
        """Commit the pending blocks, if any, with the tags. Return the depth, 0."""
        pending = self._batch.rows
        line = {row.hash: row.number for row in pending}
        number = self.head.header.number - len(pending)
        forkchoice = self._admitted(forkchoice, number, line)
        if pending:
            self._batch.forkchoice = forkchoice
            self.commit()
        else:
            self._set_tags(forkchoice)
        return 0

    def delete_side_blocks(self, keep: int) -> int:
        """Delete some of the side blocks that are more than `keep` blocks old.

        The age counts from the finalized block, or from the head if none is known.
        Blocks that were demoted in the last minutes are kept, see `DEMOTED_SECONDS`. A
        call deletes a limited number, so that it takes no longer than an import.

        Returns: the number of deleted blocks, 0 when none are left.
        """
        tags = self._tags()
        number = tags.finalized_number if tags.finalized else self.head.header.number
        with self._connection.transaction():
            deleted = self._branches.delete_side_blocks(number - keep)
        if deleted:
            self._branch = None
        return deleted

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
        if self._is_wanted(batch.rows[-1].hash):
            batch.forkchoice = self._forkchoice
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
        self._frozen = self._is_wanted(last.hash)
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
        self._followed = head.header.number
        self._branch = None
        self._highest_side_block = self._branches.highest_side_block()
        self._leaving = Batch()
        self._stored_state = self._state_at(head.header.number)
        self._stored_nodes = StoredNodes(self._connection, self._network_id)
        self._begin_batch()
        self._state = CachedState(self._stored_state, self._pipeline)
        self._lookahead.forget()
        self._nodes_cached = NodeCache(NODES_CACHED, self._stored_nodes.nodes_below)
        self._trie = self._tries(self._state)
        self._frozen = self._is_wanted(head.header.hash)

    def _begin_batch(self) -> None:
        self._batch = Batch(window=self._node_versions.window())
        self._stored_nodes.collected = self._batch.nodes

    def _tries(self, state: CachedState) -> StateTrie:
        """Return new tries at the head's state. All share the cached nodes."""
        root = self.head.header.state_root
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
        return StoredState(self._connection, self._network_id, number)

    def _is_wanted(self, block_hash: Hash32) -> bool:
        return self._forkchoice is not None and block_hash == self._forkchoice.head

    def _admitted(
        self, forkchoice: Forkchoice, fork_number: int, line: dict[Hash32, int]
    ) -> Forkchoice:
        return admitted(
            self._connection, self._network_id, forkchoice, fork_number, line
        )

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
        pending, followed = self._batch.raw, self._followed
        self._open()
        for raw in pending:
            self._extend(decode_block(raw), raw)
        self.commit()
        self._followed = followed

    # A block on top of the head

    def _extend(self, block: Block, raw: bytes, following: bytes | None = None) -> None:
        self._lookahead.provide(block, self._state)
        self._lookahead.prepare(following, self._state)
        verified = self._verify(block, self._head.parent(self._state, self._trie))
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
        if self._is_wanted(block.header.hash):
            self.commit()
        elif len(batch.rows) >= self._batch_blocks or batch.gas_used >= self._batch_gas:
            self._begin_commit()

    # A block anywhere else

    def _add_elsewhere(self, block: Block) -> bool:
        """Add a block that does not extend the head or may be stored already.

        Return False if the block is stored already.
        """
        self.commit()
        stored = self._branches.find(block.header.hash)
        is_new = stored is None
        if stored is None:
            stored = self._add_side_block(block)
        if not stored.is_canonical and self._is_better(stored):
            self._switch_to(self._branch_to(stored), self._wanted_with(stored))
        return is_new

    def _add_side_block(self, block: Block) -> StoredBlock:
        """Verify a block on its branch, and store it as a side block.

        Raises: InvalidBlock, BelowFinalized.
        """
        header = block.header
        parent = self._branches.find(header.parent_hash)
        if parent is None:
            raise detached(header, self._branches.genesis_hash())
        branch = self._branch_to(parent)
        self._branch = None  # until the block is stored: execution moves its tries
        self._lookahead.provide(block, branch.state)
        verified = self._verify(block, branch.parent)
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

    def _branch_to(self, block: StoredBlock) -> Branch:
        """Return the branch that ends with a stored block, canonical or not.

        The branch of the last side block is used again if possible. Otherwise it is
        computed from the rows. No blocks may be pending.

        Raises: BelowFinalized if a followed network's branch can't become canonical.
        """
        kept, tip = self._branch, block.header.hash
        if kept is not None and kept.position.block.header.hash == tip:
            self._require_above_finalized(kept.fork_number, tip)
            return kept
        fork_number, line = self._branches.side_line(block)
        self._require_above_finalized(fork_number, tip)
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

    def _require_above_finalized(self, fork_number: int, tip: Hash32) -> None:
        if self._follows_forkchoice:
            self._tags().require_above_finalized(fork_number, tip)

    def _is_better(self, stored: StoredBlock) -> bool:
        """Return whether a side block should become the head.

        The block with the higher total difficulty or height becomes the head, unless the
        forkchoice names another one.
        """
        if self._follows_forkchoice:
            return False
        if self._is_wanted(stored.header.hash):
            return True
        return not self._frozen and self._head.is_outweighed_by(
            stored.total_difficulty, stored.header.number
        )

    def _adopt(self, forkchoice: Forkchoice) -> None:
        """Make the forkchoice's head canonical if it is stored already.

        An ancestor of the present head is ignored, as in geth.
        """
        wanted = self._branches.find(forkchoice.head)
        if wanted is None:
            return
        if wanted.header.hash == self.head.header.hash:
            self._set_tags(forkchoice)
        elif not wanted.is_canonical:
            self._switch_to(self._branch_to(wanted), forkchoice)

    def _wanted_with(self, stored: StoredBlock) -> Forkchoice | None:
        """Return the forkchoice to store when this block becomes the head.

        None if the forkchoice does not name this block as the head.
        """
        return self._forkchoice if self._is_wanted(stored.header.hash) else None

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
        self._frozen = self._is_wanted(new.hash)
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
        blocks = (
            (side.number, self._branches.side_changes(side)) for side in branch.line
        )
        versions.insert(steps_of(trie, blocks), before)


def spare_garbage_collector() -> None:
    """Make garbage collections rarer in this process.

    Caches contain millions of objects, hardly any of them in a cycle. Collections would
    take 10 % of the time.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
