"""Warm-up: repeats a load until the kernel has enough free pages for it.

Sockets move memory pages between cores: the sender allocates a page, and the receiver
frees it on another core. Since 6.7, Linux keeps freed pages in lists per core, and lets
these lists grow with the demand. Until the lists are full, sockets use pages that are
cold in every cache. On a virtual machine whose host reclaims idle memory, such a page
has to be requested from the host first. A load of long answers is several times as slow
for its first ten to twenty seconds, and again after an idle minute, in which the lists
shrink.

Source: linux mm/page_alloc.c, nr_pcp_high; virtio 1.2, 5.5.6.7 (free page reporting)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

MEMINFO = Path("/proc/meminfo")

_STILL_KIB = 16 * 1024
"""A round that allocates less new memory than this counts as warm."""

_STILL_ROUNDS = 2
"""Consecutive warm rounds needed. A single one can be caused by another process that
frees memory."""

MAX_SECONDS = 5.0
"""Time limit. A load that allocates memory for longer does so for another reason."""


def settle(run_round: Callable[[], object]) -> bool:
    """Run unmeasured rounds of a load until they allocate no more memory.

    Return whether this happened within MAX_SECONDS. If the page cache fills all memory,
    hardly any can be allocated, and this ends early.
    """
    deadline = time.monotonic() + MAX_SECONDS
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
    """Return the free memory in KiB: neither used, nor cache, nor in a core's list."""
    free = next(
        line for line in MEMINFO.read_text().splitlines() if line.startswith("MemFree:")
    )
    return int(free.split()[1])
