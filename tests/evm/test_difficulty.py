import random
from types import SimpleNamespace

from eth.constants import EMPTY_UNCLE_HASH
from eth.vm.forks.arrow_glacier.headers import compute_arrow_glacier_difficulty
from eth.vm.forks.byzantium.headers import compute_byzantium_difficulty
from eth.vm.forks.constantinople.headers import compute_constantinople_difficulty
from eth.vm.forks.frontier.headers import compute_frontier_difficulty
from eth.vm.forks.gray_glacier.headers import compute_gray_glacier_difficulty
from eth.vm.forks.homestead.headers import compute_homestead_difficulty
from eth.vm.forks.london.headers import compute_london_difficulty
from eth.vm.forks.muir_glacier.headers import compute_muir_glacier_difficulty

from evm.chain_config import LADDER

RULES = {
    "frontier": compute_frontier_difficulty,
    "homestead": compute_homestead_difficulty,
    "byzantium": compute_byzantium_difficulty,
    "constantinople": compute_constantinople_difficulty,
    "muir_glacier": compute_muir_glacier_difficulty,
    "london": compute_london_difficulty,
    "arrow_glacier": compute_arrow_glacier_difficulty,
    "gray_glacier": compute_gray_glacier_difficulty,
}


def test_every_fork_computes_the_difficulty_that_py_evm_computes():
    choose = random.Random(1)
    for name, rule in RULES.items():
        for _ in range(200):
            has_uncles = choose.random() < 0.5
            parent = SimpleNamespace(
                difficulty=choose.choice([131_072, 10**6, 3 * 10**15]),
                timestamp=1000,
                block_number=choose.choice(
                    [0, 199_998, 200_000, 4_000_000, 15_000_000]
                ),
                uncles_hash=b"" if has_uncles else EMPTY_UNCLE_HASH,
            )
            timestamp = 1000 + choose.choice([1, 8, 9, 10, 12, 13, 40, 900, 5000])
            assert LADDER[name].difficulty(
                parent.difficulty,
                parent.timestamp,
                timestamp,
                parent.block_number + 1,
                has_uncles,
            ) == rule(parent, timestamp)


def test_difficulty_never_falls_below_the_minimum():
    for name in ("frontier", "homestead", "byzantium"):
        assert LADDER[name].difficulty(131_072, 0, 10_000, 1, False) == 131_072


def test_no_difficulty_is_demanded_after_the_merge():
    assert LADDER["paris"].difficulty is None
