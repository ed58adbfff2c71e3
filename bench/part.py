"""Measure one part on services of its own: `python -m bench.part PART FILE`.

The file is written as `report.write_json` does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from bench import report
from bench.own_services import own_services
from bench.rows import Row, machine


def main(name: str, path: Path) -> None:
    """Measure a part and write its rows."""
    with own_services() as folder:
        rows = _measurement(name)(folder, say)
    report.write_json(path, rows, machine())


def say(text: str) -> None:
    """Tell what is being done."""
    print(text, file=sys.stderr, flush=True)


def _measurement(name: str) -> Callable[[Path, Callable[[str], None]], list[Row]]:
    """Return a part's function; some need Django set up to be imported."""
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


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
