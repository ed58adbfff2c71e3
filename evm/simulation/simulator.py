"""Simulated blocks, each on top of the one before.

The roots of each block are computed from its transactions, receipts and state, as if the
block were real.

Source: go-ethereum internal/ethapi/simulate.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evm.chain_config import InvalidChainConfig
from evm.changed_state import ChangedState
from evm.changes import Changes
from evm.simulation.block_run import BlockRun, SimulatedBlock
from evm.simulation.budget import GasBudget
from evm.simulation.errors import SERVER_ERROR, SimulationError
from evm.simulation.planning import header_before_execution

if TYPE_CHECKING:
    from eth_typing import Hash32

    from evm.chain_config import ChainConfig
    from evm.headers import Header
    from evm.simulation.planning import PlannedBlock
    from evm.state_roots import Tries
    from evm.world import StateReader


@dataclass(frozen=True, slots=True)
class Base:
    """The block on which a simulation begins, with the state after it."""

    header: Header
    config: ChainConfig
    state: StateReader
    trie: Tries
    """The tries after the block. Each simulated block updates them."""
    ancestor_hashes: Iterable[Hash32]
    """From the block's parent on, newest first. They are iterated more than once."""


class Simulator:
    """Executes simulated blocks in order."""

    def __init__(
        self,
        base: Base,
        budget: GasBudget,
        *,
        traces_transfers: bool = False,
        validates: bool = False,
    ) -> None:
        """Start on top of a block.

        budget: gas of all blocks together.
        traces_transfers: whether transfers of ether are reported as logs.
        validates: whether nonces and base fees are checked as in a real block.
        """
        self._base = base
        self._budget = budget
        self._traces_transfers = traces_transfers
        self._validates = validates
        self._parent = base.header
        self._changes = Changes()
        self._state = ChangedState(base.state, self._changes)
        self._hashes = _Ancestors([base.header.hash], base.ancestor_hashes)

    def execute(self, planned: PlannedBlock) -> SimulatedBlock:
        """Execute the next block.

        Raises: SimulationError. The simulator can't be used afterwards.
        """
        config = self._base.config
        try:
            header, fork = header_before_execution(
                planned, self._parent, config, validates=self._validates
            )
        except InvalidChainConfig as error:
            raise SimulationError(SERVER_ERROR, str(error)) from error
        run = BlockRun(
            header,
            fork,
            config,
            planned.request,
            self._hashes,
            traces_transfers=self._traces_transfers,
            validates=self._validates,
        )
        simulated = run.execute(self._state, self._base.trie, self._budget)
        self._changes.apply(simulated.changes)
        self._parent = simulated.block.header
        self._hashes = self._hashes.after(self._parent.hash)
        return simulated


class _Ancestors:
    """Hashes of the simulated blocks so far and of real blocks, newest first."""

    def __init__(self, newest: list[Hash32], older: Iterable[Hash32]) -> None:
        self._newest = newest
        self._older = older

    def __iter__(self) -> Iterator[Hash32]:
        yield from self._newest
        yield from self._older

    def after(self, block_hash: Hash32) -> _Ancestors:
        """Return the ancestors of the block after the one with this hash."""
        return _Ancestors([block_hash, *self._newest], self._older)
