"""Racers: child processes that import the same blocks in turns, and say how long it took.

A racer of its own process has its own heap, garbage collector and caches. It says
"ready" when it stands at the genesis, then imports as many blocks as it is told and
answers with the seconds.
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
    """A few blocks' import."""

    seconds: float
    peak_memory_bytes: int
    """The most that the process has had in memory so far."""
    began: float = 0.0
    """On the machine's monotonic clock."""


class Racer:
    """One side of a race, from the outside."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, blocks: int) -> Lap:
        """Have the next blocks imported. Raises: RuntimeError when the racer fails."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{blocks}\n")
        self._process.stdin.flush()
        return Lap(**json.loads(self.hear()))

    def hear(self) -> str:
        """Return the racer's next line."""
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
        one.hear()
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
    """Be a racer until standard input ends.

    prepare: makes the next blocks ready, and returns what the clock is to measure.
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
