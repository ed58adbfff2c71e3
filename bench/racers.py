"""Racers: child processes that import the same blocks in turns and report the time.

Each racer has its own heap, garbage collector and caches. It prints "ready" when the
genesis block is stored. For each number on standard input, it imports that many blocks
and prints a `Lap` as JSON.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from config import env


@dataclass(frozen=True, slots=True)
class Lap:
    """The import of a few blocks."""

    seconds: float
    peak_memory_bytes: int
    """Peak memory of the process since its start."""
    began: float = 0.0
    """Start of the import, in seconds of `time.monotonic`."""


class Racer:
    """Controls a racer from its parent process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, blocks: int) -> Lap:
        """Let the racer import the next blocks.

        Raises: RuntimeError if the import fails.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(f"{blocks}\n")
        self._process.stdin.flush()
        return Lap(**json.loads(self.read_line()))

    def read_line(self) -> str:
        """Return the next line that the racer prints. Raises: RuntimeError at its end."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args!r} ended early")
        return line


@contextmanager
def racer(module: str, folder: Path, *options: str) -> Iterator[Racer]:
    """Start a racer on the chain of a folder, wait until it is ready, and end it."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, str(folder), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=env.BASE_DIR,
    )
    try:
        one = Racer(process)
        one.read_line()
        yield one
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


def serve(prepare: Callable[[int], Callable[[], None]]) -> None:
    """Serve the parent's requests until standard input ends.

    prepare: takes a number of blocks, prepares their import without measuring, and
        returns the function whose time is measured.
    """
    print("ready", flush=True)
    for line in sys.stdin:
        work = prepare(int(line))
        start = time.monotonic()
        work()
        seconds = time.monotonic() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        lap = {"seconds": seconds, "peak_memory_bytes": peak, "began": start}
        print(json.dumps(lap), flush=True)
