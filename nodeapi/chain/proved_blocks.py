"""Storing the blocks up to a checkpoint, which are proved and not executed.

The checkpoint's block is stored first, then its parent, and so on: the oldest stored block
names the next one. Such a block has the rows of an executed one, but no versions of
accounts and slots, no appearances, and trace records without a trace. With the checkpoint
and the 255 blocks below it, which later blocks can name, the checkpoint becomes the head.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eth_typing import Hash32

from evm.changes import Changes
from evm.execution import Outcome
from evm.headers import decode_header
from evm.public import final_total_difficulty
from evm.transactions import recover_senders
from nodeapi.chain.forkchoice import Forkchoice, set_forkchoice
from nodeapi.chain.position import ANCESTORS_KEPT
from nodeapi.chain.rows import BlockRow, Rows, block_row
from nodeapi.chain.verification import Verified
from nodeapi.upstreams.proved_blocks import Link

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import psycopg

    from evm.chain_config import ChainConfig
    from nodeapi.upstreams.proved_blocks import ProvedBlock

LOWEST_CHECKPOINT = 257
"""Below it, a checkpoint would not have 255 ancestors above block 0."""

_LOCK_SPACE = 0x48495354  # "HIST"
"""First key of the advisory locks of networks whose history is being stored."""


@dataclass(frozen=True, slots=True)
class Gap:
    """The blocks below the oldest stored one.

    newest: the next one to be stored. total_difficulty: its own.
    """

    newest: Link
    total_difficulty: int


class ProvedBlocks:
    """Stores the blocks of one network that starts at a checkpoint, the newest first."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        network_id: int,
        config: ChainConfig,
    ) -> None:
        """Read the checkpoint. Raises: LookupError for a network without one."""
        self._connection = connection
        self._network_id = network_id
        self._config = config
        row = connection.execute(
            "SELECT checkpoint_number, checkpoint_hash, genesis_hash, history_blocks"
            " FROM networks_network WHERE id = %b",
            (network_id,),
            binary=True,
        ).fetchone()
        if row is None or row[0] is None:
            raise LookupError(f"network {network_id} has no checkpoint")
        number, checkpoint_hash, self._genesis_hash, self._history_blocks = row
        self.checkpoint = Link(number, Hash32(checkpoint_hash))

    @property
    def first_needed(self) -> int:
        """Number of the oldest block that has to be stored before the network is followed."""
        return max(self.checkpoint.number - ANCESTORS_KEPT + 1, 1)

    @property
    def first_wanted(self) -> int:
        """Number of the oldest block of the history that the network is to have."""
        wanted: int = self.checkpoint.number - self._history_blocks
        return max(min(wanted, self.first_needed), 1)

    def oldest(self) -> int | None:
        """Return the number of the oldest stored block but block 0, None without one."""
        row = self._connection.execute(
            "SELECT oldest_number FROM networks_network WHERE id = %b",
            (self._network_id,),
            binary=True,
        ).fetchone()
        return None if row is None else row[0]

    def gap(self) -> Gap:
        """Return the blocks that are not stored. Their newest may be block 0."""
        oldest = self.oldest()
        if oldest is None:
            return Gap(self.checkpoint, self._final_total_difficulty())
        row = self._connection.execute(
            "SELECT header, total_difficulty FROM nodeapi_block"
            " WHERE network_id = %b AND number = %b AND is_canonical",
            (self._network_id, oldest),
            binary=True,
        ).fetchone()
        if row is None:
            raise LookupError(f"network {self._network_id} has no block {oldest}")
        child = decode_header(row[0])
        newest = Link(child.number - 1, child.parent_hash)
        return Gap(newest, int(row[1]) - child.difficulty)

    def _final_total_difficulty(self) -> int:
        """Return the total difficulty of the checkpoint.

        It is known for public networks. Of another one only that it has reached the
        terminal total difficulty, which is enough for all rules.
        """
        known = final_total_difficulty(self._genesis_hash)
        return known or self._config.terminal_total_difficulty or 0

    def store(self, blocks: Sequence[ProvedBlock]) -> None:
        """Store blocks at the upper end of the gap, the newest first, in one transaction.

        Raises: ValueError if they don't continue the stored blocks; UnsupportedFork.
        """
        gap = self.gap()
        wanted, total_difficulty = gap.newest, gap.total_difficulty
        rows: list[BlockRow] = []
        for proved in blocks:
            header = proved.block.header
            if (header.number, header.hash) != wanted or header.number == 0:
                raise ValueError(f"block {header.number} is not the next one to store")
            rows.append(self._row(proved, total_difficulty))
            total_difficulty -= header.difficulty
            wanted = Link(header.number - 1, header.parent_hash)
        if not rows:
            return
        rows.reverse()
        writer = Rows(self._connection, self._network_id)
        with writer.transaction():
            writer.insert_blocks(rows)
            writer.insert_logs(rows)
            self._connection.execute(
                "UPDATE networks_network SET oldest_number = %b WHERE id = %b",
                (rows[0].number, self._network_id),
            )
            writer.announce()

    def _row(self, proved: ProvedBlock, total_difficulty: int) -> BlockRow:
        block, receipts = proved.block, proved.receipts
        header = block.header
        is_merged = self._config.is_merged(total_difficulty - header.difficulty)
        fork = self._config.fork_at(header.number, header.timestamp, is_merged)
        recover_senders(block.transactions)
        outcome = Outcome(
            receipts=receipts,
            gas_used=header.gas_used,
            bloom=int.from_bytes(header.logs_bloom),
            requests=None,
        )
        verified = Verified(block, fork, total_difficulty, outcome, Changes())
        return block_row(verified, is_canonical=True)

    @property
    def is_started(self) -> bool:
        """Whether the checkpoint's block has become the head."""
        row = self._connection.execute(
            "SELECT head_number > 0 FROM networks_network WHERE id = %b",
            (self._network_id,),
        ).fetchone()
        return row is not None and bool(row[0])

    def start(self) -> None:
        """Make the checkpoint the head, which counts as safe and finalized.

        The blocks from `first_needed` on have to be stored.
        """
        oldest = self.oldest()
        if oldest is None or oldest > self.first_needed:
            raise LookupError(f"block {self.first_needed} is not stored yet")
        writer = Rows(self._connection, self._network_id)
        number, block_hash = self.checkpoint
        with writer.transaction():
            writer.set_head(number, block_hash, before=Hash32(self._genesis_hash))
            set_forkchoice(
                self._connection,
                self._network_id,
                Forkchoice(block_hash, block_hash, block_hash),
            )


@contextmanager
def history_lock(
    connection: psycopg.Connection[Any], network_id: int
) -> Iterator[bool]:
    """Exclude other processes that store the history of a network.

    Yield False if one is doing so. PostgreSQL releases the lock with the connection.
    """
    key = _LOCK_SPACE, network_id
    row = connection.execute("SELECT pg_try_advisory_lock(%s, %s)", key).fetchone()
    is_held = row is not None and bool(row[0])
    try:
        yield is_held
    finally:
        if is_held and not connection.closed:
            connection.execute("SELECT pg_advisory_unlock(%s, %s)", key)
