"""Run one part of the benchmarks with its own database: `python -m bench.part PART FILE`.

The rows are written to FILE in the format of `report.write_json`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from bench import report
from bench.own_services import own_services
from bench.rows import Row, machine


def main(name: str, path: Path) -> None:
    """Run a part, and write its rows to a file."""
    with own_services() as folder:
        rows = _measurement(name)(folder, say)
    report.write_json(path, rows, machine())


def say(text: str) -> None:
    """Print progress to standard error."""
    print(text, file=sys.stderr, flush=True)


def _measurement(name: str) -> Callable[[Path, Callable[[str], None]], list[Row]]:
    """Return a part's function; some need Django set up to be imported."""
    from bench import (
        admin,
        beside,
        endpoint,
        importing,
        limits,
        live,
        on_demand,
        reads,
        records,
        sockets,
        storage,
        traces,
        watching,
        worst,
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
        "reads": reads.reads,
        "records": records.records,
        "worst": worst.worst,
        "admin": admin.admin,
        "live": live.live,
        "storage": storage.storage,
    }[name]


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
