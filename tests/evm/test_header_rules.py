import dataclasses
from itertools import pairwise

import pytest

from evm.blocks import Block
from evm.chain_config import ChainConfig
from evm.errors import InvalidBlock
from evm.genesis import genesis_accounts, genesis_block
from evm.header_rules import (
    Generation,
    next_base_fee,
    validate_header,
    validate_uncles,
)
from evm.headers import EMPTY_TRIE_ROOT, ZERO_HASH
from evm.rules import forks
from tests.evm.test_genesis import state_root
from tests.evm.test_headers import HEADER
from tests.support import execution_apis

CONFIG = ChainConfig.from_genesis({"config": {"chainId": 1, "homesteadBlock": 0}})
BLOB_GAS = 131_072
BLOB_FIELDS = ("blob_gas_used", "excess_blob_gas", "parent_beacon_root")


def child(parent, fork, **changes):
    """Return a header that is valid after its parent, except for the changes."""
    fields = {
        "parent_hash": parent.hash,
        "number": parent.number + 1,
        "timestamp": parent.timestamp + 13,
        "difficulty": 0,
    }
    if fork.difficulty is not None:
        fields["difficulty"] = fork.difficulty(
            parent.difficulty,
            parent.timestamp,
            parent.timestamp + 13,
            parent.number + 1,
            False,
        )
    if fork.has_base_fee:
        fields["base_fee_per_gas"] = next_base_fee(parent)
    if fork.has_withdrawals:
        fields["withdrawals_root"] = EMPTY_TRIE_ROOT
    if fork.has_blobs:
        fields |= {
            "blob_gas_used": 0,
            "excess_blob_gas": 0,
            "parent_beacon_root": ZERO_HASH,
        }
    if fork.has_requests:
        fields["requests_hash"] = ZERO_HASH
    return dataclasses.replace(HEADER, **fields | changes)


MINED = dataclasses.replace(HEADER, difficulty=2**20)
LONDON = dataclasses.replace(MINED, base_fee_per_gas=10**9)
MERGED = dataclasses.replace(
    HEADER,
    base_fee_per_gas=10**9,
    withdrawals_root=EMPTY_TRIE_ROOT,
    blob_gas_used=0,
    excess_blob_gas=0,
    parent_beacon_root=ZERO_HASH,
    requests_hash=ZERO_HASH,
)
PARENTS = {
    forks.FRONTIER: MINED,
    forks.LONDON: LONDON,
    forks.GRAY_GLACIER: LONDON,
    forks.PARIS: LONDON,
    forks.SHANGHAI: LONDON,
    forks.CANCUN: LONDON,
    forks.PRAGUE: MERGED,
    forks.OSAKA: MERGED,
}


@pytest.mark.parametrize("fork", PARENTS, ids=lambda fork: fork.name)
def test_header_that_keeps_the_rules_is_valid(fork):
    parent = PARENTS[fork]
    validate_header(child(parent, fork), parent, fork, CONFIG)


