"""Repeated execution of a stored block, for tracers of instructions.

The block may be canonical or not. The state of its parent is read from the rows of the
canonical chain and, on a side branch, from the diffs of the branch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eth_typing import Hash32

from evm.changes import Changes
from evm.execution import BlockExecution
from evm.executor import gas_price
from evm.headers import ZERO_HASH
from evm.simulation.block import CallBlock
from evm.tracers.frame_events import Events, FrameEvents
from evm.tracers.steps import StepTracer, TracedTransaction, TracerError
from evm.world import World
from nodeapi.chain.branches import Branches, StoredBlock
from nodeapi.chain.position import ANCESTORS_KEPT
from nodeapi.chain.state_reader import CachedState, OverlayState, StoredState

if TYPE_CHECKING:
    from collections.abc import Iterable

    import psycopg

    from evm.blocks import Block
    from evm.chain_config import ChainConfig
    from evm.receipts import Receipt
    from evm.rules.fork import Fork
    from evm.tracers.frames import CallFrame
    from evm.transactions import Transaction
    from evm.world import StateReader


class NotTraceable(Exception):
    """Raised when a block can't be executed again. The message is geth's."""


class IsGenesis(NotTraceable):
    """Raised for block 0, which was not executed."""

    def __init__(self) -> None:
        super().__init__("genesis is not traceable")


@dataclass(frozen=True, slots=True)
class Origin:
    """A block, and the state and ancestors for its execution."""

    block: Block
    fork: Fork
    config: ChainConfig
    state: StateReader
    """The parent's state."""
    ancestor_hashes: Iterable[Hash32]
    """Hashes from the parent on, newest first. They are read when BLOCKHASH needs them,
    perhaps more than once."""

    def call_block(self, fork: Fork) -> CallBlock:
        """Return the block as calls see it under the rules of a fork."""
        block = CallBlock.of_header(
            self.block.header, self.config, self.fork, self.ancestor_hashes
        )
        return block.under(fork)


def find_origin(
    connection: psycopg.Connection[Any],
    network_id: int,
    config: ChainConfig,
    block_hash: bytes,
) -> Origin:
    """Return a block with everything that its execution needs.

    The connection should have a consistent snapshot (REPEATABLE READ), because a
    concurrent reorganisation would move the rows.

    Raises: NotTraceable if the block is block 0, or if it or its parent is not stored.
    """
    branches = Branches(connection, network_id)
    stored = branches.find(block_hash)
    if stored is None:
        raise NotTraceable(f"block 0x{block_hash.hex()} not found")
    if stored.header.number == 0:
        raise IsGenesis
    parent = branches.find(stored.header.parent_hash)
    if parent is None:
        raise NotTraceable(f"parent 0x{stored.header.parent_hash.hex()} not found")
    header = stored.header
    is_merged = config.is_merged(parent.total_difficulty)
    return Origin(
        stored.block(),
        config.fork_at(header.number, header.timestamp, is_merged),
        config,
        _state_after(branches, connection, network_id, parent),
        _AncestorHashes(branches, parent),
    )


def _state_after(
    branches: Branches,
    connection: psycopg.Connection[Any],
    network_id: int,
    block: StoredBlock,
) -> CachedState:
    fork_number, line = branches.side_line(block)
    state = StoredState(connection, network_id, fork_number)
    if not line:
        return CachedState(state)
    changes = Changes()
    for side in line:
        changes.apply(branches.side_changes(side))
    return CachedState(OverlayState(state, changes))


@dataclass(frozen=True, slots=True)
class _AncestorHashes:
    """Hashes from a block on, newest first, which are read when they are needed."""

    branches: Branches
    block: StoredBlock

    def __iter__(self) -> Iterator[Hash32]:
        return iter(self.branches.ancestor_hashes(self.block, ANCESTORS_KEPT))


@dataclass(frozen=True, slots=True)
class Start:
    """The point within a block at which a replay begins."""

    index: int
    """Of the next transaction."""
    state: StateReader
    """Before that transaction."""
    log_count: int
    """Number of logs of the transactions before it."""


class Replay:
    """Execution of a block's transactions in order, each with or without a tracer."""

    def __init__(
        self,
        origin: Origin,
        events: Events | None = None,
        *,
        start: Start | None = None,
    ) -> None:
        """Start before a transaction.

        events: watches the transactions, and may record them as well.
        start: None for the first transaction, after the initial system calls.
        """
        self._origin = origin
        self._state_below = origin.state if start is None else start.state
        self._world = World(self._state_below)
        self._events: Events = FrameEvents() if events is None else events
        self._execution = BlockExecution(
            origin.block.header,
            origin.fork,
            origin.config,
            self._world,
            origin.ancestor_hashes,
            lambda: ZERO_HASH,  # only receipts contain it, which are not used here
            self._events,
        )
        self._state = self._execution.state
        self._transactions = enumerate(origin.block.transactions)
        self._undone: Transaction | None = None
        if start is None:
            self._execution.begin()
            return
        self._events.log_count = start.log_count
        for _ in range(start.index):
            next(self._transactions)

    @property
    def origin(self) -> Origin:
        """The block, and the state and ancestors for its execution."""
        return self._origin

    @property
    def state_below(self) -> StateReader:
        """The state that the world begins with."""
        return self._state_below

    @property
    def world(self) -> World:
        """The state after the last executed transaction.

        Before the first one, that after the initial system calls.
        """
        return self._world

    @property
    def top(self) -> CallFrame:
        """The outermost frame of the last executed transaction."""
        return self._events.top

    @property
    def gas_used(self) -> int:
        """Gas of all executed transactions."""
        return self._execution.gas_used

    @property
    def log_count(self) -> int:
        """Number of logs of all executed transactions."""
        return self._events.log_count

    def skip(self) -> Receipt:
        """Execute the next transaction without a tracer, and return its receipt."""
        self._catch_up()
        return self._execution.apply_transaction(next(self._transactions)[1])

    def trace(self, tracer: StepTracer, timeout: float) -> None:
        """Execute the next transaction with a tracer.

        timeout: in seconds.

        Raises: TracerError. Before a following transaction, the failed one is executed
            without a tracer, because the state depends on it.
        """
        self._catch_up()
        index, transaction = next(self._transactions)
        executed = len(self._execution.receipts)
        self._world.lock_changes()  # for a tracer that fails at the start
        deadline = time.monotonic() + timeout
        self._events.attach(tracer, deadline)
        try:
            tracer.start(self._traced(index, transaction, deadline))
            receipt = self._execution.apply_transaction(transaction)
            tracer.end(self._events.top, receipt.gas_used)
        except TracerError:
            if len(self._execution.receipts) == executed:
                self._world.discard(0)
                self._undone = transaction
            raise
        finally:
            self._events.detach()

    def _catch_up(self) -> None:
        """Execute the transaction whose tracer has failed."""
        if self._undone is not None:
            transaction, self._undone = self._undone, None
            self._execution.apply_transaction(transaction)

    def _traced(
        self, index: int, transaction: Transaction, deadline: float
    ) -> TracedTransaction:
        header = self._origin.block.header
        price = gas_price(self._state, transaction)
        return TracedTransaction(
            hash=transaction.hash,
            index=index,
            block_hash=header.hash,
            block_number=header.number,
            coinbase=header.coinbase,
            sender=transaction.sender,
            to=transaction.to or None,
            input=transaction.data,
            gas=transaction.gas,
            gas_tip=price - (header.base_fee_per_gas or 0),
            value=transaction.value,
            precompiles=self._state.precompiles,
            state=self._state,
            deadline=deadline,
        )
