"""The fork schedule of a network as eth_config reports it.

Source: https://eips.ethereum.org/EIPS/eip-7910; https://eips.ethereum.org/EIPS/eip-2124
and -6122 for fork ids; go-ethereum internal/ethapi/api.go, core/forkid
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evm.chain_config import ChainConfig
from evm.execution import BEACON_ROOTS_ADDRESS, HISTORY_STORAGE_ADDRESS
from evm.hexadecimal import to_hex
from evm.requests import (
    BUILDER_DEPOSIT_ADDRESS,
    BUILDER_EXIT_ADDRESS,
    CONSOLIDATION_REQUEST_ADDRESS,
    WITHDRAWAL_REQUEST_ADDRESS,
)
from evm.rules.fork import Fork

_PRECOMPILE_NAMES = {
    0x1: "ECREC",
    0x2: "SHA256",
    0x3: "RIPEMD160",
    0x4: "ID",
    0x5: "MODEXP",
    0x6: "BN254_ADD",
    0x7: "BN254_MUL",
    0x8: "BN254_PAIRING",
    0x9: "BLAKE2F",
    0xA: "KZG_POINT_EVALUATION",
    0xB: "BLS12_G1ADD",
    0xC: "BLS12_G1MSM",
    0xD: "BLS12_G2ADD",
    0xE: "BLS12_G2MSM",
    0xF: "BLS12_PAIRING_CHECK",
    0x10: "BLS12_MAP_FP_TO_G1",
    0x11: "BLS12_MAP_FP2_TO_G2",
    0x100: "P256VERIFY",
}
"""Names of precompiled contracts in EIP-7910, by their addresses as numbers."""


@dataclass(frozen=True, slots=True)
class Genesis:
    """The data that fork ids depend on, in addition to the schedule.

    config: of genesis.json. hash, timestamp: of block 0.
    """

    config: Mapping[str, Any]
    hash: bytes
    timestamp: int


def fork_config(
    config: ChainConfig, genesis: Genesis, head_timestamp: int
) -> dict[str, Any]:
    """Return the result of eth_config: the active, the next and the last fork.

    Only forks by time are reported. Without an active one, the result is null for all
    three. If no later fork is scheduled, next and last are null.
    """
    forks = list(dict(config.time_forks).items())
    active = bisect_right(forks, head_timestamp, key=lambda entry: entry[0])
    later = forks[active:]

    def described(entry: tuple[int, Fork]) -> dict[str, Any]:
        return _fork(*entry, config, genesis)

    return {
        "current": described(forks[active - 1]) if active else None,
        "next": described(later[0]) if later else None,
        "last": described(later[-1]) if later else None,
    }


def system_contracts(fork: Fork, config: ChainConfig) -> dict[str, bytes]:
    """Return the addresses of a fork's system contracts, by the names of EIP-7910."""
    contracts: dict[str, bytes] = {}
    if fork.has_parent_beacon_root:
        contracts["BEACON_ROOTS_ADDRESS"] = BEACON_ROOTS_ADDRESS
    if fork.has_history_contract:
        contracts["HISTORY_STORAGE_ADDRESS"] = HISTORY_STORAGE_ADDRESS
    if fork.has_requests:
        contracts |= {
            "DEPOSIT_CONTRACT_ADDRESS": config.deposit_contract,
            "WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS": WITHDRAWAL_REQUEST_ADDRESS,
            "CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS": CONSOLIDATION_REQUEST_ADDRESS,
        }
    if fork.has_builder_requests:
        contracts |= {
            "BUILDER_DEPOSIT_CONTRACT_ADDRESS": BUILDER_DEPOSIT_ADDRESS,
            "BUILDER_EXIT_CONTRACT_ADDRESS": BUILDER_EXIT_ADDRESS,
        }
    return contracts


def _fork(
    time: int, fork: Fork, config: ChainConfig, genesis: Genesis
) -> dict[str, Any]:
    """Describe a fork. time: Unix seconds of its activation."""
    blobs = fork.blob_parameters
    return {
        "activationTime": 0 if time <= genesis.timestamp else time,
        "blobSchedule": None
        if blobs is None
        else {
            "target": blobs.target,
            "max": blobs.max,
            "baseFeeUpdateFraction": blobs.base_fee_update_fraction,
        },
        "chainId": hex(config.chain_id),
        "forkId": f"0x{fork_id(genesis, time):08x}",
        "precompiles": {
            _PRECOMPILE_NAMES[int.from_bytes(address)]: to_hex(address)
            for address in sorted(fork.precompiles)
        },
        "systemContracts": {
            name: to_hex(address)
            for name, address in sorted(system_contracts(fork, config).items())
        },
    }


def fork_id(genesis: Genesis, time: int) -> int:
    """Return the fork id, a CRC-32, after all forks by number and those up to a time."""
    blocks, times = set(), set()
    for key, value in genesis.config.items():
        if value is None or isinstance(value, dict | list):
            continue
        if key.endswith("Block"):
            blocks.add(_number(value))
        elif key.endswith("Time"):
            times.add(_number(value))
    checksum = zlib.crc32(genesis.hash)
    passed = [number for number in sorted(blocks) if number]
    passed += [each for each in sorted(times) if genesis.timestamp < each <= time]
    for position in passed:
        checksum = zlib.crc32(position.to_bytes(8), checksum)
    return checksum


def _number(value: Any) -> int:
    return int(value, 0) if isinstance(value, str) else int(value)
