"""A test run removes the processes and folders of an earlier one that was killed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from config.embedded.postgres import PostgresServer
from tests.support import leftovers

KILLED = """
import os, signal
from config import services
with services.running():
    os.kill(os.getpid(), signal.SIGKILL)
"""


def run_that_is_killed() -> Path:
    folder = Path(tempfile.mkdtemp(prefix=leftovers.PREFIX))
    environ = {**os.environ, "VAR_DIR": str(folder)}
    environ.pop("DATABASE_URL", None)
    environ.pop("REDIS_URL", None)
    subprocess.run([sys.executable, "-c", KILLED], env=environ, check=False)
    long_ago = time.time() - 3600
    os.utime(folder, (long_ago, long_ago))
    return folder


def test_what_a_killed_run_left_is_stopped_and_removed():
    folder = run_that_is_killed()
    claim = leftovers.claim(str(folder))
    leftovers.sweep()
    assert PostgresServer(folder).pid() is not None, "another process holds the lock"
    os.close(claim)
    pid = PostgresServer(folder).pid()
    leftovers.sweep()
    assert not folder.exists()
    assert not Path(f"/proc/{pid}/cmdline").exists() or (
        str(folder) not in Path(f"/proc/{pid}/cmdline").read_text()
    )


def test_a_folder_that_was_made_just_now_is_left_alone():
    folder = Path(tempfile.mkdtemp(prefix=leftovers.PREFIX))
    leftovers.sweep()
    assert folder.exists()
    folder.rmdir()
