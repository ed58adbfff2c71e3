"""The argument of commands that names a range of blocks."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError


def block_range(text: str) -> range:
    """Return the numbers of `A-B`, or of one block, from 1 on.

    Raises: ArgumentTypeError.
    """
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= first <= last:
        raise ArgumentTypeError(f"must be two block numbers from 1 on, not {text!r}")
    return range(first, last + 1)
