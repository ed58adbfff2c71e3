"""py-evm's State over our world: no trie, no root, no database behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eth.vm.forks.frontier.transaction_context import FrontierTransactionContext

from nodeapi.evm.blob_gas import blob_base_fee

if TYPE_CHECKING:
    from eth.abc import ExecutionContextAPI

    from nodeapi.evm.forks import Fork


class TransactionContext(FrontierTransactionContext):  # type: ignore[misc]
    """What every frame of a transaction sees of it."""

    @property
    def blob_versioned_hashes(self) -> Any:
        """The hashes that BLOBHASH reads, 32 bytes each."""
        return self._blob_versioned_hashes


class WorldState:
    """Mixed in before a py-evm State, it replaces what that does to a database.

    `world` is what py-evm calls an account database. Its `record()` gives a
    checkpoint; `discard(checkpoint)` undoes everything since, later checkpoints
    included; `commit(checkpoint)` gives up the possibility.

    py-evm's own class writes system contracts when a state is made, and puts its
    state root back on a revert; neither happens here.
    """

    fork: Fork
    """Set in the subclass that each fork makes of this."""
    computation_class: Any
    transaction_context_class = TransactionContext

    def __init__(self, world: Any, execution_context: ExecutionContextAPI) -> None:
        self._account_db = world
        self.execution_context = execution_context
        self._precompiles = self.computation_class.get_precompiles()
        self._bind_world(world)

    def _bind_world(self, world: Any) -> None:
        """Let the hottest calls reach the world without a detour."""
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

    @property
    def blob_base_fee(self) -> int:
        """Wei per blob gas in this block.

        Raises: ValueError, in a fork without blobs.
        """
        parameters = self.fork.blob_parameters
        if parameters is None:
            raise ValueError(f"{self.fork.name} has no blobs")
        return blob_base_fee(
            self.execution_context.excess_blob_gas, parameters.base_fee_update_fraction
        )

    def is_address_warm(self, address: bytes) -> bool:
        """Return whether the transaction paid for this account, or need not."""
        return self._account_db.is_address_warm(address) or address in self._precompiles

    def get_transient_storage(self, address: bytes, slot: int) -> bytes:
        """Return what this transaction wrote there, empty when nothing."""
        return self._account_db.get_transient_storage(address, slot) or b""


def world_state_class(base: type[Any], **attributes: Any) -> type[Any]:
    """Return py-evm's State class of a fork with our parts put in its place."""
    return type(base.__name__, (WorldState, base), attributes)
