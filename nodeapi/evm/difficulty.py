"""The difficulty that proof of work demands of a block, fork by fork.

Every rule has the signature of `DifficultyRule` and works on plain integers. The
"bomb" is an exponential term that grows every 100 000 blocks; forks postpone it.
"""

from __future__ import annotations

from typing import Protocol

MINIMUM_DIFFICULTY = 131_072
ADJUSTMENT_DENOMINATOR = 2048
BOMB_PERIOD_BLOCKS = 100_000
STEEPEST_DECREASE = -99


class DifficultyRule(Protocol):
    """What a block's header must state, given its parent."""

    def __call__(
        self,
        parent_difficulty: int,
        parent_timestamp: int,
        timestamp: int,
        number: int,
        parent_has_uncles: bool,
    ) -> int:
        """Return the difficulty of block `number`; timestamps are Unix seconds."""
        ...


def _bomb(number: int) -> int:
    """Return what the bomb adds at a block number, counted without the delay."""
    periods = number // BOMB_PERIOD_BLOCKS
    return 1 << (periods - 2) if periods > 1 else 0


def frontier_difficulty(
    parent_difficulty: int,
    parent_timestamp: int,
    timestamp: int,
    number: int,
    parent_has_uncles: bool,
) -> int:
    """Step up when the block came within 13 seconds, else down."""
    step = parent_difficulty // ADJUSTMENT_DENOMINATOR
    if timestamp - parent_timestamp >= 13:
        step = -step
    return max(parent_difficulty + step, MINIMUM_DIFFICULTY) + _bomb(number)


def homestead_difficulty(
    parent_difficulty: int,
    parent_timestamp: int,
    timestamp: int,
    number: int,
    parent_has_uncles: bool,
) -> int:
    """Step by how many whole ten seconds the block took.

    Source: https://eips.ethereum.org/EIPS/eip-2
    """
    factor = max(1 - (timestamp - parent_timestamp) // 10, STEEPEST_DECREASE)
    step = parent_difficulty // ADJUSTMENT_DENOMINATOR * factor
    return max(parent_difficulty + step, MINIMUM_DIFFICULTY) + _bomb(number)


def uncle_aware_difficulty(bomb_delay_blocks: int) -> DifficultyRule:
    """Return the rule that began with Byzantium, with the bomb put off.

    Source: https://eips.ethereum.org/EIPS/eip-100 and, for the delays,
    EIPs 649, 1234, 2384, 3554, 4345 and 5133
    """

    def difficulty(
        parent_difficulty: int,
        parent_timestamp: int,
        timestamp: int,
        number: int,
        parent_has_uncles: bool,
    ) -> int:
        """Step by how many whole nine seconds the block took, uncles weighed in."""
        factor = max(
            (2 if parent_has_uncles else 1) - (timestamp - parent_timestamp) // 9,
            STEEPEST_DECREASE,
        )
        step = parent_difficulty // ADJUSTMENT_DENOMINATOR * factor
        bomb = _bomb(max(0, number - bomb_delay_blocks))
        return max(parent_difficulty + step, MINIMUM_DIFFICULTY) + bomb

    return difficulty
