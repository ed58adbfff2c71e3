"""The public networks: block 0 and the fork schedule of each, by name.

`NAME.json.xz` is a genesis.json as `geth dumpgenesis` of go-ethereum 1.17.10 prints it
(core/genesis_alloc.go, params/chainspecs), with sorted keys and without whitespace.
`python -m evm.public GETH` writes the files again.
"""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eth_typing import Hash32

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class PublicNetwork:
    """A public network.

    title: the usual name. genesis_hash: the hash of block 0.
    final_total_difficulty: the total difficulty of the last block before the merge, and of
        all blocks since.
    explorer: an explorer's URL. from_block_0: time and disk that all blocks from block 0 on
        take, estimated from the chain's gas in 2026.
    """

    name: str
    title: str
    chain_id: int
    genesis_hash: Hash32
    final_total_difficulty: int
    explorer: str
    from_block_0: str

    @property
    def path(self) -> Path:
        """The compressed file with the network's genesis.json."""
        return FOLDER / f"{self.name}.json.xz"

    def genesis(self) -> dict[str, Any]:
        """Return the network's genesis.json, with config and alloc."""
        document: dict[str, Any] = json.loads(lzma.decompress(self.path.read_bytes()))
        return document


def _network(
    name: str,
    title: str,
    chain_id: int,
    genesis_hash: str,
    *rest: *tuple[int, str, str],
) -> PublicNetwork:
    block_0 = Hash32(bytes.fromhex(genesis_hash))
    return PublicNetwork(name, title, chain_id, block_0, *rest)


PUBLIC_NETWORKS = {
    network.name: network
    for network in (
        _network(
            "mainnet",
            "Ethereum mainnet",
            1,
            "d4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3",
            58_750_003_716_598_352_816_469,
            "https://etherscan.io",
            "about a year of execution and more than 5 TB",
        ),
        _network(
            "sepolia",
            "Sepolia",
            11_155_111,
            "25a5cc106eea7138acab33231d7160d69cb777ee0c2c553fcddf5138993e6dd9",
            17_000_018_015_853_232,
            "https://sepolia.etherscan.io",
            "about three months of execution and more than 2 TB",
        ),
        _network(
            "hoodi",
            "Hoodi",
            560_048,
            "bbe312868b376a3001692a646dd2d7d1e4406380dfd86b98aa8a34d1557c971b",
            1,
            "https://hoodi.etherscan.io",
            "about two months of execution and more than 1 TB",
        ),
    )
}
"""The built-in networks by name. Source: go-ethereum params/config.go, 1.17.10."""


def final_total_difficulty(genesis_hash: bytes) -> int | None:
    """Return the final total difficulty of a public network, None for other networks."""
    for network in PUBLIC_NETWORKS.values():
        if network.genesis_hash == genesis_hash:
            return network.final_total_difficulty
    return None
