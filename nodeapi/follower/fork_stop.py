"""The last block before a fork that is not supported, on an upstream's chain."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from evm.chain_config import ChainConfig
from nodeapi.follower.choice import Point
from nodeapi.forks.check import ForkCheck, date
from nodeapi.upstreams.errors import LaterFork
from nodeapi.upstreams.source import BlockRef

BlockAt = Callable[[int], Awaitable[BlockRef | LaterFork]]
"""Returns the upstream's block with a number, or a LaterFork if it is of the fork."""

MEMBERS_LIMIT = 200
"""Characters of the names of unknown header members in a text."""


@dataclass(frozen=True, slots=True)
class ForkStop:
    """The unsupported fork that an upstream's chain has reached.

    last: the last block before the fork. newest: the upstream's newest block, whose hash
        may not be verified.
    text: names the first block of the fork, and the fork.
    """

    last: BlockRef
    newest: Point
    text: str


def later_fork(block: BlockRef, config: ChainConfig) -> LaterFork | None:
    """Return a LaterFork if the schedule has an unsupported fork at a block."""
    place = block.number, block.timestamp
    if any(fork.is_active(*place) for fork in config.unknown_forks):
        return LaterFork(*place, block.hash, ())
    return None


async def search_fork(
    block_at: BlockAt, newest: LaterFork
) -> tuple[BlockRef, LaterFork]:
    """Return the last block before a fork, and the first one of the fork.

    newest: a block of the fork. Block 0 has to be before the fork, and all blocks from the
        first one of the fork on have to be of the fork.

    Raises: the errors of `block_at`; LaterFork if block 0 is of the fork.
    """
    last, first = await block_at(0), newest
    if isinstance(last, LaterFork):
        raise last
    while last.number + 1 < first.number:
        found = await block_at((last.number + first.number) // 2)
        if isinstance(found, LaterFork):
            first = found
        else:
            last = found
    return last, first


def fork_name(first: LaterFork, config: ChainConfig, forks: ForkCheck) -> str:
    """Return the name of a fork, or a description.

    first: the first block of the fork. forks: the upstream's schedule.

    Source: EIP-7928, whose header member Amsterdam introduces
    """
    for fork in config.unknown_forks:
        if fork.is_active(first.number, first.timestamp):
            return fork.name
    if "blockAccessListHash" in first.members:
        return "amsterdam"
    scheduled = forks.unsupported
    if scheduled is not None and scheduled.time <= first.timestamp:
        return scheduled.name or f"the fork at {date(scheduled.time)}"
    return f"a fork with the members {', '.join(first.members)[:MEMBERS_LIMIT]}"
