"""Import speed of the blocks that take the longest for their gas, compared with geth's.

There is a block for each precompile and for each variant of an opcode class
(`worst_loads.py`), with all gas in one transaction. Other blocks consist of transactions
that are expensive themselves (`worst_transactions.py`). Our importer also creates trace
records and commits each block to PostgreSQL, as in production.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO

from bench.racers import racer
from bench.rows import Row
from bench.token_chain import in_folder
from bench.turns import Say
from bench.worst_chain import LOADS, build_in_process
from bench.worst_loads import Load
from evm.blocks import decode_block

IMPORTED = ("Imported new potential chain segment", "Imported new chain segment")


class Geth:
    """A running `geth import` that waits for its next block."""

    def __init__(self, process: subprocess.Popen[str], pipes: list[Path]) -> None:
        self._process = process
        self._pipes = iter(pipes)
        self._last_line = ""

    def speed(self, block: bytes) -> float:
        """Let geth import the next block, and return the speed in Mgas/s.

        block: RLP. Raises: RuntimeError if geth rejects it or ends.
        """
        with self._open(next(self._pipes)) as pipe:
            pipe.write(block)
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._last_line = line
            entry = json.loads(line) if line.startswith("{") else {}
            if entry.get("msg") in IMPORTED:
                return float(entry["mgasps"])
            if entry.get("lvl") in ("error", "eror", "crit"):
                break
        raise RuntimeError(f"geth did not import a block: {self._last_line.strip()}")

    def _open(self, path: Path) -> BinaryIO:
        """Open a pipe once geth reads from it. Raises: RuntimeError if geth has ended."""
        while self._process.poll() is None:
            try:
                pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                time.sleep(0.01)
            else:
                os.set_blocking(pipe, True)
                return os.fdopen(pipe, "wb")
        raise RuntimeError(f"geth ended: {self._last_line.strip()}")


@contextmanager
def geth_import(
    binary: str, genesis: Path, blocks: int, folder: Path
) -> Iterator[Geth]:
    """Start geth with a genesis.json during a `with` block.

    blocks: the number of blocks that will be imported.
    folder: geth's data directory, which must not exist yet.
    """
    folder.mkdir(parents=True)
    data = ("--datadir", str(folder / "data"), "--db.engine", "pebble")
    subprocess.run(
        [binary, "--verbosity", "1", "init", *data, str(genesis)], check=True
    )
    pipes = [folder / f"block-{number}" for number in range(blocks)]
    for pipe in pipes:
        os.mkfifo(pipe)
    process = subprocess.Popen(
        [binary, "import", "--log.format", "json", *data, *map(str, pipes)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Geth(process, pipes)
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


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
