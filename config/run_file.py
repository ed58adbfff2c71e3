"""The file in which a running `make run` describes itself.

It is VAR_DIR/run.json. While one server runs, a second one with the same VAR_DIR, which
has another port, uses VAR_DIR/run-PORT.json, which is removed when that server ends.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def main_path(var_dir: Path) -> Path:
    """Return the path of the first server's file. Later servers find its secrets there."""
    return var_dir / "run.json"


@contextmanager
def run_file(var_dir: Path, port: int) -> Iterator[Path]:
    """Reserve a file for a server during a `with` block, and yield its path.

    port: the server's port.
    """
    lock = os.open(var_dir / "run.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            path = var_dir / f"run-{port}.json"
            try:
                yield path
            finally:
                path.unlink(missing_ok=True)
        else:
            yield main_path(var_dir)
    finally:
        os.close(lock)