GAS_LIMIT_STEP = HEADER.gas_limit // 1024
FAULTS = [
    (forks.FRONTIER, {"number": 9}, "number: invalid block number"),
    (forks.FRONTIER, {"parent_hash": ZERO_HASH}, "parent hash: unknown ancestor"),
    (
        forks.FRONTIER,
        {"timestamp": 12},
        "timestamp: timestamp older than parent (12 is not after 12)",
    ),
    (forks.PARIS, {"timestamp": 12}, "timestamp: invalid timestamp (12 is not after"),
    (forks.FRONTIER, {"timestamp": 2**64}, "timestamp: 18446744073709551616 exceeds"),
    (
        forks.FRONTIER,
        {"extra_data": bytes(33)},
        "extra data: extra-data too long: 33 > 32",
    ),
    (
        forks.PARIS,
        {"extra_data": bytes(33)},
        "extra data: extra-data longer than 32 bytes (33)",
    ),
    (
        forks.FRONTIER,
        {"gas_used": 30_000_001},
        "gas used: invalid gasUsed: have 30000001, gasLimit 30000000",
    ),
    (
        forks.FRONTIER,
        {"gas_limit": 2**63},
        "gas limit: invalid gasLimit: have 9223372036854775808, max 92233720368547758",
    ),
    (
        forks.FRONTIER,
        {"gas_limit": HEADER.gas_limit + GAS_LIMIT_STEP},
        "gas limit: invalid gas limit: have 30029296, want 30000000 +/- 29295",
    ),
    (
        forks.FRONTIER,
        {"gas_limit": HEADER.gas_limit - GAS_LIMIT_STEP},
        "gas limit: invalid gas limit: have 29970704, want 30000000 +/- 29295",
    ),
    (
        forks.FRONTIER,
        {"difficulty": 2**20},
        "difficulty: invalid difficulty: have 1048576, want 1048064",
    ),
    (
        forks.FRONTIER,
        {"base_fee_per_gas": 1},
        "base fee per gas: invalid baseFee before fork: have 1, expected 'nil'",
    ),
    (
        forks.LONDON,
        {"base_fee_per_gas": 875_000_001},
        "base fee per gas: invalid baseFee: have 875000001, want 875000000, "
        "parentBaseFee 1000000000, parentGasUsed 0",
    ),
    (
        forks.LONDON,
        {"base_fee_per_gas": None},
        "base fee per gas: header is missing baseFee",
    ),
    (
        forks.PARIS,
        {"difficulty": 1},
        "difficulty: invalid difficulty: have 1, want 0",
    ),
    (forks.PRAGUE, {"difficulty": 1}, "difficulty: invalid terminal block"),
    (forks.PARIS, {"nonce": b"\x01" * 8}, "nonce: invalid nonce"),
    (forks.PARIS, {"uncles_hash": ZERO_HASH}, "uncles hash: invalid uncle hash"),
    (
        forks.PARIS,
        {"withdrawals_root": ZERO_HASH},
        f"withdrawals root: invalid withdrawalsHash: have {'00' * 32}, expected nil",
    ),
    (
        forks.CANCUN,
        {**dict.fromkeys(BLOB_FIELDS)},
        "parent beacon block root: header is missing beaconRoot",
    ),
    (
        forks.SHANGHAI,
        {"blob_gas_used": 0, "excess_blob_gas": 5, "parent_beacon_root": ZERO_HASH},
        "parent beacon block root: invalid parentBeaconRoot, have 0x00",
    ),
    (
        forks.PRAGUE,
        {"requests_hash": None},
        "requests hash: header is missing requestsHash",
    ),
    (
        forks.CANCUN,
        {"requests_hash": ZERO_HASH},
        "requests hash: invalid requestsHash: have 00",
    ),
    (
        forks.CANCUN,
        {"blob_gas_used": 7 * BLOB_GAS},
        "blob gas used: blob gas used 917504 exceeds maximum allowance 786432",
    ),
    (
        forks.CANCUN,
        {"blob_gas_used": 1},
        "blob gas used: blob gas used 1 not a multiple of blob gas per blob 131072",
    ),
    (
        forks.CANCUN,
        {"excess_blob_gas": 1},
        "excess blob gas: invalid excessBlobGas: have 1, want 0",
    ),
]


@pytest.mark.parametrize(("fork", "changes", "message"), FAULTS)
def test_header_that_breaks_a_rule_is_refused_by_field(fork, changes, message):
    parent = PARENTS[fork]
    header = child(parent, fork, **changes)
    with pytest.raises(InvalidBlock) as caught:
        validate_header(header, parent, fork, CONFIG)
    assert caught.value.summary.startswith(message)
    where = f"block {header.number} (0x{header.hash.hex()}): {message}"
    assert str(caught.value).startswith(where)
    assert "\n" not in str(caught.value)


def test_shanghai_lacks_a_withdrawals_root():
    parent = PARENTS[forks.SHANGHAI]
    header = child(parent, forks.PARIS)
    with pytest.raises(InvalidBlock, match="withdrawals root: missing withdrawalsHash"):
        validate_header(header, parent, forks.SHANGHAI, CONFIG)


def test_gas_limit_has_a_lowest_value():
    parent = dataclasses.replace(MINED, gas_limit=5001)
    at_bound = child(parent, forks.FRONTIER, gas_limit=5000)
    validate_header(at_bound, parent, forks.FRONTIER, CONFIG)
    below = child(at_bound, forks.FRONTIER, gas_limit=4999)
    with pytest.raises(InvalidBlock, match="gas limit: invalid gas limit below 5000"):
        validate_header(below, at_bound, forks.FRONTIER, CONFIG)


def test_gas_limit_doubles_where_london_begins():
    header = child(MINED, forks.LONDON, gas_limit=2 * MINED.gas_limit)
    validate_header(header, MINED, forks.LONDON, CONFIG)
    assert header.base_fee_per_gas == 10**9
    with pytest.raises(InvalidBlock, match="gas limit"):
        validate_header(child(MINED, forks.LONDON), MINED, forks.LONDON, CONFIG)


@pytest.mark.parametrize(
    ("base_fee", "gas_used", "expected"),
    [
        (10**9, 15_000_000, 10**9),
        (10**9, 30_000_000, 1_125_000_000),
        (10**9, 0, 875_000_000),
        (10**9, 7_500_000, 937_500_000),
        (7, 15_000_001, 8),
        (7, 14_999_999, 7),
        (0, 0, 0),
        (0, 30_000_000, 1),
    ],
)
def test_base_fee_follows_the_gas_used(base_fee, gas_used, expected):
    parent = dataclasses.replace(HEADER, base_fee_per_gas=base_fee, gas_used=gas_used)
    assert next_base_fee(parent) == expected


