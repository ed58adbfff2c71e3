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


def earlier_genesis() -> dict[str, Any]:
    """Return genesis.json of versions without Amsterdam. Block 0 has another hash."""
    document = genesis()
    del document["config"]["amsterdamTime"]
    for address in [name for name in document["alloc"] if name.endswith("8282")]:
        del document["alloc"][address]
    return document


def earlier_raw_blocks(count: int) -> list[bytes]:
    """Return the RLP of the first blocks of the chain of versions without Amsterdam."""
    from evm.blocks import encode_block  # loads the EVM
    from samples.sample_work import SCENES
    from samples.story import Story

    story = Story(earlier_genesis())
    for scene in SCENES:
        if len(story.notes) < count:
            scene(story)
    return [encode_block(block) for block in story.chain.blocks[:count]]


def raw_blocks() -> list[bytes]:
    """Return the RLP of the chain's blocks, from block 1 on."""
    with CHAIN_FILE.open("rb") as stream:
        return list(read_items(stream))


def head() -> int:
    """Return the number of the newest block."""
    return len(raw_blocks())


def genesis_hash() -> str:
    """Return the hash of block 0, with 0x."""
    from evm.blocks import decode_block  # loads the EVM

    return f"0x{decode_block(raw_blocks()[0]).header.parent_hash.hex()}"
