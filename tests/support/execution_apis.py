"""The conformance data of ethereum/execution-apis, if available.

The option --execution-apis of pytest names the folder. Without it, CONFORMANCE_DATA names
the folder that holds `execution-apis`, and without that, `data` in the `shared` folder
beside the project is tried. Nothing of it is copied.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from evm import rlp
from evm.blocks import Block, decode_block

TESTING_METHOD = "testing_buildBlockV1"
"""A method that exists only with NODEAPI_TESTING_METHODS."""

PROJECT = Path(__file__).resolve().parents[2]


_chosen: list[Path] = []
"""The folder that pytest's option names, if it is given."""


def use(named: str | None) -> None:
    """Set the folder of the data. None: the default folder."""
    _chosen[:] = [Path(named)] if named else []


def data() -> Path:
    """Return the folder of all conformance data, which need not exist."""
    named = os.environ.get("CONFORMANCE_DATA")
    return Path(named) if named else PROJECT.parent / "shared" / "data"


def folder() -> Path:
    """Return the folder of the data. Skip the test if it does not exist."""
    found = _chosen[0] if _chosen else data() / "execution-apis"
    if not (found / "chain.rlp").is_file():
        pytest.skip(f"no conformance data in {found}: set CONFORMANCE_DATA")
    return found


def genesis() -> Any:
    """Return genesis.json."""
    return json.loads((folder() / "genesis.json").read_bytes())


def raw_blocks() -> list[bytes]:
    """Return the RLP of the chain's blocks, from block 1 on."""
    with (folder() / "chain.rlp").open("rb") as stream:
        return list(rlp.read_items(stream))


def blocks() -> list[Block]:
    """Return the chain's blocks, from block 1 on."""
    return [decode_block(raw) for raw in raw_blocks()]


def exchanges(method: str) -> list[tuple[list[Any], dict[str, Any]]]:
    """Return parameters and answer of each recorded call of a method."""
    found = []
    for path in sorted((folder() / method).glob("*.io")):
        request: dict[str, Any] = {}
        for line in path.read_text().splitlines():
            if line.startswith(">> "):
                request = json.loads(line[3:])
            elif line.startswith("<< "):
                found.append((request["params"], json.loads(line[3:])))
    return found
