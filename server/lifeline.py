"""Ends a child process together with its parent, even if the parent was killed.

The parent starts the child with a pipe as standard input, to which it never writes. The
kernel closes the pipe when the parent ends.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time


def end_with_parent(kill_seconds: float | None = None) -> None:
    """Send this process SIGTERM when its standard input ends.

    kill_seconds: time after which the process is killed if it has not ended by then. If
        None, it is never killed.
    """
    threading.Thread(
        target=_wait_for_parent, args=(kill_seconds,), name="lifeline", daemon=True
    ).start()


def _wait_for_parent(kill_seconds: float | None) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    if kill_seconds is not None:
        time.sleep(kill_seconds)
        os.kill(os.getpid(), signal.SIGKILL)
