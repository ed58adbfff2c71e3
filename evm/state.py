"""py-evm's State on top of our world, without trie, state root and database."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from eth.vm.forks.frontier.transaction_context import FrontierTransactionContext

from evm.blob_gas import blob_base_fee
from evm.effects import Effects

if TYPE_CHECKING:
    from eth.abc import ExecutionContextAPI

    from evm.fork import Fork


class TransactionContext(FrontierTransactionContext):  # type: ignore[misc]
    """Properties of a transaction that are visible in each of its frames."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.effects = Effects()

    @property
    def blob_versioned_hashes(self) -> Any:
        """The hashes that BLOBHASH reads, 32 bytes each."""
        return self._blob_versioned_hashes


class WorldState:
    """Mixin that goes before a py-evm State, and replaces its use of a database.

    `world` implements py-evm's account database. `record()` returns a checkpoint.
    `discard(checkpoint)` reverts all changes since the checkpoint. `commit(checkpoint)`
    keeps them.

    py-evm's own class writes system contracts when a state is created, and restores its
    state root on a revert. This class does neither.
    """

    computation_class: Any
    transaction_context_class = TransactionContext

    def __init__(
        self, world: Any, execution_context: ExecutionContextAPI, fork: Fork
    ) -> None:
        self.fork = fork
        self._account_db = world
        self.execution_context = execution_context
        self._precompiles = self.computation_class.get_precompiles()
        self._bind_world(world)

    def _bind_world(self, world: Any) -> None:
        """Replace the most frequent methods by bound methods of the world."""
        self.snapshot = world.record
        self.revert = world.discard
        self.commit = world.commit
        self.get_storage = world.get_storage
        self.set_storage = world.set_storage
        self.get_balance = world.get_balance
        self.set_balance = world.set_balance
        self.get_nonce = world.get_nonce
        self.get_code = world.get_code
        self.touch_account = world.touch_account
        self.is_storage_warm = world.is_storage_warm
        self.mark_storage_warm = world.mark_storage_warm
        self.mark_address_warm = world.mark_address_warm
        self.set_transient_storage = world.set_transient_storage

    @cached_property
    def blob_base_fee(self) -> int:
        """Wei per blob gas in this block. Cached, because BLOBBASEFEE costs only 2 gas.

        Raises: ValueError in a fork without blobs.
        """
        parameters = self.fork.blob_parameters
        if parameters is None:
            raise ValueError(f"{self.fork.name} has no blobs")
        return blob_base_fee(
            self.execution_context.excess_blob_gas, parameters.base_fee_update_fraction
        )

    def is_address_warm(self, address: bytes) -> bool:
        """Return whether an access to the account costs no surcharge (EIP-2929)."""
        return self._account_db.is_address_warm(address) or address in self._precompiles

    def get_transient_storage(self, address: bytes, slot: int) -> bytes:
        """Return the value written by this transaction, or b"" without one."""
        return self._account_db.get_transient_storage(address, slot) or b""
