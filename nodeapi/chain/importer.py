"""The importer: blocks in, verified, and made visible with the head in one commit."""

from __future__ import annotations

import gc
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from eth_typing import Hash32

from nodeapi.chain.batch import Batch
from nodeapi.chain.branches import Branches, StoredBlock
from nodeapi.chain.forkchoice import Forkchoice, set_forkchoice
from nodeapi.chain.lookahead import Lookahead
from nodeapi.chain.position import ANCESTORS_KEPT, Position, generation
from nodeapi.chain.rows import Rows, block_row
from nodeapi.chain.state_reader import (
    CachedState,
    OverlayState,
    StoredNodes,
    StoredState,
)
from nodeapi.chain.verification import Verified, verify_block
from nodeapi.evm.blocks import Block, decode_block
from nodeapi.evm.changes import Changes, encode_changes
from nodeapi.evm.errors import InvalidBlock
from nodeapi.evm.header_rules import UNCLE_DEPTH
from nodeapi.evm.state_trie import StateTrie
from nodeapi.evm.trie import NodeCache
from nodeapi.tracers.record import RECORD_LIMIT_BYTES

if TYPE_CHECKING:
    import psycopg

    from nodeapi.chain.database import Questions
    from nodeapi.evm.chain_config import ChainConfig

BULK_BATCH_BLOCKS = 32
"""Blocks a commit when bulk loading; as many at most are executed again after a crash."""

NODES_CACHED = 400_000
"""Trie nodes kept, 120 to 260 MB: twice the inner ones of 480,000 keys."""

SIDE_NODES_CACHED = 10_000
"""The same for the trie of a side block, which lives for that block."""


class UnknownParent(InvalidBlock):
    """Raised for a block whose parent is not in the database."""


class StateMismatch(RuntimeError):
    """Raised when the rows of the database don't lead to a stored block's state root."""


