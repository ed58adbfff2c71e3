"""Run all benchmarks, or only the named parts: `python -m bench [PART …]`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import report
from bench.part import PARTS
from bench.rows import Row, machine
from bench.turns import say

RESULTS = Path(__file__).parent / "results.json"


def main(names: list[str]) -> int:
    """Run the named parts, print their figures, and write them to a file.

    Return the exit status: 1 if a figure misses its requirement or a part failed.
    """
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"bench: no part {unknown[0]!r}; there are {', '.join(PARTS)}")
        return 2
    start = time.monotonic()
    measured = {name: measure(name) for name in names or PARTS}
    say(f"{time.monotonic() - start:.0f} s")
    rows = [row for of_part in measured.values() for row in of_part or ()]
    print(report.table(rows))
    report.write_json(RESULTS, rows, machine())
    missed = [row for row in rows if row.misses]
    if missed:
        print(f"\n{len(missed)} of {len(rows)} rows miss what is required of them")
    failed = [name for name, of_part in measured.items() if of_part is None]
    if failed:
        print(f"\nwithout figures: {', '.join(failed)}")
    return 1 if missed or failed else 0


def measure(name: str) -> list[Row] | None:
    """Return the rows of one part, or None if the part failed.

    Each part runs in its own process with its own database, so that parts do not share
    data and the failure of one does not affect the others.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.json"
        command = [sys.executable, "-m", "bench.part", name, str(path)]
        start = time.monotonic()
        process = subprocess.Popen(command)
        try:
            status = process.wait()
        except KeyboardInterrupt:
            process.wait()  # it received SIGINT, too, and cleans up
            raise
        say(f"{name}: {time.monotonic() - start:.0f} s")
        return report.read_json(path)[0] if status == 0 else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
