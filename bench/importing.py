"""Import speed, compared with py-evm's, without some parts, and on a large state."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from bench.racers import Lap, racer
from bench.rows import Row, median_ratio
from bench.token_chain import build_in_process
from bench.turns import Say, laps
from nodeapi.chain.importers import BULK_BATCH_BLOCKS

TRANSFERS = 150
"""Token transfers in each block."""

LAP_BLOCKS = 20
SPEED_LAPS = 5
HOLDERS = 1_000

WATCHING_LAPS = 6
WATCHING_LAP_BLOCKS = 2 * BULK_BATCH_BLOCKS
"""Blocks of a lap: two commits. An import waits only for its last commit; here each lap
waits for its last one, which takes longer with trace records."""
MOST_TIME_WITH_RECORDS = "<= 1.15"
MOST_TIME_WITH_LISTS = "<= 1.05"

GROWTH_LAPS = 3
GROWTH_LAP_BLOCKS = 64
GROWTH_WARM_BLOCKS = 320
"""Blocks that are imported before the measurement, to fill the importer's caches.
They touch about 40 % of 200,000 accounts."""
FEW_HOLDERS, MANY_HOLDERS = 2_000, 200_000

MEBIBYTE = 2**20


def chain_folder(folder: Path, *, holders: int, blocks: int) -> Path:
    """Build a chain of token transfers, and return its folder."""
    target = folder / f"holders-{holders}"
    build_in_process(target, holders=holders, blocks=[f"{blocks}x{TRANSFERS}"])
    return target


def imports_in_turn(
    folder: Path,
    *options: str,
    most_laps: int,
    holders: int = HOLDERS,
    lap_blocks: int = LAP_BLOCKS,
    module: str = "bench.import_ours",
) -> list[tuple[Lap, Lap]]:
    """Let another importer and ours import a new chain in turns, after a lap of warm-up.

    module, options: the other importer (`bench.import_ours` describes its options).
    """
    blocks = lap_blocks * (1 + most_laps)
    chain = chain_folder(folder, holders=holders, blocks=blocks)
    same = chain.with_name(f"{chain.name}-other")
    same.symlink_to(chain)
    with (
        racer(module, same, *options) as other,
        racer("bench.import_ours", chain) as ours,
    ):
        other.run(lap_blocks)
        ours.run(lap_blocks)
        return laps(other, ours, lap_blocks, most_laps)


def speed_rows(
    bench: str,
    names: tuple[str, str],
    found: list[tuple[Lap, Lap]],
    required: str | None = None,
) -> list[Row]:
    """Return the blocks per second of both sides, and the ratio of the second's.

    found: laps of LAP_BLOCKS.
    """
    first, second = (
        [LAP_BLOCKS / lap.seconds for lap in side] for side in zip(*found, strict=True)
    )
    ratio = median_ratio(second, first)
    return [
        Row(bench, names[0], median(first), "blocks/s"),
        Row(bench, names[1], median(second), "blocks/s", ratio, names[0], required),
    ]


def speed(folder: Path, say: Say) -> list[Row]:
    """Compare our importer, which verifies and stores everything, with py-evm."""
    say(f"import: blocks of {TRANSFERS} token transfers")
    found = imports_in_turn(folder, most_laps=SPEED_LAPS, module="bench.import_bare")
    names = "bare py-evm, in memory", "ours, verified and stored"
    return speed_rows("import", names, found, ">= 1.0")


def watching(folder: Path, say: Say) -> list[Row]:
    """Compare the time of imports with and without trace records."""
    return _costs("watching", "records", MOST_TIME_WITH_RECORDS, folder, say)


def listing(folder: Path, say: Say) -> list[Row]:
    """Compare the time of imports with and without access lists."""
    return _costs("listing", "lists", MOST_TIME_WITH_LISTS, folder, say)


def _costs(bench: str, what: str, most: str, folder: Path, say: Say) -> list[Row]:
    """Compare the time of imports with and without a part, an option of `import_ours`.

    most: largest time with the part.
    """
    say(f"{bench}: blocks of {TRANSFERS} token transfers, with and without {what}")
    found = imports_in_turn(
        folder,
        *("--without", what),
        most_laps=WATCHING_LAPS,
        lap_blocks=WATCHING_LAP_BLOCKS,
    )
    each = 1_000_000 / (WATCHING_LAP_BLOCKS * TRANSFERS)
    without, ours = (
        [each * lap.seconds for lap in side] for side in zip(*found, strict=True)
    )
    names = f"import without {what}", f"import with {what}"
    ratio = median_ratio(ours, without)
    return [
        Row(bench, names[0], median(without), "µs/transfer"),
        Row(bench, names[1], median(ours), "µs/transfer", ratio, names[0], most),
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
        racer("bench.import_ours", few) as small,
        racer("bench.import_ours", many) as large,
    ):
        small.run(GROWTH_WARM_BLOCKS)
        large.run(GROWTH_WARM_BLOCKS)
        found = laps(small, large, GROWTH_LAP_BLOCKS, GROWTH_LAPS)
    each = 1000 / GROWTH_LAP_BLOCKS
    small_cost, large_cost = (
        [each * lap.seconds for lap in side] for side in zip(*found, strict=True)
    )
    names = [f"{count:,} accounts and slots" for count in (FEW_HOLDERS, MANY_HOLDERS)]
    ratio = median_ratio(large_cost, small_cost)
    peak = max(lap.peak_memory_bytes for _, lap in found) / MEBIBYTE
    memory = f"the importer's memory at most, {MANY_HOLDERS:,} accounts"
    return [
        Row("growth", names[0], median(small_cost), "ms/block"),
        Row(
            *("growth", names[1], median(large_cost), "ms/block"),
            *(ratio, names[0], "<= 1.5"),
        ),
        Row("growth", memory, peak, "MiB", required="<= 1024"),
    ]
