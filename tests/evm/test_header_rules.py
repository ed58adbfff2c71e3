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
    (forks.FRONTIER, {"number": 9}, "number: expected 8, got 9"),
    (forks.FRONTIER, {"parent_hash": ZERO_HASH}, "parent hash: expected 0x"),
    (forks.FRONTIER, {"timestamp": 12}, "timestamp: 12 is not after the parent's 12"),
    (forks.FRONTIER, {"timestamp": 2**64}, "timestamp: 18446744073709551616 exceeds"),
    (forks.FRONTIER, {"extra_data": bytes(33)}, "extra data: 33 bytes exceed 32"),
    (forks.FRONTIER, {"gas_used": 30_000_001}, "gas used: 30000001 exceeds"),
    (
        forks.FRONTIER,
        {"gas_limit": HEADER.gas_limit + GAS_LIMIT_STEP},
        "gas limit: 30029296 is too far",
    ),
    (
        forks.FRONTIER,
        {"gas_limit": HEADER.gas_limit - GAS_LIMIT_STEP},
        "gas limit: 29970704 is too far",
    ),
    (forks.FRONTIER, {"difficulty": 2**20}, "difficulty: expected"),
    (forks.FRONTIER, {"base_fee_per_gas": 1}, "base fee per gas: frontier does not"),
    (forks.LONDON, {"base_fee_per_gas": 875_000_001}, "base fee per gas: expected 8"),
    (forks.LONDON, {"base_fee_per_gas": None}, "base fee per gas: london lacks"),
    (forks.PARIS, {"difficulty": 1}, "difficulty: expected 0, got 1"),
    (forks.PARIS, {"nonce": b"\x01" * 8}, "nonce: expected 0x0000000000000000, got"),
    (forks.PARIS, {"uncles_hash": ZERO_HASH}, "uncles hash: expected 0x1dcc"),
    (forks.PARIS, {"withdrawals_root": ZERO_HASH}, "withdrawals root: paris does not"),
    (
        forks.PRAGUE,
        {"requests_hash": None},
        "requests hash: prague lacks this header field",
    ),
    (
        forks.CANCUN,
        {"requests_hash": ZERO_HASH},
        "requests hash: cancun does not know this header field",
    ),
    (forks.CANCUN, {"blob_gas_used": 7 * BLOB_GAS}, "blob gas used: 917504 exceeds"),
    (forks.CANCUN, {"blob_gas_used": 1}, "blob gas used: 1 is no multiple"),
    (forks.CANCUN, {"excess_blob_gas": 1}, "excess blob gas: expected 0, got 1"),
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
    with pytest.raises(InvalidBlock, match="withdrawals root: shanghai lacks"):
        validate_header(header, parent, forks.SHANGHAI, CONFIG)


def test_gas_limit_has_a_lowest_value():
    parent = dataclasses.replace(MINED, gas_limit=5001)
    at_bound = child(parent, forks.FRONTIER, gas_limit=5000)
    validate_header(at_bound, parent, forks.FRONTIER, CONFIG)
    below = child(at_bound, forks.FRONTIER, gas_limit=4999)
    with pytest.raises(InvalidBlock, match="gas limit: 4999 is not between 5000"):
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
        with pytest.raises(InvalidBlock, match="extra data: takes the other side"):
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
        with pytest.raises(InvalidBlock, match=r"uncle 0: 0x.* is no child"):
            family.check(family.uncle(depth))


def test_uncles_are_at_most_two(family):
    with pytest.raises(InvalidBlock, match="uncles: 3 exceed 2"):
        family.check(*[family.uncle(depth) for depth in (1, 2, 3)])


def test_uncle_is_included_once(family):
    uncle = family.uncle(3)
    with pytest.raises(InvalidBlock, match=r"uncle 1: 0x.* is included already"):
        family.check(uncle, uncle)
    family.included[family.headers[-3].number] = [uncle.hash]
    with pytest.raises(InvalidBlock, match=r"uncle 0: 0x.* is included already"):
        family.check(uncle)


def test_ancestor_is_no_uncle(family):
    with pytest.raises(InvalidBlock, match=r"uncle 0: 0x.* is an ancestor"):
        family.check(family.headers[-3])


def test_uncle_keeps_the_rules_of_headers(family):
    uncle = family.uncle(2, difficulty=1)
    with pytest.raises(InvalidBlock) as caught:
        family.check(uncle)
    assert caught.value.number == family.headers[-1].number
    assert "uncle 0: difficulty: expected" in str(caught.value)


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
