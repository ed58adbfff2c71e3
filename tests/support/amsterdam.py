"""Blocks of Amsterdam that geth 1.17.10 made, with its answers, if available.

They are in the folder `amsterdam` beside `execution-apis`; see
`tests.support.execution_apis`. Nothing of it is copied.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from nodeapi.chain.sources import BlockFile
from tests.support import chains, copies, execution_apis, sample


def folder() -> Path:
    """Return the folder of the data. Skip the test if it does not exist."""
    found = execution_apis.data() / "amsterdam"
    if not (found / "chain.rlp").is_file():
        pytest.skip(f"no blocks of Amsterdam in {found}: set CONFORMANCE_DATA")
    return found


def genesis() -> Any:
    """Return genesis.json."""
    return json.loads((folder() / "genesis.json").read_bytes())


def chain_file() -> Path:
    """Return the file with blocks 1 to 34, from 3 on with access lists."""
    return folder() / "chain.rlp"


def answers() -> dict[str, list[dict[str, Any]]]:
    """Return geth's answers by method, each with `params` and `result` or `error`."""
    found = defaultdict(list)
    with gzip.open(folder() / "answers.jsonl.gz") as lines:
        for line in lines:
            answer = json.loads(line)
            found[answer.pop("method")].append(answer)
    return found


def import_with_sample() -> None:
    """Store the sample chain and the chain of Amsterdam, as networks of these names."""
    copies.once("with sample", _import_both)


def _import_both() -> None:
    chains.import_blocks("sample", sample.genesis(), sample.raw_blocks())
    with BlockFile(chain_file()).open() as raw_blocks:
        chains.import_blocks("amsterdam", genesis(), raw_blocks)


def rejected() -> list[dict[str, Any]]:
    """Return the altered blocks: `name`, `block`, `raw` and geth's text, `geth`."""
    found: list[dict[str, Any]] = json.loads((folder() / "rejected.json").read_bytes())
    return found


def blocks() -> list[dict[str, Any]]:
    """Return the blocks: `number`, `title`, `blockAccessList` and others."""
    found: dict[str, list[dict[str, Any]]] = json.loads(
        (folder() / "blocks.json").read_bytes()
    )
    return found["blocks"]
