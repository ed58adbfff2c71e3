"""Import of a chain by geth, block by block, for comparison with our importer.

`geth import` reads several files in order. Here each file is a named pipe. geth blocks
on a pipe until a block is written to it, imports this block, logs the duration, and
continues with the next pipe. geth and our importer can therefore alternate, and no
figure includes geth's start.

The time is `elapsed` in geth's log: from the decoded block to the state that is written
to geth's database layer. The command opens no network connection: it starts neither the
peer-to-peer server nor RPC.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

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
