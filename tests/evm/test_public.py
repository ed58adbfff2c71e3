"""The built-in networks: the hash of block 0, and the activation of forks."""

from __future__ import annotations

import pytest

from evm.chain_config import ChainConfig
from evm.public import PUBLIC_NETWORKS
from evm.rules.fork import BlobParameters
from nodeapi.chain.genesis import verified_genesis

FORKS = {
    # Source: https://github.com/ethereum/execution-specs, network upgrades; EIP-7607;
    # EIP-7892; EIP-7773
    "mainnet": [
        *(("frontier", 1_149_999, 0), ("homestead", 1_150_000, 0)),
        *(("tangerine_whistle", 2_463_000, 0), ("spurious_dragon", 2_675_000, 0)),
        *(("byzantium", 4_370_000, 0), ("petersburg", 7_280_000, 0)),
        *(("istanbul", 9_069_000, 0), ("muir_glacier", 9_200_000, 0)),
        *(("berlin", 12_244_000, 0), ("london", 12_965_000, 0)),
        *(("arrow_glacier", 13_773_000, 0), ("gray_glacier", 15_050_000, 0)),
        *(("paris", 15_537_394, 1_681_338_454), ("shanghai", 2**40, 1_681_338_455)),
        *(("cancun", 2**40, 1_710_338_135), ("prague", 2**40, 1_746_612_311)),
        *(("osaka", 2**40, 1_764_798_551), ("bpo1", 2**40, 1_765_290_071)),
        ("bpo2", 2**40, 1_767_747_671),
    ],
    "sepolia": [
        *(("london", 0, 0), ("paris", 1_735_371, 1_677_557_087)),
        *(("shanghai", 2**40, 1_677_557_088), ("cancun", 2**40, 1_706_655_072)),
        *(("prague", 2**40, 1_741_159_776), ("osaka", 2**40, 1_760_427_360)),
        *(("bpo1", 2**40, 1_761_017_184), ("bpo2", 2**40, 1_761_607_008)),
        *(("bpo2", 2**40, 1_791_294_815), ("amsterdam", 2**40, 1_791_294_816)),
    ],
    "hoodi": [
        *(("cancun", 1, 1_742_999_831), ("prague", 2**40, 1_742_999_832)),
        *(("osaka", 2**40, 1_761_677_592), ("bpo1", 2**40, 1_762_365_720)),
        ("bpo2", 2**40, 1_762_955_544),
    ],
}


@pytest.mark.parametrize("name", PUBLIC_NETWORKS)
def test_block_0_has_the_known_hash(name: str) -> None:
    network = PUBLIC_NETWORKS[name]
    genesis = network.genesis()
    config = ChainConfig.from_genesis(genesis)
    assert config.chain_id == network.chain_id
    verified, _ = verified_genesis(genesis, config)
    assert verified.block.header.hash == network.genesis_hash


@pytest.mark.parametrize("name", PUBLIC_NETWORKS)
def test_forks_begin_at_their_blocks_and_times(name: str) -> None:
    config = ChainConfig.from_genesis(PUBLIC_NETWORKS[name].genesis())
    found = [
        config.fork_at(number, time, is_merged=time > 0).name
        for _, number, time in FORKS[name]
    ]
    assert found == [fork for fork, _, _ in FORKS[name]]
    last = config.fork_at(2**40, 2**40, is_merged=True)
    assert last.blob_parameters == BlobParameters(14, 21, 11_684_671)
    assert config.unknown_forks == ()


def test_deposit_contracts_and_the_merge_are_those_of_each_network() -> None:
    configs = {
        name: ChainConfig.from_genesis(network.genesis())
        for name, network in PUBLIC_NETWORKS.items()
    }
    found = {name: config.deposit_contract.hex() for name, config in configs.items()}
    assert found == {
        "mainnet": "00000000219ab540356cbb839cbe05303d7705fa",
        "sepolia": "7f02c3e3c98b133055b8b348b2ac625669ed295d",
        "hoodi": "00000000219ab540356cbb839cbe05303d7705fa",
    }
    ends = {name: c.terminal_total_difficulty for name, c in configs.items()}
    assert ends == {
        "mainnet": 58_750_000_000_000_000_000_000,
        "sepolia": 17_000_000_000_000_000,
        "hoodi": 0,
    }
    assert configs["mainnet"].dao_fork_block == 1_920_000


def test_the_files_are_small() -> None:
    sizes = [network.path.stat().st_size for network in PUBLIC_NETWORKS.values()]
    assert sum(sizes) < 500_000