class Importer:
    """Imports blocks into one network, which it alone does (see `import_lock`)."""

    _head: Position
    _batch: Batch
    """Waits for its commit."""
    _leaving: Batch
    """Is being committed, else empty."""
    _stored_state: StoredState
    _stored_nodes: StoredNodes
    _state: CachedState
    _trie: StateTrie
    _frozen: bool
    """Whether the wanted head is reached, so that nothing is put on top of it."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        network_id: int,
        config: ChainConfig,
        *,
        forkchoice: Forkchoice | None = None,
        batch_blocks: int = 1,
        batch_gas: int = 200_000_000,
        writer: psycopg.Connection[Any] | None = None,
        questions: Questions | None = None,
        record_limit_bytes: int | None = RECORD_LIMIT_BYTES,
    ) -> None:
        """Take over at the network's head, which must exist: block 0 at least.

        forkchoice: the head that is wanted; without it the longest chain wins.
        batch_blocks, batch_gas: a batch is committed when it holds as much.
        writer: a second connection, over which a batch is committed during the next one.
        questions: over which a block's needs are read while the one before is executed.
        record_limit_bytes: see `verify_block`.
        """
        self._connection = connection
        self._writer = writer
        self._questions = questions
        self._thread = ThreadPoolExecutor(1, "commit")
        self._commit_under_way: Future[None] | None = None
        self._network_id = network_id
        self._config = config
        self._verify = partial(
            verify_block, config=config, record_limit_bytes=record_limit_bytes
        )
        self._forkchoice = forkchoice
        self._batch_blocks = batch_blocks
        self._batch_gas = batch_gas
        self._rows = Rows(connection, network_id)
        self._branches = Branches(connection, network_id)
        self._lookahead = Lookahead()
        self._open()
        if forkchoice is not None:
            self._adopt(forkchoice)

    @property
    def head(self) -> Block:
        """The newest canonical block, committed or not."""
        return self._head.block

    def add(self, raw: bytes, following: bytes | None = None) -> Block | None:
        """Import a block, and return it; None for one that is already there.

        following: the one that will be added after it, if that is known.
        It may wait for the next `commit`. Raises: InvalidBlock (of which UnknownParent
        is one) after committing everything before, RlpError for what is no block;
        ForkchoiceMismatch, of which the importer is at its end.
        """
        block = self._lookahead.decode(raw)
        try:
            if block.header.parent_hash == self.head.header.hash and not self._frozen:
                self._extend(block, raw, following)
                return block
            return block if self._add_elsewhere(block) else None
        except InvalidBlock:
            self._keep_what_was_before()
            raise

    def commit(self) -> None:
        """Make the pending blocks visible, each batch in one transaction with its head."""
        self._begin_commit()
        self._end_commit()

    def close(self) -> None:
        """Wait until nothing is being written; what was not committed is given up."""
        self._thread.shutdown()

    def _begin_commit(self) -> None:
        """Have the batch written while the next one is put together."""
        self._end_commit()
        batch = self._batch
        if not batch.rows:
            return
        batch.nodes = self._trie.dirty_nodes()
        self._trie.mark_clean()
        self._stored_nodes.pending = batch.nodes
        self._leaving, self._batch = batch, Batch()
        self._commit_under_way = self._thread.submit(self._write, batch)
        if self._writer is None:
            self._end_commit()

    def _end_commit(self) -> None:
        """Wait until what is being written is visible."""
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
        """Commit a batch; runs in a thread of its own."""
        connection = self._writer or self._connection
        rows, last = Rows(connection, self._network_id), batch.rows[-1]
        with connection.transaction():
            rows.insert_blocks(batch.rows)
            rows.insert_versions(batch.versions)
            rows.insert_codes(batch.changes.codes)
            rows.replace_nodes(batch.nodes)
            rows.set_head(last.number, last.hash)
            self._settle(connection, last.hash)

    def _below(self) -> OverlayState:
        """Return the state at the head: what is stored, and what is not yet."""
        leaving = OverlayState(self._stored_state, self._leaving.changes)
        return OverlayState(leaving, self._batch.changes)

    # The head and what is known of it

    def _open(self) -> None:
        """Forget everything pending, and stand on what the database holds."""
        row = self._connection.execute(
            "SELECT head_hash FROM networks_network WHERE id = %s",
            (self._network_id,),
            binary=True,
        ).fetchone()
        head = self._branches.find(row[0]) if row and row[0] else None
        if head is None:
            raise LookupError(f"network {self._network_id} has no genesis block")
        self._head = self._position(head)
        self._batch, self._leaving = Batch(), Batch()
        self._stored_state = self._state_at(head.header.number)
        self._stored_nodes = StoredNodes(self._connection, self._network_id)
        self._state = CachedState(self._stored_state, self._questions)
        self._lookahead.forget()
        self._trie = StateTrie(
            self._stored_nodes,
            NodeCache(NODES_CACHED, self._stored_nodes.nodes_below),
            head.header.state_root,
            self._state,
        )
        self._frozen = self._is_wanted(head.header.hash)

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

    def _settle(self, connection: psycopg.Connection[Any], head_hash: Hash32) -> None:
        """Once the wanted head is reached, write down what is safe and finalized."""
        if self._forkchoice is not None and self._is_wanted(head_hash):
            set_forkchoice(connection, self._network_id, self._forkchoice)

    def _keep_what_was_before(self) -> None:
        """After an invalid block, commit the ones before it.

        The trie has been moved on to a state that never was; so the pending blocks,
        at most a batch, are executed again from the last commit.
        """
        self._end_commit()
        pending = self._batch.raw
        self._open()
        for raw in pending:
            self._extend(decode_block(raw), raw)
        self.commit()

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
        self._state.absorb(verified.changes, self._below())
        self._head = self._head.followed_by(block, verified.total_difficulty)
        if self._is_wanted(block.header.hash):
            self.commit()
        elif len(batch.rows) >= self._batch_blocks or batch.gas_used >= self._batch_gas:
            self._begin_commit()

    # A block anywhere else

    def _add_elsewhere(self, block: Block) -> bool:
        """Add a block that is not on top of the head, and return whether it is new."""
        self.commit()
        if self._branches.find(block.header.hash) is not None:
            return False
        parent = self._branches.find(block.header.parent_hash)
        if parent is None:
            raise UnknownParent(
                block.header,
                "parent",
                reason=f"unknown parent 0x{block.header.parent_hash.hex()}",
            )
        fork_point, line = self._branches.side_line(parent)
        changes = [self._branches.side_changes(side) for side in line]
        trie = self._trie_at(parent, fork_point, changes)
        merged = Changes()
        for change in changes:
            merged.apply(change)
        state = OverlayState(self._state_at(fork_point.header.number), merged)
        verified = self._verify(block, self._position(parent).parent(state, trie))
        if self._is_better(verified):
            self._reorganise(fork_point, line, changes, trie, verified)
        else:
            self._add_side_block(verified)
        return True

    def _trie_at(
        self, block: StoredBlock, fork_point: StoredBlock, changes: list[Changes]
    ) -> StateTrie:
        """Return the trie at a side block: the head's, moved by what lies between."""
        trie = StateTrie(
            StoredNodes(self._connection, self._network_id),
            NodeCache(SIDE_NODES_CACHED),
            self.head.header.state_root,
            self._state,
        )
        moves = self._branches.rewind(fork_point.header.number)
        for change in changes:
            moves.apply(change)
        if trie.apply(moves) != block.header.state_root:
            raise StateMismatch(
                f"the rows don't give the state of block 0x{block.header.hash.hex()}"
            )
        return trie

    def _is_better(self, verified: Verified) -> bool:
        """Return whether the chain should move over to a block.

        Before the merge total difficulty decides, after it, where that stands still,
        the height; a wanted head wins over both.
        """
        header = verified.block.header
        if self._forkchoice is not None:
            if header.hash == self._forkchoice.head:
                return True
            if self._frozen:
                return False
        head = self._head
        return (verified.total_difficulty, header.number) > (
            head.total_difficulty,
            head.block.header.number,
        )

    def _add_side_block(self, verified: Verified) -> None:
        row = block_row(verified, is_canonical=False)
        with self._connection.transaction():
            ids = self._rows.insert_blocks([row])
            self._rows.insert_codes(verified.changes.codes)
            self._rows.insert_side_diffs(
                [(ids[row.hash], encode_changes(verified.changes))]
            )
            self._rows.announce()

    def _adopt(self, forkchoice: Forkchoice) -> None:
        """Move to the wanted head, if it is there already.

        One that lies behind the head on its own chain is left alone, as geth does.
        """
        wanted = self._branches.find(forkchoice.head)
        if wanted is None:
            return
        if wanted.header.hash == self.head.header.hash:
            with self._connection.transaction():
                self._settle(self._connection, wanted.header.hash)
                self._rows.announce()
        elif not wanted.is_canonical:
            fork_point, line = self._branches.side_line(wanted)
            changes = [self._branches.side_changes(side) for side in line]
            trie = self._trie_at(wanted, fork_point, changes)
            self._reorganise(fork_point, line, changes, trie)

    def _reorganise(
        self,
        fork_point: StoredBlock,
        line: list[StoredBlock],
        changes: list[Changes],
        trie: StateTrie,
        verified: Verified | None = None,
    ) -> None:
        """Make a line of side blocks canonical, in one transaction.

        line, changes: its blocks from the fork point on, and what each changes.
        trie: stands at the new head.
        verified: the new head if it is not stored yet, else the line's last block is it.
        """
        head = verified.block.header if verified else line[-1].header
        versions = [
            (side.header.number, change)
            for side, change in zip(line, changes, strict=True)
        ]
        with self._connection.transaction():
            self._branches.demote_after(fork_point.header.number)
            self._branches.promote(line)
            if verified:
                self._rows.insert_blocks([block_row(verified, is_canonical=True)])
                self._rows.insert_codes(verified.changes.codes)
                versions.append((head.number, verified.changes))
            self._rows.insert_versions(versions)
            self._rows.replace_nodes(trie.dirty_nodes())
            self._rows.set_head(head.number, head.hash)
            self._settle(self._connection, head.hash)
        self._open()


def spare_garbage_collector() -> None:
    """Let it look less often at the many objects that stay; it is for the process.

    Caches hold millions of them and hardly any is in a cycle: 10 % of the time.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
