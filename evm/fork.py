"""The rules of one fork, as data. `evm.forks` has the instances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eth_utils.exceptions import ValidationError

from evm.difficulty import DifficultyRule
from evm.errors import InvalidTransaction
from evm.transactions import GAS_PER_BLOB, Transaction

if TYPE_CHECKING:
    from evm.gas_table import GasTable


@dataclass(frozen=True, slots=True)
class BlobParameters:
    """Target and limit of blobs, for a fork or a blob-parameter-only fork."""

    target: int
    """Blobs per block at which the base fee of blob gas does not change."""
    max: int
    """Blobs per block."""
    base_fee_update_fraction: int
    """Excess blob gas by which the base fee is multiplied by e."""

    @property
    def target_gas(self) -> int:
        """Blob gas per block at which the base fee of blob gas does not change."""
        return self.target * GAS_PER_BLOB

    @property
    def max_gas(self) -> int:
        """Blob gas that a block may use."""
        return self.max * GAS_PER_BLOB


@dataclass(frozen=True, kw_only=True)
class Fork:
    """The rules of one fork: plain data, and one of py-evm's State classes."""

    name: str
    base_state_class: Any
    """`WorldState` over py-evm's State: opcodes, prices, message calls."""
    block_reward: int
    """The miner's reward in wei. Rewards for uncles are fractions of it."""
    difficulty: DifficultyRule | None
    """None after the merge."""
    transaction_types: frozenset[int] = frozenset({0})

    is_merged: bool = False
    has_status_receipts: bool = False
    """Whether receipts contain a status. Otherwise they contain the state root."""
    clears_empty_accounts: bool = False
    """Whether touched accounts without nonce, balance and code are deleted (EIP-161).
    """
    has_base_fee: bool = False
    has_withdrawals: bool = False
    has_parent_beacon_root: bool = False
    has_history_contract: bool = False
    """The parent's hash is stored in a system contract."""
    has_requests: bool = False
    blob_parameters: BlobParameters | None = None
    has_blob_reserve_price: bool = False

    has_low_signature_rule: bool = False
    """Whether a signature's s has to be in the lower half of the curve's order (EIP-2).
    """
    has_replay_protection: bool = False
    """A legacy transaction may carry the chain id."""
    creation_gas: int = 0
    """Intrinsic gas of a creating transaction above that of a call."""
    nonzero_byte_gas: int = 68
    """Intrinsic gas of a byte of data that is not zero."""
    refund_quotient: int = 2
    """At most the gas used, divided by this number, is refunded."""
    has_selfdestruct_refund: bool = True
    max_init_code_size: int | None = None
    """Bytes. With a limit, each word of init code costs gas (EIP-3860)."""
    warms_coinbase: bool = False
    has_data_floor: bool = False
    """Data costs at least 10 gas a token, however little was executed."""
    max_transaction_gas: int | None = None
    max_blobs_per_transaction: int | None = None
    max_block_size: int | None = None
    """Bytes of RLP."""

    @property
    def gas_table(self) -> GasTable:
        """The prices of instructions."""
        table: GasTable = self.base_state_class.computation_class.gas_table
        return table

    @property
    def precompiles(self) -> frozenset[bytes]:
        """The addresses of the precompiled contracts."""
        return frozenset(self.base_state_class.computation_class.get_precompiles())

    @property
    def has_blobs(self) -> bool:
        """Whether headers contain the blob gas fields (EIP-4844)."""
        return self.blob_parameters is not None

    @property
    def has_cell_proofs(self) -> bool:
        """Whether sidecars of blobs have proofs of cells (EIP-7594), as from Osaka on."""
        return self.max_blobs_per_transaction is not None

    @property
    def has_access_lists(self) -> bool:
        """Whether first accesses have a price of their own (EIP-2929)."""
        return 1 in self.transaction_types

    @property
    def has_delegations(self) -> bool:
        """Whether accounts can delegate to code (EIP-7702)."""
        return 4 in self.transaction_types

    def new_state(self, world: Any, context: Any) -> Any:
        """Return a state of this fork on a world; context: py-evm's ExecutionContext."""
        return self.base_state_class(world, context, self)

    def apply_transaction(
        self, state: Any, transaction: Transaction, index: int
    ) -> tuple[Any, int]:
        """Execute a transaction. Return its outermost frame and the gas used.

        state: a result of `new_state`. index: the transaction's index in its block.

        Raises: InvalidTransaction if it is invalid in this state.
        """
        try:
            computation = state.apply_transaction(transaction)
        except ValidationError as error:
            raise InvalidTransaction(index, str(error)) from error
        return computation, computation.transaction_gas_used
