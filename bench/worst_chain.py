"""The chain of `make bench ONLY=worst`: a warm-up block, then a block for each load.

    python -m bench.worst_chain FOLDER

writes FOLDER/genesis.json and FOLDER/chain.rlp.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("ETH_HASH_BACKEND", "pysha3")

from eth_typing import Address

from bench.worst_loads import Load, Options
from bench.worst_opcodes import OPCODE_LOADS
from bench.worst_precompiles import PRECOMPILE_LOADS
from bench.worst_transactions import TRANSACTION_LOADS
from config import env
from samples.builder import ChainBuilder
from samples.schedules import from_genesis, make_genesis
from samples.signers import Signer

LOADS: tuple[Load, ...] = (*PRECOMPILE_LOADS, *OPCODE_LOADS, *TRANSACTION_LOADS)

WARM_UP = next(load for load in LOADS if load.name == "point evaluation")
"""The load of the first block. It makes the importer load the trusted setup, which
takes a second."""

CHAIN_ID = 7_825
BLOCK_GAS_LIMIT = 60_000_000
LEAST_USED = 0.75
"""Minimum fraction of the gas limit that the transactions use. At most a fifth is
refunded."""
FEES: Options = {"max_fee_per_gas": 2**64, "max_priority_fee_per_gas": 1}
EXCESS_BLOB_GAS = 200_000_000
"""Excess blob gas of the genesis block. It makes BLOBBASEFEE compute a value far
above the minimum."""

_FIRST_ADDRESS = 0x30_0000
_SENDER = Signer("worst")


def address_of(load: Load) -> Address:
    """Return the address of a load's contract."""
    return Address((_FIRST_ADDRESS + LOADS.index(load)).to_bytes(20, "big"))


def genesis() -> dict[str, Any]:
    """Return a genesis.json with Osaka active, all contracts, and a funded sender."""
    alloc: dict[str, Any] = {
        f"0x{_SENDER.address.hex()}": {"balance": hex(2**128)},
    }
    for load in LOADS:
        alloc[f"0x{address_of(load).hex()}"] = {
            "balance": hex(2**64),
            "nonce": "0x1",
            "code": f"0x{load.code.hex()}",
            "storage": load.storage,
        }
        alloc.update(load.alloc)
    return {
        **make_genesis(
            chain_id=CHAIN_ID, first_blocks=from_genesis("osaka"), alloc=alloc
        ),
        "difficulty": "0x0",
        "gasLimit": hex(BLOCK_GAS_LIMIT),
        "excessBlobGas": hex(EXCESS_BLOB_GAS),
    }


def add_block(chain: ChainBuilder, load: Load, gas: int | None = None) -> None:
    """Append a block with the transactions of a load.

    gas: the block's gas; the default is the load's own limit.
    Raises: RuntimeError if a transaction fails or much gas remains unused.
    """
    if gas is None:
        gas = load.gas_limit
    if load.send is None:
        chain.send(_SENDER, address_of(load), load.data, gas=gas, **FEES)
    else:
        load.send(chain, _SENDER, address_of(load), gas, FEES)
    chain.block()
    outcome = chain.outcomes[-1]
    if not all(receipt.status for receipt in outcome.receipts):
        raise RuntimeError(f"{load.case}: a transaction failed")
    if outcome.gas_used < LEAST_USED * gas:
        raise RuntimeError(f"{load.case}: {outcome.gas_used} of {gas} gas was used")


def build_in_process(folder: Path) -> None:
    """Write the chain in a separate process."""
    subprocess.run(
        [sys.executable, "-m", "bench.worst_chain", str(folder)],
        check=True,
        cwd=env.BASE_DIR,
    )


def main(folder: Path) -> None:
    """Write the chain."""
    folder.mkdir(parents=True, exist_ok=True)
    start = genesis()
    (folder / "genesis.json").write_text(json.dumps(start))
    chain = ChainBuilder(start)
    for load in (WARM_UP, *LOADS):
        add_block(chain, load)
    (folder / "chain.rlp").write_bytes(chain.rlp())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
