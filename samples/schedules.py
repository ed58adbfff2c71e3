"""A genesis.json for generated chains, with the forks' first blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evm.hexadecimal import to_hex
from samples.signers import Signer
from samples.system_contracts import DEPOSIT_CONTRACT, system_contracts_alloc

GENESIS_TIME = 1_700_000_000
SECONDS_PER_BLOCK = 12
GAS_LIMIT = 30_000_000
"""London doubles it, unless London is active in the genesis block."""
DIFFICULTY = 0x20000

BLOCK_KEYS = {
    "homestead": ("homesteadBlock",),
    "tangerine_whistle": ("eip150Block",),
    "spurious_dragon": ("eip155Block", "eip158Block"),
    "byzantium": ("byzantiumBlock",),
    "constantinople": ("constantinopleBlock",),
    "petersburg": ("petersburgBlock",),
    "istanbul": ("istanbulBlock",),
    "muir_glacier": ("muirGlacierBlock",),
    "berlin": ("berlinBlock",),
    "london": ("londonBlock",),
    "arrow_glacier": ("arrowGlacierBlock",),
    "gray_glacier": ("grayGlacierBlock",),
    "paris": ("mergeNetsplitBlock",),
}
TIME_FORKS = ("shanghai", "cancun", "prague", "osaka", "bpo1", "bpo2", "amsterdam")
LADDER = ("frontier", *BLOCK_KEYS, *TIME_FORKS)
"""All forks, in order of activation."""

BLOB_SCHEDULE = {
    "cancun": (3, 6, 3_338_477),
    "prague": (6, 9, 5_007_716),
    "osaka": (6, 9, 5_007_716),
    "bpo1": (10, 15, 8_346_193),
    "bpo2": (14, 21, 11_684_671),
}
"""Mainnet's values: target and maximum of blobs in a block, base fee update fraction.
"""


def from_genesis(fork: str) -> dict[str, int]:
    """Return the first blocks of a fork and of all forks before it: all of them 0."""
    return dict.fromkeys(LADDER[1 : LADDER.index(fork) + 1], 0)


def make_genesis(
    *,
    chain_id: int,
    first_blocks: Mapping[str, int],
    alloc: Mapping[str, Any],
    terminal_total_difficulty: int = 0,
    extra_data: bytes = b"",
) -> dict[str, Any]:
    """Return a genesis.json that includes the system contracts.

    first_blocks: fork → number of its first block. Forks by time get the timestamp of
        that block at the usual interval. Absent forks are never activated.
    terminal_total_difficulty: ignored unless `first_blocks` contains Paris. It has to
        be reached just before Paris' first block.
    """
    config = _forks(first_blocks)
    if "paris" in first_blocks:
        config["terminalTotalDifficulty"] = terminal_total_difficulty
    return {
        "config": {
            "chainId": chain_id,
            **config,
            "ethash": {},
            "depositContractAddress": f"0x{DEPOSIT_CONTRACT.hex()}",
        },
        "nonce": "0x0",
        "timestamp": hex(GENESIS_TIME),
        "extraData": f"0x{extra_data.hex()}",
        "gasLimit": hex(GAS_LIMIT),
        "difficulty": hex(DIFFICULTY),
        "mixHash": f"0x{'00' * 32}",
        "coinbase": f"0x{'00' * 20}",
        "alloc": {
            **system_contracts_alloc(has_builders="amsterdam" in first_blocks),
            **alloc,
        },
    }


def fork_genesis(
    fork: str, *signers: Signer, chain_id: int = 7, **alloc: Any
) -> dict[str, Any]:
    """Return a genesis.json that has a fork from block 0 on, and 1,000 ether per signer.

    alloc: further accounts by address.
    """
    rich = {to_hex(signer.address): {"balance": hex(10**21)} for signer in signers}
    return make_genesis(
        chain_id=chain_id, first_blocks=from_genesis(fork), alloc=rich | alloc
    )


def _forks(first_blocks: Mapping[str, int]) -> dict[str, Any]:
    config: dict[str, Any] = {}
    for fork, keys in BLOCK_KEYS.items():
        if fork in first_blocks:
            config.update(dict.fromkeys(keys, first_blocks[fork]))
    for fork in TIME_FORKS:
        if fork in first_blocks:
            time = GENESIS_TIME + SECONDS_PER_BLOCK * first_blocks[fork]
            config[f"{fork}Time"] = time
    config["blobSchedule"] = {
        fork: {"target": target, "max": most, "baseFeeUpdateFraction": fraction}
        for fork, (target, most, fraction) in BLOB_SCHEDULE.items()
        if fork in first_blocks
    }
    return config
