"""All forks from Frontier to Amsterdam, each as the differences from the one before.

The values are mainnet's. `evm.chain_config` replaces those that a network configures.

Sources: the EIPs that are named; Yellow Paper, appendix G; go-ethereum,
core/vm/jump_table.go, params/protocol_params.go
"""

from __future__ import annotations

from dataclasses import replace

from evm.difficulty import (
    frontier_difficulty,
    homestead_difficulty,
    uncle_aware_difficulty,
)
from evm.precompiles import tables
from evm.rules.fork import BlobParameters, Fork
from evm.rules.prices import Prices, StatePrices, StorePrices

ETHER = 10**18

ACCOUNT_ACCESSES = (
    *("BALANCE", "EXTCODESIZE", "EXTCODECOPY", "EXTCODEHASH"),
    *("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL"),
)
"""Opcodes that read an account. From Berlin on, the first access costs more."""

_FRONTIER_OPCODES = """
STOP ADD MUL SUB DIV SDIV MOD SMOD ADDMOD MULMOD EXP SIGNEXTEND
LT GT SLT SGT EQ ISZERO AND OR XOR NOT BYTE KECCAK256
ADDRESS BALANCE ORIGIN CALLER CALLVALUE CALLDATALOAD CALLDATASIZE CALLDATACOPY CODESIZE
CODECOPY GASPRICE EXTCODESIZE EXTCODECOPY
BLOCKHASH COINBASE TIMESTAMP NUMBER DIFFICULTY GASLIMIT
POP MLOAD MSTORE MSTORE8 SLOAD SSTORE JUMP JUMPI PC MSIZE GAS JUMPDEST
LOG0 LOG1 LOG2 LOG3 LOG4 CREATE CALL CALLCODE RETURN SELFDESTRUCT
"""

