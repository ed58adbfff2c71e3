"""Import speed, compared with py-evm's and between a small and a large state.

Both comparisons alternate: each side imports a few blocks in turn, so that other load on
the machine affects both.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median

from bench.racers import Lap, racer
from bench.rows import Row, median_ratio
from bench.token_chain import build_in_process
from nodeapi.chain.importers import BULK_BATCH_BLOCKS

TRANSFERS = 150
"""Token transfers in each block."""

LAP_BLOCKS = 20
BULK_BATCH = str(BULK_BATCH_BLOCKS)
"""Blocks per commit, as in `import_chain`. A lap also ends with a commit."""

SPEED_LAPS = 6
SPEED_HOLDERS = 1_000

GROWTH_LAPS = 3
GROWTH_LAP_BLOCKS = 128
"""Blocks of a lap: four commits. The importer waits only for the last one."""
GROWTH_WARM_BLOCKS = 640
"""Blocks that are imported before the measurement, to fill the importer's caches.
They touch about 60 % of 200,000 accounts."""
FEW_HOLDERS, MANY_HOLDERS = 2_000, 200_000

MEBIBYTE = 2**20

Say = Callable[[str], None]


def chain_folder(folder: Path, *, holders: int, blocks: int) -> Path:
    """Build a chain of token transfers, and return its folder."""
    target = folder / f"holders-{holders}"
    build_in_process(target, holders=holders, blocks=[f"{blocks}x{TRANSFERS}"])
    return target


def speed(folder: Path, say: Say) -> list[Row]:
    """Compare our importer, which verifies and stores everything, with py-evm."""
    say(f"import: {SPEED_LAPS * LAP_BLOCKS} blocks of {TRANSFERS} token transfers")
    chain = chain_folder(folder, holders=SPEED_HOLDERS, blocks=SPEED_LAPS * LAP_BLOCKS)
    with (
        racer("bench.import_bare", chain) as bare,
        racer("bench.import_ours", chain, BULK_BATCH) as ours,
    ):
        laps = [
            (bare.run(LAP_BLOCKS).seconds, ours.run(LAP_BLOCKS).seconds)
            for _ in range(SPEED_LAPS)
        ]
    bare_speed = [LAP_BLOCKS / lap[0] for lap in laps]
    our_speed = [LAP_BLOCKS / lap[1] for lap in laps]
    return [
        Row("import", "bare py-evm, in memory", median(bare_speed), "blocks/s"),
        Row(
            "import",
            "ours, verified and stored",
            median(our_speed),
            "blocks/s",
            median_ratio(our_speed, bare_speed),
            "bare py-evm",
            ">= 1.0",
        ),
    ]


def growth(folder: Path, say: Say) -> list[Row]:
    """Compare the import of the same blocks on a small state and on a large one."""
    say(f"growth: the same blocks on {FEW_HOLDERS} and on {MANY_HOLDERS} accounts")
    blocks = GROWTH_WARM_BLOCKS + GROWTH_LAPS * GROWTH_LAP_BLOCKS
    few, many = (
        chain_folder(folder, holders=holders, blocks=blocks)
        for holders in (FEW_HOLDERS, MANY_HOLDERS)
    )
    with (
        racer("bench.import_ours", few, BULK_BATCH) as small,
        racer("bench.import_ours", many, BULK_BATCH) as large,
    ):
        small.run(GROWTH_WARM_BLOCKS)
        large.run(GROWTH_WARM_BLOCKS)
        laps = [
            (small.run(GROWTH_LAP_BLOCKS), large.run(GROWTH_LAP_BLOCKS))
            for _ in range(GROWTH_LAPS)
        ]
    small_cost = [_block_milliseconds(lap[0]) for lap in laps]
    large_cost = [_block_milliseconds(lap[1]) for lap in laps]
    peak = max(lap[1].peak_memory_bytes for lap in laps)
    return [
        Row("growth", _growth_case(FEW_HOLDERS), median(small_cost), "ms/block"),
        Row(
            "growth",
            _growth_case(MANY_HOLDERS),
            median(large_cost),
            "ms/block",
            median_ratio(large_cost, small_cost),
            _growth_case(FEW_HOLDERS),
            "<= 1.5",
        ),
        Row(
            "growth",
            f"the importer's memory at most, {MANY_HOLDERS:,} accounts",
            peak / MEBIBYTE,
            "MiB",
            required="<= 1024",
        ),
    ]


def _block_milliseconds(lap: Lap) -> float:
    return lap.seconds * 1000 / GROWTH_LAP_BLOCKS


def _growth_case(holders: int) -> str:
    return f"{holders:,} accounts and slots"
