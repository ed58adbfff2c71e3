"""Removal of the folders and services of test runs that were killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from config.embedded import places
from config.embedded.postgres import PostgresServer
from config.embedded.redis import RedisServer

PREFIX = "portcullis-tests-"
_GRACE_SECONDS = 60  # between the creation of a folder and its claim


def claim(folder: str) -> int:
    """Hold a folder for as long as this process lives; returns the open lock."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def sweep() -> None:
    """Stop processes of ended test runs, and remove their folders."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with _unclaimed(folder) as is_free:
            if is_free:
                RedisServer(folder).stop()
                PostgresServer(folder).stop()
                places.forget_socket_dir(folder)
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _unclaimed(folder: Path) -> Iterator[bool]:
    try:
        status = folder.stat()
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_ours = status.st_uid == os.geteuid()
        yield is_ours and time.time() - status.st_mtime > _GRACE_SECONDS
    except BlockingIOError:
        yield False
    finally:
        os.close(descriptor)