def test_excess_blob_gas_follows_the_parents_blobs():
    parent = dataclasses.replace(MERGED, blob_gas_used=9 * BLOB_GAS)
    header = child(parent, forks.PRAGUE, excess_blob_gas=3 * BLOB_GAS)
    validate_header(header, parent, forks.PRAGUE, CONFIG)


@pytest.mark.parametrize(
    ("supports", "number", "extra_data", "is_valid"),
    [
        (True, 10, b"dao-hard-fork", True),
        (True, 19, b"other", False),
        (True, 20, b"other", True),
        (True, 9, b"other", True),
        (False, 10, b"dao-hard-fork", False),
        (False, 10, b"other", True),
        (False, 20, b"dao-hard-fork", True),
    ],
)
def test_extra_data_distinguishes_the_sides_of_the_dao_fork(
    supports, number, extra_data, is_valid
):
    config = ChainConfig.from_genesis(
        {
            "config": {
                "chainId": 1,
                "homesteadBlock": 0,
                "daoForkBlock": 10,
                "daoForkSupport": supports,
            }
        }
    )
    parent = dataclasses.replace(MINED, number=number - 1)
    header = child(parent, forks.HOMESTEAD, extra_data=extra_data)
    if is_valid:
        validate_header(header, parent, forks.HOMESTEAD, config)
    else:
        side = "pro" if supports else "no"
        with pytest.raises(InvalidBlock, match=f"bad DAO {side}-fork extra-data"):
            validate_header(header, parent, forks.HOMESTEAD, config)


class Family:
    """Eight consecutive blocks. The uncles are checked for the last one."""

    def __init__(self):
        self.headers = [MINED]
        for _ in range(8):
            self.headers.append(child(self.headers[-1], forks.HOMESTEAD))
        self.included = {}

    def uncle(self, depth, **changes):
        """Return a valid header, `depth` generations older than the nephew."""
        parent = self.headers[-2 - depth]
        return child(parent, forks.HOMESTEAD, **{"coinbase": b"\x09" * 20} | changes)

    def check(self, *uncles):
        ancestry = [
            Generation(header, self.included.get(header.number, ()))
            for header in reversed(self.headers[:-1])
        ]
        validate_uncles(Block(self.headers[-1], (), uncles), ancestry, CONFIG)


@pytest.fixture
def family():
    return Family()


def test_uncles_of_one_to_six_generations_are_valid(family):
    family.check()
    for depth in range(1, 7):
        family.check(family.uncle(depth))
    family.check(family.uncle(1), family.uncle(1, extra_data=b"other"))


def test_uncles_out_of_reach_are_refused(family):
    for depth in (0, 7):
        with pytest.raises(
            InvalidBlock, match="uncle 0: uncle's parent is not ancestor"
        ):
            family.check(family.uncle(depth))


def test_uncles_are_at_most_two(family):
    with pytest.raises(InvalidBlock, match="uncles: too many uncles"):
        family.check(*[family.uncle(depth) for depth in (1, 2, 3)])


def test_uncle_is_included_once(family):
    uncle = family.uncle(3)
    with pytest.raises(InvalidBlock, match="uncle 1: duplicate uncle"):
        family.check(uncle, uncle)
    family.included[family.headers[-3].number] = [uncle.hash]
    with pytest.raises(InvalidBlock, match="uncle 0: duplicate uncle"):
        family.check(uncle)


def test_ancestor_is_no_uncle(family):
    with pytest.raises(InvalidBlock, match="uncle 0: uncle is ancestor"):
        family.check(family.headers[-3])


def test_uncle_keeps_the_rules_of_headers(family):
    uncle = family.uncle(2, difficulty=1)
    with pytest.raises(InvalidBlock) as caught:
        family.check(uncle)
    assert caught.value.number == family.headers[-1].number
    assert "uncle 0: difficulty: invalid difficulty: have 1, want" in str(caught.value)


def test_all_headers_and_uncles_of_the_conformance_chain_keep_the_rules():
    genesis = execution_apis.genesis()
    config = ChainConfig.from_genesis(genesis)
    blocks = execution_apis.blocks()
    zero = genesis_block(genesis, config, state_root(genesis_accounts(genesis)))
    total = zero.header.difficulty
    generations = [Generation(zero.header, ())]
    names, uncles = set(), 0
    for parent, block in pairwise([zero, *blocks]):
        header = block.header
        fork = config.fork_at(header.number, header.timestamp, config.is_merged(total))
        validate_header(header, parent.header, fork, config)
        validate_uncles(block, generations, config)
        generations.insert(0, Generation(header, [u.hash for u in block.uncles]))
        total += header.difficulty
        names.add(fork.name)
        uncles += len(block.uncles)
    assert names >= {"homestead", "london", "paris", "cancun", "osaka", "bpo1", "bpo2"}
    assert uncles > 0
