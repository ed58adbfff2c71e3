"""The rules of one fork, as data. `evm.rules.forks` has the instances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evm.difficulty import DifficultyRule
from evm.precompiles.contract import Precompile
from evm.rules.prices import Prices
from evm.transactions import GAS_PER_BLOB


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
    """The rules of one fork, as plain data."""

    name: str
    opcodes: frozenset[str]
    """Names of the instructions."""
    prices: Prices
    precompiles: Mapping[bytes, Precompile] = field(hash=False)
    """The precompiled contracts by address."""

    # Calls and creations
    keeps_a_64th: bool = False
    """A call passes on at most 63/64 of the gas (EIP-150)."""
    must_pay_for_code: bool = False
    """A creation that can't pay for its code fails (EIP-2). Otherwise it succeeds
    without code."""
    clears_empty_accounts: bool = False
    """Touched accounts without nonce, balance and code are deleted (EIP-161)."""
    max_code_size: int | None = None
    """Bytes (EIP-170)."""
    max_init_code_size: int | None = None
    """Bytes (EIP-3860)."""
    storage_occupies: bool = True
    """A creation fails at an address with storage alone (EIP-7610)."""
    rejects_0xef_code: bool = False
    """New contracts must not begin with the byte 0xef (EIP-3541)."""
    keeps_destroyed_contracts: bool = False
    """SELFDESTRUCT only deletes contracts of the same transaction (EIP-6780)."""
    keeps_destroyed_balance: bool = False
    """SELFDESTRUCT never burns ether (EIP-8246)."""
    logs_transfers: bool = False
    """Each transfer of ether between two accounts has a log (EIP-7708)."""

    # Transactions
    transaction_types: frozenset[int] = frozenset({0})
    has_low_signature_rule: bool = False
    """A signature's s has to be in the lower half of the curve's order (EIP-2)."""
    has_replay_protection: bool = False
    """A legacy transaction may carry the chain id (EIP-155)."""
    refund_quotient: int = 2
    """At most the gas used, divided by this number, is refunded (EIP-3529)."""
    warms_coinbase: bool = False
    max_transaction_gas: int | None = None
    max_execution_gas: int | None = None
    """How much of a transaction's gas limit can be used for anything but state gas. Its
    intrinsic gas and its floor must not exceed it (EIP-8037)."""
    max_blobs_per_transaction: int | None = None

    # Headers and blocks
    block_reward: int
    """The miner's reward in wei. Rewards for uncles are fractions of it."""
    difficulty: DifficultyRule | None
    """None after the merge."""
    is_merged: bool = False
    has_status_receipts: bool = False
    """Receipts contain a status. Otherwise they contain the state root."""
    has_base_fee: bool = False
    has_withdrawals: bool = False
    has_parent_beacon_root: bool = False
    has_history_contract: bool = False
    """The parent's hash is stored in a system contract."""
    has_requests: bool = False
    has_builder_requests: bool = False
    """Requests include builders' deposits and exits (EIP-8282)."""
    has_block_access_list: bool = False
    """Headers contain the hash of the block's access list (EIP-7928) and the slot number
    (EIP-7843)."""
    blob_parameters: BlobParameters | None = None
    has_blob_reserve_price: bool = False
    max_block_size: int | None = None
    """Bytes of RLP."""

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
