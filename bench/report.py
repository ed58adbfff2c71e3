"""The figures as a table, as JSON and as a plot."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

from bench.rows import Row


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a table for the terminal; `!` marks what is not enough."""
    width = max((len(row.case) for row in rows), default=0)
    lines = []
    for bench, group in groupby(rows, key=lambda row: row.bench):
        lines += ["", bench]
        lines += [_line(row, width) for row in group]
    return "\n".join(lines)


def _line(row: Row, width: int) -> str:
    line = f"  {row.case:<{width}} {number(row.value):>9} {row.unit:<10}"
    if row.ratio is not None:
        line += f" {row.ratio:6.2f} x {row.ratio_to}"
    if row.required is not None:
        line += f"  ({row.required}{', MISSED' if row.misses else ''})"
    return line.rstrip()


def number(value: float) -> str:
    """Return a figure with three digits that matter."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def write_json(path: Path, rows: Sequence[Row], machine: dict[str, Any]) -> None:
    """Write all rows and what they depend on."""
    results = {"rows": [asdict(row) for row in rows], "machine": machine}
    path.write_text(json.dumps(results, indent=1) + "\n")


def read_json(path: Path) -> tuple[list[Row], dict[str, Any]]:
    """Return what `write_json` wrote."""
    results = json.loads(path.read_text())
    return [Row(**row) for row in results["rows"]], results["machine"]
