"""The checked-in files of the sample chain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evm.rlp import read_items

FOLDER = Path(__file__).resolve().parents[2] / "samples" / "sample"
GENESIS_FILE = FOLDER / "genesis.json"
CHAIN_FILE = FOLDER / "chain.rlp"


def genesis() -> dict[str, Any]:
    """Return genesis.json."""
    document: dict[str, Any] = json.loads(GENESIS_FILE.read_bytes())
    return document


def raw_blocks() -> list[bytes]:
    """Return the RLP of the chain's blocks, from block 1 on."""
    with CHAIN_FILE.open("rb") as stream:
        return list(read_items(stream))


def genesis_hash() -> str:
    """Return the hash of block 0, with 0x."""
    from evm.blocks import decode_block  # loads the EVM

    return f"0x{decode_block(raw_blocks()[0]).header.parent_hash.hex()}"
