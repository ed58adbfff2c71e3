"""Checks whether processes are running, including children of other processes."""

from __future__ import annotations

import shlex
from contextlib import suppress

import psutil


def state(pid: int) -> str | None:
    """Return a process's state as Linux abbreviates it, None when it has ended."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def is_alive(pid: int) -> bool:
    """Return whether a process runs. A zombie does not."""
    return state(pid) not in (None, "Z")


def children(pid: int, text: str) -> set[int]:
    """Return the descendants of a process with a text in their names or command lines.

    A forked process has a name of its own (`server.forking`).
    """
    found = set()
    for process in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            if text in process.name() or text in shlex.join(process.cmdline()):
                found.add(process.pid)
    return found
