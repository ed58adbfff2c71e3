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
    """

    name: str
    title: str
    chain_id: int
    genesis_hash: Hash32

    @property
    def path(self) -> Path:
        """The compressed file with the network's genesis.json."""
        return FOLDER / f"{self.name}.json.xz"

    def genesis(self) -> dict[str, Any]:
        """Return the network's genesis.json, with config and alloc."""
        document: dict[str, Any] = json.loads(lzma.decompress(self.path.read_bytes()))
        return document


def _network(name: str, title: str, chain_id: int, genesis_hash: str) -> PublicNetwork:
    return PublicNetwork(name, title, chain_id, Hash32(bytes.fromhex(genesis_hash)))


PUBLIC_NETWORKS = {
    network.name: network
    for network in (
        _network(
            "mainnet",
            "Ethereum mainnet",
            1,
            "d4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3",
        ),
        _network(
            "sepolia",
            "Sepolia",
            11_155_111,
            "25a5cc106eea7138acab33231d7160d69cb777ee0c2c553fcddf5138993e6dd9",
        ),
        _network(
            "hoodi",
            "Hoodi",
            560_048,
            "bbe312868b376a3001692a646dd2d7d1e4406380dfd86b98aa8a34d1557c971b",
        ),
    )
}
"""The built-in networks by name. Source: go-ethereum params/config.go, 1.17.10."""
