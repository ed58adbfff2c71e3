"""Run the benchmarks, all or the ones that are named: `python -m bench [PART …]`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench import report
from bench.own_services import own_services
from bench.plot import plot
from bench.rows import Row, machine

PARTS = (
    *("import", "watching", "growth", "endpoint", "workers", "traces", "on_demand"),
    *("beside", "limits", "records", "sockets", "admin"),
)

RESULTS = Path(__file__).parent / "results.json"
PLOT = Path(__file__).parent.parent / "docs" / "benchmarks.svg"
"""Drawn when everything has been measured."""


def main(names: list[str]) -> int:
    """Measure, print and write the figures; 1 when one is not enough."""
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"bench: no part {unknown[0]!r}; there are {', '.join(PARTS)}")
        return 2
    start = time.monotonic()
    rows: list[Row] = []
    with own_services() as folder:
        for name in names or PARTS:
            rows += _part(name)(folder, _say)
    _say(f"{time.monotonic() - start:.0f} s")
    print(report.table(rows))
    report.write_json(RESULTS, rows, machine())
    if not names:
        PLOT.write_text(plot(rows))
    missed = [row for row in rows if row.misses]
    if missed:
        print(f"\n{len(missed)} of {len(rows)} rows miss what is required of them")
    return 1 if missed else 0


def _part(name: str) -> Callable[[Path, Callable[[str], None]], list[Row]]:
    """Return a part's measurement; some need Django set up to be imported."""
    from bench import (
        admin,
        beside,
        endpoint,
        importing,
        limits,
        on_demand,
        records,
        sockets,
        traces,
        watching,
    )

    return {
        "import": importing.speed,
        "watching": watching.watching,
        "growth": importing.growth,
        "endpoint": endpoint.endpoint,
        "workers": endpoint.workers,
        "traces": traces.traces,
        "on_demand": on_demand.on_demand,
        "beside": beside.beside,
        "sockets": sockets.sockets,
        "limits": limits.limits,
        "records": records.records,
        "admin": admin.admin,
    }[name]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
