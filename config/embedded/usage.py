"""Who uses the services: the first one in starts them, the last one out stops them.

Users are counted with shared `flock`s on one file. A process that is killed loses
its lock with its life, so the count never lies; an exclusive lock on a second file
keeps arriving and leaving apart.
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
    """Be one of the users for the time of a `with` block.

    start: starts what does not run; called for each user, alone.
    stop: stops what runs; called by the last user, alone.
    Raises: ServiceError when the folder is another user's.
    """
    var_dir.mkdir(parents=True, exist_ok=True)
    pid = os.getpid()
    with _opened(var_dir / "services.lock") as users:
        try:
            with _gate(var_dir):
                fcntl.flock(users, fcntl.LOCK_SH)
                start()
            yield
        finally:
            # A fork inherits the lock, but it is not the one who came in.
            if os.getpid() == pid:
                with _gate(var_dir):
                    if _is_last(users):
                        stop()


def _is_last(users: int) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _gate(var_dir: Path) -> Iterator[None]:
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
