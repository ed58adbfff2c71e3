"""Import speed of the blocks that take the longest for their gas, compared with geth's.

There is a block for each precompile and for each variant of an opcode class
(`worst_loads.py`), with all gas in one transaction. Other blocks consist of transactions
that are expensive themselves (`worst_transactions.py`). Our importer also creates trace
records and commits each block to PostgreSQL, as in production.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from bench.geth import Geth, geth_import
from bench.racers import racer
from bench.rows import Row
from bench.token_chain import in_folder
from bench.turns import Say
from bench.worst_chain import LOADS, build_in_process
from bench.worst_loads import Load
from evm.blocks import decode_block

LEAST_SPEED = 6.0
"""Mgas/s. At this speed, a block of 60 Mgas is imported in 10 s; blocks are 12 s apart."""
LEAST_OF_GETH = 0.4


def worst(folder: Path, say: Say) -> list[Row]:
    """Measure every load once. The environment variable GETH is the path of geth."""
    chain = in_folder(folder / "worst")
    say(f"worst: building {len(LOADS) + 1} blocks")
    build_in_process(folder / "worst")
    rows: list[Row] = []
    with (
        chain.blocks() as blocks,
        racer("bench.import_ours", folder / "worst", "--batch", "1") as ours,
        _geth(chain.genesis_path, folder / "geth") as geth,
    ):
        ours.run(1)
        if geth is not None:
            geth.speed(next(blocks))
        else:
            next(blocks)
        for load, raw in zip(LOADS, blocks, strict=True):
            theirs = None if geth is None else geth.speed(raw)
            gas = decode_block(raw).header.gas_used
            speed = gas / 1e6 / ours.run(1).seconds
            beside = "" if theirs is None else f", geth {theirs:.1f}"
            say(f"worst: {load.case}: {speed:.1f} Mgas/s{beside}")
            rows += _rows(load, speed, theirs)
    return rows


def _rows(load: Load, speed: float, geth_speed: float | None) -> list[Row]:
    required = f">= {LEAST_SPEED:g}"
    rows = [Row("worst", load.case, speed, "Mgas/s", required=required)]
    if geth_speed is not None:
        needs_ratio = load.family == "precompile"
        least = f">= {LEAST_OF_GETH}" if needs_ratio else None
        ratio = speed / geth_speed
        rows.append(Row("worst", load.case, ratio, "of geth's", required=least))
        rows.append(Row("worst", load.case, geth_speed, "Mgas/s by geth"))
    return rows


def _geth(genesis: Path, folder: Path) -> AbstractContextManager[Geth | None]:
    binary = os.environ.get("GETH")
    if not binary:
        return nullcontext()
    return geth_import(binary, genesis, len(LOADS) + 1, folder)
