"""The cost of creating trace records during an import.

The same chain is imported with and without trace records, in alternating laps.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from statistics import median

from bench.importing import (
    BULK_BATCH,
    BULK_BATCH_BLOCKS,
    TRANSFERS,
    Say,
    chain_folder,
)
from bench.racers import racer
from bench.rows import Row, median_ratio

LAPS = 9
"""Number of laps. The first one is not counted, because it fills caches. The ratio
of a lap varies by some hundredths on a small machine."""
LAP_BLOCKS = 5 * BULK_BATCH_BLOCKS
"""Blocks of a lap: five commits. An import waits only for its last commit; here each
lap waits for its last one, which takes longer with trace records."""
HOLDERS = 1_001
MOST_TIME = 1.15
"""Maximum time, relative to an import without trace records."""


def watching(folder: Path, say: Say) -> list[Row]:
    """Compare the import speed with and without trace records."""
    say(f"watching: {LAPS * LAP_BLOCKS} blocks of {TRANSFERS} token transfers, twice")
    chain = chain_folder(folder, holders=HOLDERS, blocks=LAPS * LAP_BLOCKS)
    same = shutil.copytree(chain, folder / "unwatched")
    with (
        racer("bench.import_ours", chain, BULK_BATCH) as ours,
        racer("bench.import_unwatched", same, BULK_BATCH) as unwatched,
    ):
        laps = [
            (ours.run(LAP_BLOCKS).seconds, unwatched.run(LAP_BLOCKS).seconds)
            for _ in range(LAPS)
        ][1:]
    each = 1_000_000 / (LAP_BLOCKS * TRANSFERS)
    with_records = [each * lap[0] for lap in laps]
    without = [each * lap[1] for lap in laps]
    return [
        Row("watching", "import without records", median(without), "µs/transfer"),
        Row(
            "watching",
            "import with records",
            median(with_records),
            "µs/transfer",
            median_ratio(with_records, without),
            "import without records",
            f"<= {MOST_TIME}",
        ),
    ]
