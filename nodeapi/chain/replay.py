"""A stored block executed once more, for tracers that want to see each instruction.

The block may be canonical or not: the state of its parent is read from the rows of the
canonical chain and, where it stands on a side branch, the differences kept with that.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eth_typing import Hash32

from nodeapi.chain.branches import Branches, StoredBlock
from nodeapi.chain.position import ANCESTORS_KEPT
from nodeapi.chain.state_reader import CachedState, OverlayState, StoredState
from nodeapi.evm.changes import Changes
from nodeapi.evm.execution import BlockExecution
from nodeapi.evm.executor import TransactionExecutor
from nodeapi.evm.headers import ZERO_HASH
from nodeapi.evm.intrinsic import intrinsic_gas
from nodeapi.evm.world import World
from nodeapi.tracers.frame_events import FrameEvents
from nodeapi.tracers.stepping import step_through, stepped
from nodeapi.tracers.steps import StepTracer, TracedTransaction, TracerError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import psycopg

    from nodeapi.evm.blocks import Block
    from nodeapi.evm.chain_config import ChainConfig
    from nodeapi.evm.forks import Fork
    from nodeapi.evm.transactions import Transaction
    from nodeapi.evm.world import StateReader


class NotTraceable(Exception):
    """A block that can't be executed again, in geth's words."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A block, and what it was executed on."""

    block: Block
    fork: Fork
    config: ChainConfig
    state: StateReader
    """The parent's."""
    ancestor_hashes: Iterable[Hash32]
    """The parent's first; read when BLOCKHASH asks."""


def find_origin(
    connection: psycopg.Connection[Any],
    network_id: int,
    config: ChainConfig,
    block_hash: bytes,
) -> Origin:
    """Look a block up, and what its execution needs.

    The connection should show one moment (REPEATABLE READ): a reorganisation in
    between would move the rows. Raises: NotTraceable.
    """
    branches = Branches(connection, network_id)
    stored = branches.find(block_hash)
    if stored is None:
        raise NotTraceable(f"block 0x{block_hash.hex()} not found")
    if stored.header.number == 0:
        raise NotTraceable("genesis is not traceable")
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
        _ancestor_hashes(branches, parent),
    )


def _state_after(
    branches: Branches,
    connection: psycopg.Connection[Any],
    network_id: int,
    block: StoredBlock,
) -> CachedState:
    fork_point, line = branches.side_line(block)
    state = StoredState(connection, network_id, fork_point.header.number)
    if not line:
        return CachedState(state)
    changes = Changes()
    for side in line:
        changes.apply(branches.side_changes(side))
    return CachedState(OverlayState(state, changes))


def _ancestor_hashes(branches: Branches, block: StoredBlock) -> Iterator[Hash32]:
    yield from branches.ancestor_hashes(block, ANCESTORS_KEPT)


class Replay:
    """A block's transactions, executed one after the other, traced or not."""

    def __init__(self, origin: Origin) -> None:
        """Stand before the first transaction, after the system calls of the start."""
        self._origin = origin
        self._fork = stepped(origin.fork)
        self._world = World(origin.state)
        self._events = FrameEvents()
        self._execution = BlockExecution(
            origin.block.header,
            self._fork,
            origin.config,
            self._world,
            origin.ancestor_hashes,
            lambda: ZERO_HASH,  # only in receipts, which nobody looks at here
            self._events,
        )
        self._state = self._execution.state
        self._transactions = enumerate(origin.block.transactions)
        self._undone: Transaction | None = None
        self._execution.begin()

    def skip(self) -> None:
        """Execute the next transaction."""
        self._catch_up()
        self._execution.apply_transaction(next(self._transactions)[1])

    def trace(self, tracer: StepTracer, timeout: float) -> None:
        """Execute the next transaction for a tracer.

        timeout: in seconds. Raises: TracerError; the transaction is executed all the
        same, once there is a next one that has to find its state.
        """
        self._catch_up()
        index, transaction = next(self._transactions)
        self._world.lock_changes()  # for a tracer that fails before anything else
        deadline = time.monotonic() + timeout
        if tracer.wants_steps:
            step_through(self._state, self._origin.fork, tracer, deadline)
        self._events.tracer = tracer
        try:
            tracer.start(self._traced(index, transaction, deadline))
            receipt = self._execution.apply_transaction(transaction)
            tracer.end(self._events.top, receipt.gas_used)
        except TracerError:
            if len(self._execution.receipts) == index:
                self._world.discard(0)
                self._undone = transaction
            raise
        finally:
            self._state.stepping = self._events.tracer = None

    def _catch_up(self) -> None:
        """Execute the transaction whose tracer failed."""
        if self._undone is not None:
            transaction, self._undone = self._undone, None
            self._execution.apply_transaction(transaction)

    def _traced(
        self, index: int, transaction: Transaction, deadline: float
    ) -> TracedTransaction:
        header = self._origin.block.header
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
            gas_price=TransactionExecutor(self._state).gas_price(transaction),
            value=transaction.value,
            intrinsic_gas=intrinsic_gas(transaction, self._fork),
            precompiles=self._state.computation_class.get_precompiles(),
            state=self._state,
            deadline=deadline,
        )
