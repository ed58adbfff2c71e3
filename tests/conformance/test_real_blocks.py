"""Real blocks of mainnet, Hoodi and Holesky, from Frontier to Prague, executed again."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeapi.chain.block_audit import execute
from nodeapi.chain.verification import computed_fields
from tests.support import real_blocks

PATHS = real_blocks.paths()


@pytest.mark.skipif(not PATHS, reason=f"no blocks in {real_blocks.folder()}")
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name.split(".")[0])
def test_a_real_block_gives_what_its_header_says(path: Path) -> None:
    real = real_blocks.load(path)
    header = real.origin.block.header
    assert real.origin.fork.name == real.fork
    outcome, root = execute(real.origin, real.trie)
    found = {
        "state root": (header.state_root, root),
        **{name: values for name, *values in computed_fields(header, outcome)},
    }
    found["bloom"] = found.pop("logs bloom")
    for field in real.checks:
        promised, computed = found[field]
        assert computed == promised, field
