"""The argument of commands that names a range of blocks, and a check of its beginning."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from django.core.management.base import CommandError

if TYPE_CHECKING:
    from networks.models import Network


def block_range(text: str) -> range:
    """Return the numbers of `A-B`, or of one block, from 1 on.

    Raises: ArgumentTypeError.
    """
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= first <= last:
        raise ArgumentTypeError(f"must be two block numbers from 1 on, not {text!r}")
    return range(first, last + 1)


def require_executed(network: Network, numbers: range) -> None:
    """Raise CommandError if a range begins with a block that was not executed.

    Only the blocks above the checkpoint can be executed again.
    """
    checkpoint = network.checkpoint_number
    if checkpoint is not None and numbers[0] <= checkpoint:
        raise CommandError(
            f"{network.slug} has started at block {checkpoint}: the first block that was "
            f"executed is {checkpoint + 1}"
        )
