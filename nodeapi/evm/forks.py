"""Every fork from Frontier to Osaka as data: what it changes against the one before.

A `Fork` holds what running and checking a block needs to know. The instances at the
end are mainnet's; `nodeapi.evm.chain_config` puts a network's own numbers in.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from eth.vm.forks.berlin.state import BerlinState
from eth.vm.forks.byzantium.state import ByzantiumState
from eth.vm.forks.cancun.state import CancunState
from eth.vm.forks.constantinople.state import ConstantinopleState
from eth.vm.forks.frontier.state import FrontierState
from eth.vm.forks.homestead.headers import dao_drain_list, dao_refund_contract
from eth.vm.forks.homestead.state import HomesteadState
from eth.vm.forks.istanbul.state import IstanbulState
from eth.vm.forks.london.state import LondonState
from eth.vm.forks.paris.state import ParisState
from eth.vm.forks.petersburg.state import PetersburgState
from eth.vm.forks.prague.state import PragueState
from eth.vm.forks.shanghai.state import ShanghaiState
from eth.vm.forks.spurious_dragon.state import SpuriousDragonState
from eth.vm.forks.tangerine_whistle.state import TangerineWhistleState
from eth_utils.exceptions import ValidationError

from nodeapi.evm.blob_gas import BlobParameters, blob_base_fee, next_excess_blob_gas
from nodeapi.evm.computation import computation_class
from nodeapi.evm.difficulty import (
    DifficultyRule,
    frontier_difficulty,
    homestead_difficulty,
    uncle_aware_difficulty,
)
from nodeapi.evm.errors import InvalidTransaction
from nodeapi.evm.executor import TransactionExecutor
from nodeapi.evm.osaka import OSAKA_OPCODES, OSAKA_PRECOMPILES
from nodeapi.evm.precompiles import improved_precompiles
from nodeapi.evm.state import world_state_class

if TYPE_CHECKING:
    from nodeapi.evm.transactions import Transaction

__all__ = [
    "BLOB_PARAMETER_FORKS",
    "DAO_DRAINED_ACCOUNTS",
    "DAO_EXTRA_DATA",
    "DAO_EXTRA_DATA_BLOCKS",
    "DAO_REFUND_CONTRACT",
    "FORKS",
    "BlobParameters",
    "Fork",
    "blob_base_fee",
    "next_excess_blob_gas",
]

ETHER = 10**18

DAO_REFUND_CONTRACT: bytes = bytes(dao_refund_contract)
"""Receives the whole balance of each drained account in the DAO fork's block."""
DAO_DRAINED_ACCOUNTS: tuple[bytes, ...] = tuple(
    bytes.fromhex(account[2:]) for account in dao_drain_list
)
"""Emptied, before its transactions, in the DAO fork's block."""
DAO_EXTRA_DATA = b"dao-hard-fork"
"""What headers must state from the DAO fork's block on, if the fork is supported;
what they must not state, if it is opposed."""
DAO_EXTRA_DATA_BLOCKS = 10
"""For how many blocks."""


@dataclass(frozen=True, kw_only=True)
class Fork:
    """The rules of one fork, as plain data and one class of py-evm's."""

    name: str
    base_state_class: Any
    """`WorldState` over py-evm's State: opcodes, prices, message calls."""
    state_class: Any = field(init=False, repr=False, compare=False)
    """The same, knowing its fork: called with a world and an execution context."""
    block_reward: int
    """Wei for the miner; uncles and their including cost shares of it."""
    difficulty: DifficultyRule | None
    """None once the merge has happened."""
    transaction_types: frozenset[int] = frozenset({0})

    is_merged: bool = False
    has_status_receipts: bool = False
    """Else a receipt holds the state root after its transaction."""
    clears_empty_accounts: bool = False
    """Touched accounts without nonce, balance and code are removed."""
    has_base_fee: bool = False
    has_withdrawals: bool = False
    has_parent_beacon_root: bool = False
    has_history_contract: bool = False
    """The parent's hash is stored in a system contract."""
    has_requests: bool = False
    blob_parameters: BlobParameters | None = None
    has_blob_reserve_price: bool = False

    has_low_signature_rule: bool = False
    """A transaction's s lies in the lower half of the curve's order."""
    has_replay_protection: bool = False
    """A legacy transaction may carry the chain id."""
    creation_gas: int = 0
    """Intrinsic gas of a creating transaction above that of a call."""
    nonzero_byte_gas: int = 68
    """Intrinsic gas of a byte of data that is not zero."""
    refund_quotient: int = 2
    """At most this fraction of the gas used is refunded."""
    has_selfdestruct_refund: bool = True
    max_init_code_size: int | None = None
    """Bytes; each word of init code costs gas where there is a limit."""
    warms_coinbase: bool = False
    has_data_floor: bool = False
    """Data costs at least 10 gas a token, however little was executed."""
    max_transaction_gas: int | None = None
    max_blobs_per_transaction: int | None = None
    max_block_size: int | None = None
    """Bytes of RLP."""

    @property
    def has_blobs(self) -> bool:
        """Whether headers account for blob gas."""
        return self.blob_parameters is not None

    @property
    def has_access_lists(self) -> bool:
        """Whether a transaction pays for its first touch of accounts and slots."""
        return 1 in self.transaction_types

    @property
    def has_delegations(self) -> bool:
        """Whether an account may delegate to code."""
        return 4 in self.transaction_types

    def __post_init__(self) -> None:
        state_class = type(
            self.base_state_class.__name__, (self.base_state_class,), {"fork": self}
        )
        object.__setattr__(self, "state_class", state_class)

    def apply_transaction(
        self, state: Any, transaction: Transaction, index: int
    ) -> tuple[Any, int]:
        """Execute a block's transaction; return its outermost frame and its gas used.

        state: made by `state_class`. index: the transaction's place in its block.
        Raises: InvalidTransaction.
        """
        try:
            computation = state.apply_transaction(transaction)
        except ValidationError as error:
            raise InvalidTransaction(index, str(error)) from error
        return computation, computation.transaction_gas_used


