"""Real blocks of public networks with the state that they read, if available.

The data is in `real-blocks` of the folder that CONFORMANCE_DATA names, or of `data` in the
`shared` folder beside the project. Its README.md describes the files. Nothing is copied.
"""

from __future__ import annotations

import json
import lzma
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from eth_typing import Address, Hash32

from evm.blocks import Block, Withdrawal
from evm.chain_config import ChainConfig
from evm.changes import AccountValue, Changes
from evm.headers import ZERO_HASH, decode_header
from evm.proof_nodes import ProofNodes
from evm.public import PUBLIC_NETWORKS
from evm.state_trie import StateTrie
from evm.transactions import decode_transaction
from evm.world import EMPTY_CODE_HASH
from nodeapi.chain.memory_state import MemoryState
from nodeapi.chain.position import ANCESTORS_KEPT
from nodeapi.chain.replay import Origin
from nodeapi.proofs.past_state import PastState

PROJECT = Path(__file__).resolve().parents[2]

HOLESKY: dict[str, Any] = {
    "chainId": 17000,
    "shanghaiTime": 1696000704,
    "cancunTime": 1707305664,
    "pragueTime": 1740434112,
    "depositContractAddress": "0x4242424242424242424242424242424242424242",
}
"""What Holesky's config has up to Prague, apart from the part that it shares with Hoodi's.
"""


def folder() -> Path:
    """Return the folder of the blocks. It may not exist."""
    named = os.environ.get("CONFORMANCE_DATA")
    data = Path(named) if named else PROJECT.parent / "shared" / "data"
    return data / "real-blocks"


def paths() -> list[Path]:
    """Return the file of each block, in the order of networks and numbers."""
    return sorted(folder().glob("*-*.json.xz"))


@dataclass(frozen=True, slots=True)
class RealBlock:
    """A block, its parent's state, and what has to match its header."""

    origin: Origin
    trie: StateTrie
    """At the parent's state. The root is only right if `checks` has the state root."""
    checks: frozenset[str]
    fork: str
    """The fork's name in the data."""


@cache
def read(path: Path) -> dict[str, Any]:
    """Return the content of a file."""
    data: dict[str, Any] = json.loads(lzma.decompress(path.read_bytes()))
    return data


def load(path: Path) -> RealBlock:
    """Return the block of a file."""
    data = read(path)
    header = decode_header(bytes.fromhex(data["header"]))
    withdrawals = data["withdrawals"]
    block = Block(
        header,
        [decode_transaction(bytes.fromhex(raw)) for raw in data["transactions"]],
        [decode_header(bytes.fromhex(raw)) for raw in data["uncles"] or ()],
        None
        if withdrawals is None
        else [
            Withdrawal(
                int(index), int(validator), Address(bytes.fromhex(to)), _int(gwei)
            )
            for index, validator, to, gwei in withdrawals
        ],
    )
    config = _config(data["network"])
    fork = config.fork_at(header.number, header.timestamp, header.difficulty == 0)
    hashes = [
        bytes.fromhex(
            data["ancestors"].get(str(header.number - depth), ZERO_HASH.hex())
        )
        for depth in range(1, ANCESTORS_KEPT + 1)
    ]
    codes = codes_of(data)
    state: MemoryState | PastState
    if data["nodes"]:
        root = Hash32(bytes.fromhex(data["pre_state_root"]))
        state = PastState(root, ProofNodes(map(bytes.fromhex, data["nodes"])), codes)
    else:
        state = _plain_state(data["accounts"], data["storage"], codes)
    return RealBlock(
        Origin(block, fork, config, state, [header.parent_hash, *hashes[1:]]),
        state.open_trie(),
        frozenset(data["checks"]),
        data["fork"],
    )


def codes_of(data: dict[str, Any]) -> dict[Hash32, bytes]:
    """Return the contract code that a block reads, by its hash."""
    return {
        Hash32(bytes.fromhex(name)): bytes.fromhex(_codes()[name])
        for name in data["codes"]
    }


@cache
def _codes() -> dict[str, str]:
    """Return all contract code by its hash, in hex."""
    codes: dict[str, str] = json.loads(
        lzma.decompress((folder() / "codes.json.xz").read_bytes())
    )
    return codes


@cache
def _config(network: str) -> ChainConfig:
    return ChainConfig.from_genesis(genesis_config(network))


def genesis_config(network: str) -> dict[str, Any]:
    """Return the genesis.json of a network, at least its config."""
    if network in PUBLIC_NETWORKS:
        genesis = PUBLIC_NETWORKS[network].genesis()
        return {key: value for key, value in genesis.items() if key != "alloc"}
    assert network == "holesky"
    hoodi = PUBLIC_NETWORKS["hoodi"].genesis()["config"]
    common = {key: value for key, value in hoodi.items() if not key.endswith("Time")}
    return {"config": {**common, **HOLESKY}}


def _int(value: int | str) -> int:
    return int(value, 0) if isinstance(value, str) else value


def _plain_state(
    accounts: Mapping[str, Any],
    storage: Mapping[str, Mapping[str, str]],
    codes: dict[Hash32, bytes],
) -> MemoryState:
    """Return a state that only consists of what the block reads."""
    changes = Changes()
    for address, (nonce, balance, code_hash) in accounts.items():
        code = (
            EMPTY_CODE_HASH if code_hash is None else Hash32(bytes.fromhex(code_hash))
        )
        value = AccountValue(_int(nonce), _int(balance), code, None)
        changes.accounts[Address(bytes.fromhex(address))] = value
    for address, slots in storage.items():
        changes.storage[Address(bytes.fromhex(address))] = {
            _int(slot): _int(value) for slot, value in slots.items()
        }
    changes.codes = codes
    state = MemoryState()
    state.apply(changes)
    return state
