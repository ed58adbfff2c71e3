"""All forks from Frontier to Osaka, each as changes of the one before.

The values are mainnet's. `evm.chain_config` replaces those that a network configures.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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

from evm import gas_table as gas
from evm.computation import computation_class
from evm.difficulty import (
    frontier_difficulty,
    homestead_difficulty,
    uncle_aware_difficulty,
)
from evm.executor import TransactionExecutor
from evm.fork import BlobParameters, Fork
from evm.gas_table import GasTable
from evm.osaka import OSAKA_OPCODES
from evm.precompiles import tables
from evm.state import WorldState

ETHER = 10**18

DAO_REFUND_CONTRACT: bytes = bytes(dao_refund_contract)
"""Receives the whole balance of each drained account in the DAO fork's block."""
DAO_DRAINED_ACCOUNTS: tuple[bytes, ...] = tuple(
    bytes.fromhex(account[2:]) for account in dao_drain_list
)
"""Accounts whose balances move in the DAO fork's block, before its transactions."""
DAO_EXTRA_DATA = b"dao-hard-fork"
"""Extra data that headers must have from the DAO fork's block on if the network
supports the fork, and must not have if it opposes the fork."""
DAO_EXTRA_DATA_BLOCKS = 10
"""Number of blocks to which this rule applies."""


def _state_class(
    base: Any,
    precompiles: tables.Table,
    prices: GasTable,
    opcodes: dict[int, Any] | None = None,
) -> Any:
    """Return a subclass of a py-evm State with our world, interpreter and executor.

    opcodes: py-evm's of the fork by default.
    """
    stock = base.computation_class
    frames = computation_class(stock, prices, precompiles, opcodes or stock.opcodes)

    class ForkState(WorldState, base):  # type: ignore[misc]  # of a fork
        """The state with the rules of one fork."""

        computation_class = frames
        transaction_executor_class = TransactionExecutor

    return ForkState


FRONTIER = Fork(
    name="frontier",
    base_state_class=_state_class(FrontierState, tables.FRONTIER, gas.FRONTIER),
    block_reward=5 * ETHER,
    difficulty=frontier_difficulty,
)
HOMESTEAD = replace(
    FRONTIER,
    name="homestead",
    base_state_class=_state_class(HomesteadState, tables.FRONTIER, gas.FRONTIER),
    difficulty=homestead_difficulty,
    has_low_signature_rule=True,
    creation_gas=32_000,
)
TANGERINE_WHISTLE = replace(
    HOMESTEAD,
    name="tangerine_whistle",
    base_state_class=_state_class(
        TangerineWhistleState, tables.FRONTIER, gas.TANGERINE_WHISTLE
    ),
)
SPURIOUS_DRAGON = replace(
    TANGERINE_WHISTLE,
    name="spurious_dragon",
    base_state_class=_state_class(
        SpuriousDragonState, tables.FRONTIER, gas.SPURIOUS_DRAGON
    ),
    clears_empty_accounts=True,
    has_replay_protection=True,
)
BYZANTIUM = replace(
    SPURIOUS_DRAGON,
    name="byzantium",
    base_state_class=_state_class(
        ByzantiumState, tables.BYZANTIUM, gas.SPURIOUS_DRAGON
    ),
    block_reward=3 * ETHER,
    difficulty=uncle_aware_difficulty(3_000_000),
    has_status_receipts=True,
)
CONSTANTINOPLE = replace(
    BYZANTIUM,
    name="constantinople",
    base_state_class=_state_class(
        ConstantinopleState, tables.BYZANTIUM, gas.CONSTANTINOPLE
    ),
    block_reward=2 * ETHER,
    difficulty=uncle_aware_difficulty(5_000_000),
)
PETERSBURG = replace(
    CONSTANTINOPLE,
    name="petersburg",
    base_state_class=_state_class(PetersburgState, tables.BYZANTIUM, gas.PETERSBURG),
)
ISTANBUL = replace(
    PETERSBURG,
    name="istanbul",
    base_state_class=_state_class(IstanbulState, tables.ISTANBUL, gas.ISTANBUL),
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
    base_state_class=_state_class(BerlinState, tables.BERLIN, gas.BERLIN),
    transaction_types=frozenset({0, 1}),
)
LONDON = replace(
    BERLIN,
    name="london",
    base_state_class=_state_class(LondonState, tables.BERLIN, gas.LONDON),
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
    base_state_class=_state_class(ParisState, tables.BERLIN, gas.LONDON),
    block_reward=0,
    difficulty=None,
    is_merged=True,
)
SHANGHAI = replace(
    PARIS,
    name="shanghai",
    base_state_class=_state_class(ShanghaiState, tables.BERLIN, gas.SHANGHAI),
    has_withdrawals=True,
    max_init_code_size=49_152,
    warms_coinbase=True,
)
CANCUN = replace(
    SHANGHAI,
    name="cancun",
    base_state_class=_state_class(CancunState, tables.CANCUN, gas.SHANGHAI),
    transaction_types=frozenset({0, 1, 2, 3}),
    has_parent_beacon_root=True,
    blob_parameters=BlobParameters(3, 6, 3_338_477),
)
PRAGUE = replace(
    CANCUN,
    name="prague",
    base_state_class=_state_class(PragueState, tables.PRAGUE, gas.SHANGHAI),
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
        PragueState, tables.OSAKA, gas.SHANGHAI, opcodes=OSAKA_OPCODES
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
"""All forks in order of activation."""

BLOB_PARAMETER_FORKS: dict[str, BlobParameters] = {
    "bpo1": BlobParameters(10, 15, 8_346_193),
    "bpo2": BlobParameters(14, 21, 11_684_671),
}
"""Mainnet's blob-parameter-only forks after Osaka, which change only these values."""
