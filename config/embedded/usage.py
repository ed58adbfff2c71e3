"""Reference counting of the services: the first user starts them, the last one stops them.

A process that uses the services is counted by a shared `flock` on one file. A killed
process loses its lock, so the count is always right. An exclusive lock on a second file
serializes starting and stopping.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from config.embedded.errors import ServiceError


@contextmanager
def usage(
    var_dir: Path, start: Callable[[], None], stop: Callable[[], None]
) -> Iterator[None]:
    """Count this process as a user of the services during a `with` block.

    start: starts services that do not run; called by each process, never concurrently.
    stop: stops running services; called by the last process, never concurrently.
    Raises: ServiceError if the folder belongs to another user.
    """
    var_dir.mkdir(parents=True, exist_ok=True)
    pid = os.getpid()
    with _opened(var_dir / "services.lock") as users:
        try:
            with alone(var_dir):
                fcntl.flock(users, fcntl.LOCK_SH)
                start()
            yield
        finally:
            # A forked process inherits the lock, but it is not counted.
            if os.getpid() == pid:
                with alone(var_dir):
                    if _is_last(users):
                        stop()


def _is_last(users: int) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def alone(var_dir: Path) -> Iterator[None]:
    """Hold the lock for starting and stopping services during a `with` block."""
    with _opened(var_dir / "services.gate") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        yield


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except PermissionError as error:
        raise ServiceError(
            f"{path.parent} belongs to another user: start as that user, or choose "
            "another VAR_DIR"
        ) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)
