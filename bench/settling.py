"""When the kernel has the memory at hand that a load needs.

Sockets hand pages from core to core: one takes them for what it sends, another gives
them back once that is read. Linux lets each core keep what was given back to it, as much
as there is demand for (since 6.7), before others get it. Until those lists are full, all
that is sent goes into pages that nobody has touched for long: cold ones in every cache,
and in a virtual machine whose host takes idle memory back each has to be got from there
first. A load of long answers is several times as slow for its first ten to twenty
seconds, and once more after a minute of rest, in which the lists empty.

Source: linux mm/page_alloc.c, nr_pcp_high; virtio 1.2, 5.5.6.7 (free page reporting)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")

_STILL_KIB = 16 * 1024
"""Less than that is taken in a round when the lists are full."""

_STILL_ROUNDS = 2
"""One may be still because of what else there is, which gives memory back."""

_MAX_SECONDS = 40.0
"""A load that takes memory for longer does so for another reason."""


def settle(run_round: Callable[[], object]) -> bool:
    """Run rounds of a load that nobody measures until they take no more memory.

    Returns whether they have come to that. Where caches fill all memory there is hardly
    any to take, and this ends at once.
    """
    deadline = time.monotonic() + _MAX_SECONDS
    least = _free_kib()
    still = 0
    while time.monotonic() < deadline:
        run_round()
        free = _free_kib()
        still = still + 1 if least - free < _STILL_KIB else 0
        least = min(least, free)
        if still == _STILL_ROUNDS:
            return True
    return False


def _free_kib() -> int:
    """Return how much memory nobody has, not even as a cache or on a core's list."""
    free = next(
        line
        for line in _MEMINFO.read_text().splitlines()
        if line.startswith("MemFree:")
    )
    return int(free.split()[1])
