"""Checks whether processes are running, including children of other processes."""

from __future__ import annotations

import subprocess


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
    """Return the ids of a process's children with a text in their command lines."""
    found = subprocess.run(
        ["pgrep", "--parent", str(pid), "--full", "--", text],
        capture_output=True,
        text=True,
        check=False,
    )
    return set(map(int, found.stdout.split()))
