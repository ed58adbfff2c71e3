"""Builds chains of token transfers for the benchmarks.

    python -m bench.token_chain FOLDER --holders 2000 --blocks 200x6 20x120

writes FOLDER/genesis.json and FOLDER/chain.rlp: 200 blocks of 6 transfers, then 20 of
120. All holders have ether and tokens in the genesis: one account and one slot of the
token contract for each holder. Each transfer goes from one random holder to another.
The same arguments give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("ETH_HASH_BACKEND", "pysha3")

from django.core.management import call_command

from abi.encoding import call_data, mapping_slot
from config import env
from evm.blocks import Block
from evm.rlp import read_items
from samples.builder import ChainBuilder
from samples.contracts import contract
from samples.signers import Signer
from samples.system_contracts import system_contracts_alloc

TOKEN = b"\x70" * 20
CHAIN_ID = 5_151
GENESIS_TIME = 1_700_000_000
GAS_LIMIT = 30_000_000
SUPPLY_EACH = 10**9
ETHER = 10**18

TRANSFER_GAS = 100_000


@dataclass(frozen=True, slots=True)
class TokenChain:
    """A chain on disk: a genesis.json and a file with its blocks."""

    genesis_path: Path
    chain_path: Path

    def genesis(self) -> dict[str, Any]:
        """Return the parsed genesis.json, which is in geth's format."""
        genesis: dict[str, Any] = json.loads(self.genesis_path.read_text())
        return genesis

    @contextmanager
    def blocks(self) -> Iterator[Iterator[bytes]]:
        """Yield an iterator over the blocks after the genesis, each as RLP."""
        with self.chain_path.open("rb") as file:
            yield read_items(file)


def in_folder(folder: Path) -> TokenChain:
    """Return the chain in a folder. The files need not exist yet."""
    return TokenChain(folder / "genesis.json", folder / "chain.rlp")


def genesis_of(holders: list[Signer], chain_id: int = CHAIN_ID) -> dict[str, Any]:
    """Return a genesis.json in which Prague is active and each holder has tokens."""
    forks = ("homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople")
    later = ("petersburg", "istanbul", "berlin", "london")
    token = {
        "balance": "0x0",
        "nonce": "0x1",
        "code": f"0x{contract('token').runtime.hex()}",
        "storage": {
            f"0x{mapping_slot(holder.address, 0):064x}": f"0x{SUPPLY_EACH:x}"
            for holder in holders
        },
    }
    return {
        "config": {
            "chainId": chain_id,
            **{f"{fork}Block": 0 for fork in (*forks, *later)},
            "terminalTotalDifficulty": 0,
            **{f"{fork}Time": 0 for fork in ("shanghai", "cancun", "prague")},
            "blobSchedule": {
                "cancun": {"target": 3, "max": 6, "baseFeeUpdateFraction": 3_338_477},
                "prague": {"target": 6, "max": 9, "baseFeeUpdateFraction": 5_007_716},
            },
        },
        "timestamp": hex(GENESIS_TIME),
        "gasLimit": hex(GAS_LIMIT),
        "difficulty": "0x0",
        "alloc": {
            **system_contracts_alloc(),
            f"0x{TOKEN.hex()}": token,
            **{
                f"0x{holder.address.hex()}": {"balance": hex(10**6 * ETHER)}
                for holder in holders
            },
        },
    }


def add_block(
    chain: ChainBuilder, holders: list[Signer], chance: random.Random, transfers: int
) -> Block:
    """Add a block of transfers between random holders, and return it."""
    for _ in range(transfers):
        sender, receiver = chance.sample(holders, 2)
        data = call_data(
            "transfer(address,uint256)", receiver.address, chance.randint(1, 99)
        )
        chain.send(sender, TOKEN, data, gas=TRANSFER_GAS)
    block = chain.block()
    if not all(receipt.status for receipt in chain.outcomes[-1].receipts):
        raise RuntimeError(f"a transfer of block {chain.head.number} failed")
    return block


def holders_of(count: int) -> list[Signer]:
    """Return the holders of a chain."""
    return [Signer(f"token holder {i}") for i in range(count)]


def write_token_chain(
    folder: Path, *, holders: int, blocks: Iterable[int], chain_id: int = CHAIN_ID
) -> TokenChain:
    """Build a chain and write its files. blocks: number of transfers of each block."""
    chance = random.Random(holders)
    signers = holders_of(holders)
    genesis = genesis_of(signers, chain_id)
    chain = ChainBuilder(genesis)
    for transfers in blocks:
        add_block(chain, signers, chance, transfers)
    return write_chain(folder, genesis, chain)


def build_in_process(
    folder: Path, *, holders: int, blocks: Sequence[str], chain_id: int = CHAIN_ID
) -> None:
    """Write a chain in a separate process. blocks: texts such as `200x6`."""
    subprocess.run(
        [
            *(sys.executable, "-m", "bench.token_chain", str(folder)),
            *("--holders", str(holders), "--chain-id", str(chain_id)),
            *("--blocks", *blocks),
        ],
        check=True,
        cwd=env.BASE_DIR,
    )


def import_chain(chain: TokenChain, slug: str) -> None:
    """Import a chain from its files into a network, and create the network."""
    call_command(
        "import_chain", str(chain.chain_path), network=slug, genesis=chain.genesis_path
    )


def build_and_import(
    folder: Path, slug: str, *, holders: int, blocks: Sequence[str]
) -> TokenChain:
    """Build a chain in a folder with the network's slug, and import it."""
    build_in_process(folder / slug, holders=holders, blocks=blocks)
    chain = in_folder(folder / slug)
    import_chain(chain, slug)
    return chain


def write_chain(
    folder: Path, genesis: dict[str, Any], built: ChainBuilder
) -> TokenChain:
    """Write the files of a chain."""
    folder.mkdir(parents=True, exist_ok=True)
    chain = in_folder(folder)
    chain.genesis_path.write_text(json.dumps(genesis))
    chain.chain_path.write_bytes(built.rlp())
    return chain


def main(arguments: list[str]) -> None:
    """Write the chain that the command line describes."""
    parser = argparse.ArgumentParser(description="Build a chain of token transfers.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--holders", type=int, required=True)
    parser.add_argument("--chain-id", type=int, default=CHAIN_ID)
    parser.add_argument("--blocks", nargs="+", required=True, metavar="COUNTxTRANSFERS")
    options = parser.parse_args(arguments)
    parts = [tuple(map(int, part.split("x"))) for part in options.blocks]
    blocks = [transfers for count, transfers in parts for _ in range(count)]
    write_token_chain(
        options.folder,
        holders=options.holders,
        blocks=blocks,
        chain_id=options.chain_id,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