FRONTIER = Fork(
    name="frontier",
    opcodes=frozenset(_FRONTIER_OPCODES.split())
    | {f"PUSH{size}" for size in range(1, 33)}
    | {f"{name}{depth}" for name in ("DUP", "SWAP") for depth in range(1, 17)},
    prices=Prices(),
    precompiles=tables.FRONTIER,
    block_reward=5 * ETHER,
    difficulty=frontier_difficulty,
)
HOMESTEAD = replace(
    FRONTIER,
    name="homestead",
    opcodes=FRONTIER.opcodes | {"DELEGATECALL"},  # EIP-7
    prices=replace(FRONTIER.prices, creation=32_000),  # EIP-2
    must_pay_for_code=True,
    has_low_signature_rule=True,
    difficulty=homestead_difficulty,
)
TANGERINE_WHISTLE = replace(
    HOMESTEAD,
    name="tangerine_whistle",
    prices=replace(
        HOMESTEAD.prices.changed(  # EIP-150
            **{"BALANCE": 400, "EXTCODESIZE": 700, "EXTCODECOPY": 700, "SLOAD": 200},
            **{"CALL": 700, "CALLCODE": 700, "DELEGATECALL": 700},
        ),
        selfdestruct=5000,
    ),
    keeps_a_64th=True,
)
SPURIOUS_DRAGON = replace(
    TANGERINE_WHISTLE,
    name="spurious_dragon",
    prices=replace(TANGERINE_WHISTLE.prices, exp_byte=50),  # EIP-160
    clears_empty_accounts=True,
    max_code_size=24_576,
    has_replay_protection=True,
)
BYZANTIUM = replace(
    SPURIOUS_DRAGON,
    name="byzantium",
    opcodes=SPURIOUS_DRAGON.opcodes
    # EIP-140, EIP-211, EIP-214
    | {"REVERT", "RETURNDATASIZE", "RETURNDATACOPY", "STATICCALL"},
    precompiles=tables.BYZANTIUM,
    block_reward=3 * ETHER,
    difficulty=uncle_aware_difficulty(3_000_000),
    has_status_receipts=True,
)
CONSTANTINOPLE = replace(
    BYZANTIUM,
    name="constantinople",
    # EIP-145, EIP-1052, EIP-1014
    opcodes=BYZANTIUM.opcodes | {"SHL", "SHR", "SAR", "EXTCODEHASH", "CREATE2"},
    prices=replace(
        BYZANTIUM.prices,
        store=StorePrices(  # EIP-1283
            unchanged=200, set=20_000, reset=5000, clear_refund=15_000
        ),
    ),
    block_reward=2 * ETHER,
    difficulty=uncle_aware_difficulty(5_000_000),
)
PETERSBURG = replace(
    CONSTANTINOPLE,
    name="petersburg",
    prices=BYZANTIUM.prices,  # without EIP-1283
)
ISTANBUL = replace(
    PETERSBURG,
    name="istanbul",
    opcodes=PETERSBURG.opcodes | {"CHAINID", "SELFBALANCE"},
    prices=replace(
        PETERSBURG.prices.changed(BALANCE=700, SLOAD=800, EXTCODEHASH=700),  # EIP-1884
        store=StorePrices(  # EIP-2200
            unchanged=800, set=20_000, reset=5000, clear_refund=15_000, sentry=2300
        ),
        nonzero_byte=16,  # EIP-2028
    ),
    precompiles=tables.ISTANBUL,
)
MUIR_GLACIER = replace(
    ISTANBUL,
    name="muir_glacier",
    difficulty=uncle_aware_difficulty(9_000_000),
)
BERLIN = replace(
    MUIR_GLACIER,
    name="berlin",
    prices=replace(  # EIP-2929
        MUIR_GLACIER.prices.changed(
            SLOAD=0, SELFDESTRUCT=5000, **dict.fromkeys(ACCOUNT_ACCESSES, 100)
        ),
        warm=100,
        cold_account=2600,
        cold_slot=2100,
        selfdestruct=0,
        store=StorePrices(
            unchanged=100,
            set=20_000,
            reset=2900,
            clear_refund=15_000,
            sentry=2300,
            cold=2100,
        ),
    ),
    precompiles=tables.BERLIN,
    transaction_types=frozenset({0, 1}),
)
LONDON = replace(
    BERLIN,
    name="london",
    opcodes=BERLIN.opcodes | {"BASEFEE"},
    prices=replace(  # EIP-3529
        BERLIN.prices,
        store=StorePrices(
            unchanged=100,
            set=20_000,
            reset=2900,
            clear_refund=4800,
            sentry=2300,
            cold=2100,
        ),
        selfdestruct_refund=0,
    ),
    rejects_0xef_code=True,
    transaction_types=frozenset({0, 1, 2}),
    has_base_fee=True,
    refund_quotient=5,
    difficulty=uncle_aware_difficulty(9_700_000),
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
    block_reward=0,
    difficulty=None,
    is_merged=True,
)
SHANGHAI = replace(
    PARIS,
    name="shanghai",
    opcodes=PARIS.opcodes | {"PUSH0"},
    prices=replace(PARIS.prices, init_code_word=2),  # EIP-3860
    max_init_code_size=49_152,
    warms_coinbase=True,
    has_withdrawals=True,
)
CANCUN = replace(
    SHANGHAI,
    name="cancun",
    opcodes=SHANGHAI.opcodes
    # EIP-1153, EIP-5656, EIP-4844, EIP-7516
    | {"TLOAD", "TSTORE", "MCOPY", "BLOBHASH", "BLOBBASEFEE"},
    precompiles=tables.CANCUN,
    keeps_destroyed_contracts=True,
    transaction_types=frozenset({0, 1, 2, 3}),
    has_parent_beacon_root=True,
    blob_parameters=BlobParameters(3, 6, 3_338_477),
)
PRAGUE = replace(
    CANCUN,
    name="prague",
    prices=replace(  # EIP-7623
        CANCUN.prices, floor_zero_byte=10, floor_nonzero_byte=40
    ),
    precompiles=tables.PRAGUE,
    transaction_types=frozenset({0, 1, 2, 3, 4}),
    has_history_contract=True,
    has_requests=True,
    blob_parameters=BlobParameters(6, 9, 5_007_716),
)
OSAKA = replace(
    PRAGUE,
    name="osaka",
    opcodes=PRAGUE.opcodes | {"CLZ"},  # EIP-7939
    precompiles=tables.OSAKA,
    has_blob_reserve_price=True,
    max_transaction_gas=2**24,
    max_blobs_per_transaction=6,
    max_block_size=8_388_608,
)
AMSTERDAM = replace(
    OSAKA,
    name="amsterdam",
    # EIP-7843, EIP-8024
    opcodes=OSAKA.opcodes | {"SLOTNUM", "DUPN", "SWAPN", "EXCHANGE"},
    prices=replace(
        OSAKA.prices.changed(CREATE=12_000, CREATE2=12_000),  # EIP-8038
        state=StatePrices(),  # EIP-8037
        store=StorePrices(  # EIP-8038
            unchanged=100,
            set=10_100,
            reset=10_100,
            clear_refund=11_616,
            sentry=2300,
            cold=2000,
        ),
        cold_account=3000,
        code_read=100,
        value=11_300,
        new_account=0,
        new_beneficiary=9000,
        code_byte=0,
        code_word=6,
        # EIP-2780
        transaction=12_000,
        creation=12_000,
        recipient=3000,
        transfer=6000,
        authorization=7816,
        account_write=9000,
        existing_account_refund=0,
        # EIP-8038, EIP-7981
        access_list_address=2900 + 1280,
        access_list_slot=2000 + 2048,
        # EIP-7976, EIP-7981
        floor_zero_byte=64,
        floor_nonzero_byte=64,
        floor_address=1280,
        floor_slot=2048,
    ),
    max_code_size=65_536,  # EIP-7954
    max_init_code_size=131_072,
    storage_occupies=False,
    keeps_destroyed_balance=True,
    logs_transfers=True,
    max_transaction_gas=2**32 - 1,
    max_execution_gas=2**24,
    has_builder_requests=True,
    has_block_access_list=True,
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
    AMSTERDAM,
)
"""All forks in order of activation."""

BLOB_PARAMETER_FORKS: dict[str, BlobParameters] = {
    "bpo1": BlobParameters(10, 15, 8_346_193),
    "bpo2": BlobParameters(14, 21, 11_684_671),
}
"""Mainnet's blob-parameter-only forks after Osaka, which change only these values."""