def _state_class(base: type[FrontierState], **attributes: Any) -> Any:
    """Put our world, interpreter and transaction executor into a py-evm State.

    attributes: of the Computation class, where they are not py-evm's.
    """
    frames = base.computation_class
    precompiles = improved_precompiles(frames.get_precompiles())
    return world_state_class(
        base,
        computation_class=computation_class(
            frames, **{"_precompiles": precompiles, **attributes}
        ),
        transaction_executor_class=TransactionExecutor,
    )


FRONTIER = Fork(
    name="frontier",
    base_state_class=_state_class(FrontierState),
    block_reward=5 * ETHER,
    difficulty=frontier_difficulty,
)
HOMESTEAD = replace(
    FRONTIER,
    name="homestead",
    base_state_class=_state_class(HomesteadState),
    difficulty=homestead_difficulty,
    has_low_signature_rule=True,
    creation_gas=32_000,
)
TANGERINE_WHISTLE = replace(
    HOMESTEAD,
    name="tangerine_whistle",
    base_state_class=_state_class(TangerineWhistleState),
)
SPURIOUS_DRAGON = replace(
    TANGERINE_WHISTLE,
    name="spurious_dragon",
    base_state_class=_state_class(SpuriousDragonState),
    clears_empty_accounts=True,
    has_replay_protection=True,
)
BYZANTIUM = replace(
    SPURIOUS_DRAGON,
    name="byzantium",
    base_state_class=_state_class(ByzantiumState),
    block_reward=3 * ETHER,
    difficulty=uncle_aware_difficulty(3_000_000),
    has_status_receipts=True,
)
CONSTANTINOPLE = replace(
    BYZANTIUM,
    name="constantinople",
    base_state_class=_state_class(ConstantinopleState),
    block_reward=2 * ETHER,
    difficulty=uncle_aware_difficulty(5_000_000),
)
PETERSBURG = replace(
    CONSTANTINOPLE,
    name="petersburg",
    base_state_class=_state_class(PetersburgState),
)
ISTANBUL = replace(
    PETERSBURG,
    name="istanbul",
    base_state_class=_state_class(IstanbulState),
    nonzero_byte_gas=16,
)
MUIR_GLACIER = replace(
    ISTANBUL,
    name="muir_glacier",
    difficulty=uncle_aware_difficulty(9_000_000),
)
BERLIN = replace(
    MUIR_GLACIER,
    name="berlin",
    base_state_class=_state_class(BerlinState),
    transaction_types=frozenset({0, 1}),
)
LONDON = replace(
    BERLIN,
    name="london",
    base_state_class=_state_class(LondonState),
    difficulty=uncle_aware_difficulty(9_700_000),
    transaction_types=frozenset({0, 1, 2}),
    has_base_fee=True,
    refund_quotient=5,
    has_selfdestruct_refund=False,
)
ARROW_GLACIER = replace(
    LONDON,
    name="arrow_glacier",
    difficulty=uncle_aware_difficulty(10_700_000),
)
GRAY_GLACIER = replace(
    ARROW_GLACIER,
    name="gray_glacier",
    difficulty=uncle_aware_difficulty(11_400_000),
)
PARIS = replace(
    GRAY_GLACIER,
    name="paris",
    base_state_class=_state_class(ParisState),
    block_reward=0,
    difficulty=None,
    is_merged=True,
)
SHANGHAI = replace(
    PARIS,
    name="shanghai",
    base_state_class=_state_class(ShanghaiState),
    has_withdrawals=True,
    max_init_code_size=49_152,
    warms_coinbase=True,
)
CANCUN = replace(
    SHANGHAI,
    name="cancun",
    base_state_class=_state_class(CancunState),
    transaction_types=frozenset({0, 1, 2, 3}),
    has_parent_beacon_root=True,
    blob_parameters=BlobParameters(3, 6, 3_338_477),
)
PRAGUE = replace(
    CANCUN,
    name="prague",
    base_state_class=_state_class(PragueState),
    transaction_types=frozenset({0, 1, 2, 3, 4}),
    has_history_contract=True,
    has_requests=True,
    has_data_floor=True,
    blob_parameters=BlobParameters(6, 9, 5_007_716),
)
OSAKA = replace(
    PRAGUE,
    name="osaka",
    base_state_class=_state_class(
        PragueState, opcodes=OSAKA_OPCODES, _precompiles=OSAKA_PRECOMPILES
    ),
    has_blob_reserve_price=True,
    max_transaction_gas=2**24,
    max_blobs_per_transaction=6,
    max_block_size=8_388_608,
)

FORKS: tuple[Fork, ...] = (
    FRONTIER,
    HOMESTEAD,
    TANGERINE_WHISTLE,
    SPURIOUS_DRAGON,
    BYZANTIUM,
    CONSTANTINOPLE,
    PETERSBURG,
    ISTANBUL,
    MUIR_GLACIER,
    BERLIN,
    LONDON,
    ARROW_GLACIER,
    GRAY_GLACIER,
    PARIS,
    SHANGHAI,
    CANCUN,
    PRAGUE,
    OSAKA,
)
"""In the order in which they follow each other."""

BLOB_PARAMETER_FORKS: dict[str, BlobParameters] = {
    "bpo1": BlobParameters(10, 15, 8_346_193),
    "bpo2": BlobParameters(14, 21, 11_684_671),
}
"""Forks after Osaka that change nothing but these, as mainnet has them."""
