"""The import of blocks: from files, where the best chain wins, and from upstreams.

A block that extends the head is executed and waits for the next commit. Any other block is
stored as a side block. The two importers differ in what makes another branch canonical.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

from evm.blocks import Block
from nodeapi.chain.forkchoice import Forkchoice, Move, UnknownHead, admitted
from nodeapi.chain.writer import ChainWriter

if TYPE_CHECKING:
    from eth_typing import Hash32

    from nodeapi.chain.branches import StoredBlock

BULK_BATCH_BLOCKS = 32
"""Blocks per commit in bulk imports, and thus the maximum to execute again after a crash.
"""


class FileImporter(ChainWriter):
    """Imports the blocks of files.

    The block with the highest total difficulty or height becomes the head. A forkchoice
    names another head; blocks on top of it become side blocks.
    """

    _forkchoice: Forkchoice | None = None

    def adopt(self, forkchoice: Forkchoice) -> None:
        """Make the forkchoice's head canonical, now or when its block is added.

        An ancestor of the present head is ignored, as in geth.

        Raises: ForkchoiceMismatch, as does `add`. The importer can't be used any more then.
        """
        self._forkchoice = forkchoice
        wanted = self._branches.find(forkchoice.head)
        if wanted is None:
            return
        if wanted.header.hash == self.head.header.hash:
            self._set_tags(forkchoice)
        elif not wanted.is_canonical:
            self._switch_to(self._branch_to(wanted), forkchoice)

    def add(self, raw: bytes, following: bytes | None = None) -> Block | None:
        """Import a block and return it, or None if it is stored already.

        following: the RLP of the next block, if known.

        The block may stay pending until the next `commit`.

        Raises: InvalidBlock (such as UnknownParent), after committing the preceding
            blocks; RlpError if `raw` is not the RLP of a block; UnsupportedFork.
        """
        block = self._lookahead.decode(raw)
        is_frozen = self._wanted(self.head.header.hash) is not None
        if not is_frozen and self._extends(block.header):
            self._extend(block, raw, following, self._wanted(block.header.hash))
            return block
        stored, is_new = self._store_elsewhere(block)
        if not stored.is_canonical and self._is_better(stored):
            wanted = self._wanted(stored.header.hash)
            self._switch_to(self._branch_to(stored), wanted)
        return block if is_new else None

    def _wanted(self, block_hash: Hash32) -> Forkchoice | None:
        """Return the forkchoice if it names this block as the head."""
        forkchoice = self._forkchoice
        if forkchoice is None or block_hash != forkchoice.head:
            return None
        return forkchoice

    def _is_better(self, stored: StoredBlock) -> bool:
        """Return whether a side block should become the head."""
        if self._wanted(stored.header.hash) is not None:
            return True
        is_frozen = self._wanted(self.head.header.hash) is not None
        return not is_frozen and self._head.is_outweighed_by(
            stored.total_difficulty, stored.header.number
        )


class FollowingImporter(ChainWriter):
    """Imports the blocks of upstreams. Only `follow` changes the branch of the head."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Start at the network's head; see `ChainWriter`."""
        super().__init__(*arguments, **options)
        self._followed = self.head.header.number
        """Number of the head after the last `follow`."""

    def add(self, raw: bytes, following: bytes | None = None) -> Block | None:
        """Import a block and return it, or None if it is stored already.

        following: the RLP of the next block, if known.

        The block may stay pending until the next `commit` or `follow`.

        Raises: InvalidBlock (such as UnknownParent), after committing the preceding
            blocks; RlpError if `raw` is not the RLP of a block; UnsupportedFork;
            BelowFinalized, before execution, if the block could never become canonical.
        """
        block = self._lookahead.decode(raw)
        if self._extends(block.header):
            self._extend(block, raw, following)
            return block
        _, is_new = self._store_elsewhere(block, self._tags())
        return block if is_new else None

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
            branch = self._branch_to(wanted, self._tags())
            depth = self._switch_to(branch, forkchoice)
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

    def _admitted(
        self, forkchoice: Forkchoice, fork_number: int, line: dict[Hash32, int]
    ) -> Forkchoice:
        return admitted(
            self._connection, self._network_id, forkchoice, fork_number, line
        )

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


def spare_garbage_collector() -> None:
    """Make garbage collections rarer in this process.

    Caches contain millions of objects, hardly any of them in a cycle. Collections would
    take 10 % of the time.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
