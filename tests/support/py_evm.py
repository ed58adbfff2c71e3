"""py-evm's call frames as an oracle, on this project's world instead of its database."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from eth.vm.execution_context import ExecutionContext
from eth.vm.forks import (
    BerlinVM,
    ByzantiumVM,
    CancunVM,
    ConstantinopleVM,
    FrontierVM,
    HomesteadVM,
    IstanbulVM,
    LondonVM,
    ParisVM,
    PetersburgVM,
    PragueVM,
    ShanghaiVM,
    SpuriousDragonVM,
    TangerineWhistleVM,
)
from eth.vm.forks.frontier.transaction_context import FrontierTransactionContext
from eth.vm.message import Message

from evm.blob_gas import blob_base_fee
from evm.chain_config import LADDER
from evm.context import BlockContext
from evm.world import World

VMS: dict[str, Any] = {
    vm.fork.replace("-", "_"): vm
    for vm in (
        *(FrontierVM, HomesteadVM, TangerineWhistleVM, SpuriousDragonVM, ByzantiumVM),
        *(ConstantinopleVM, PetersburgVM, IstanbulVM, BerlinVM, LondonVM, ParisVM),
        *(ShanghaiVM, CancunVM, PragueVM),
    )
}
"""The forks that py-evm has with rules of their own, by this project's name."""


class StockWorld(World):
    """A world with the methods that py-evm's State calls."""

    def commit(self, checkpoint: int) -> None:
        """Keep the changes since the checkpoint."""

    def account_has_code_or_nonce(self, address: Any) -> bool:
        return self.is_occupied(address, by_storage=True)

    def get_storage(self, address: Any, slot: int, from_journal: bool = True) -> int:
        if from_journal:
            return super().get_storage(address, slot)
        return self.original_storage(address, slot)

    def get_transient_storage(self, address: Any, slot: int) -> Any:
        return super().get_transient_storage(address, slot) or b""


class TransactionContext(FrontierTransactionContext):  # type: ignore[misc]
    @property
    def blob_versioned_hashes(self) -> Any:
        return self._blob_versioned_hashes


class _OnWorld:
    """Mixin before a py-evm State, which writes no system contracts and has no trie."""

    transaction_context_class = TransactionContext
    computation_class: Any
    _account_db: Any

    def __init__(self, world: StockWorld, context: Any, fork_name: str) -> None:
        self.world = self._account_db = world
        self.execution_context = context
        self.fork_name = fork_name
        self.snapshot = world.record
        self.revert = world.discard
        self.commit = world.commit

    @cached_property
    def blob_base_fee(self) -> int:
        parameters = LADDER[self.fork_name].blob_parameters
        assert parameters is not None
        excess = self.execution_context.excess_blob_gas
        return blob_base_fee(excess, parameters.base_fee_update_fraction)

    def is_address_warm(self, address: bytes) -> bool:
        contracts = self.computation_class.get_precompiles()
        return self._account_db.is_address_warm(address) or address in contracts


def stock_state(fork_name: str, world: StockWorld, block: BlockContext) -> Any:
    """Return py-evm's state of a fork, with its frames, opcodes and precompiles."""
    base = VMS[fork_name].get_state_class()
    context = ExecutionContext(
        coinbase=block.coinbase,
        timestamp=block.timestamp,
        block_number=block.number,
        difficulty=block.difficulty,
        mix_hash=block.mix_hash,
        gas_limit=block.gas_limit,
        prev_hashes=block.ancestor_hashes,
        chain_id=block.chain_id,
        base_fee_per_gas=block.base_fee,
        excess_blob_gas=block.excess_blob_gas,
    )
    return type("Stock", (_OnWorld, base), {})(world, context, fork_name)


def stock_call(
    state: Any, sender: bytes, to: bytes, code: bytes, data: bytes, **message: Any
) -> Any:
    """Execute a call, and return its frame."""
    message = {"value": 0, **message}
    return state.computation_class.apply_message(
        state,
        Message(to=to, sender=sender, data=data, code=code, **message),
        TransactionContext(
            gas_price=10, origin=sender, blob_versioned_hashes=[b"\x01" * 32]
        ),
    )
