"""The proof-of-work difficulty of a block, fork by fork.

The difficulty changes in steps of a fraction of the parent's. The "bomb" is an
exponential term that grows every 100,000 blocks. Forks delay it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

MINIMUM_DIFFICULTY = 131_072
ADJUSTMENT_DENOMINATOR = 2048
BOMB_PERIOD_BLOCKS = 100_000
STEEPEST_DECREASE = -99

Steps = Callable[[int, bool], int]
"""(seconds since the parent, whether the parent has uncles) → number of steps."""


@dataclass(frozen=True, slots=True)
class DifficultyRule:
    """Computes the difficulty of a block from its parent."""

    steps: Steps
    bomb_delay_blocks: int = 0

    def __call__(
        self,
        parent_difficulty: int,
        parent_timestamp: int,
        timestamp: int,
        number: int,
        parent_has_uncles: bool,
    ) -> int:
        """Return the difficulty of block `number`; timestamps are Unix seconds."""
        steps = self.steps(timestamp - parent_timestamp, parent_has_uncles)
        change = parent_difficulty // ADJUSTMENT_DENOMINATOR * steps
        difficulty = max(parent_difficulty + change, MINIMUM_DIFFICULTY)
        return difficulty + _bomb(number - self.bomb_delay_blocks)


def _bomb(number: int) -> int:
    """Return the bomb's term. number: the block number minus the delay."""
    periods = number // BOMB_PERIOD_BLOCKS
    return 1 << (periods - 2) if periods > 1 else 0


def _frontier_steps(seconds: int, parent_has_uncles: bool) -> int:
    """Increase the difficulty for a block within 13 seconds, otherwise decrease it."""
    return 1 if seconds < 13 else -1


def _homestead_steps(seconds: int, parent_has_uncles: bool) -> int:
    """Return one step less for each ten seconds."""
    return max(1 - seconds // 10, STEEPEST_DECREASE)


def _uncle_aware_steps(seconds: int, parent_has_uncles: bool) -> int:
    """Return one step less for each nine seconds, and one more for uncles."""
    return max((2 if parent_has_uncles else 1) - seconds // 9, STEEPEST_DECREASE)


frontier_difficulty = DifficultyRule(_frontier_steps)
homestead_difficulty = DifficultyRule(_homestead_steps)
"""Source: https://eips.ethereum.org/EIPS/eip-2"""


def uncle_aware_difficulty(bomb_delay_blocks: int) -> DifficultyRule:
    """Return the rule from Byzantium on, with a given delay of the bomb.

    Source: https://eips.ethereum.org/EIPS/eip-100 and, for the delays, EIPs 649, 1234,
    2384, 3554, 4345 and 5133
    """
    return DifficultyRule(_uncle_aware_steps, bomb_delay_blocks)
