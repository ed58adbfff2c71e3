"""Output of the benchmark rows as a text table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

from bench.rows import Row


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a table for the terminal, one line for each case."""
    width = max((len(row.case) for row in rows), default=0)
    lines = []
    for bench, of_bench in groupby(rows, key=lambda row: row.bench):
        lines += ["", bench]
        for case, of_case in groupby(of_bench, key=lambda row: row.case):
            figures = "  ".join(map(_figure, of_case))
            lines.append(f"  {case:<{width}}  {figures}".rstrip())
    return "\n".join(lines)


def _figure(row: Row) -> str:
    text = f"{number(row.value):>7} {row.unit}"
    notes = []
    if row.ratio is not None:
        notes.append(f"{row.ratio:.2f} of {row.ratio_to}")
    if row.required is not None:
        notes.append(f"{row.required}{', MISSED' if row.misses else ''}")
    return f"{text} ({', '.join(notes)})" if notes else text


def number(value: float) -> str:
    """Format a figure with three significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def write_json(path: Path, rows: Sequence[Row], machine: dict[str, Any]) -> None:
    """Write all rows, with a description of the machine."""
    results = {"rows": [asdict(row) for row in rows], "machine": machine}
    path.write_text(json.dumps(results, indent=1) + "\n")


def read_json(path: Path) -> tuple[list[Row], dict[str, Any]]:
    """Return the rows and the machine that `write_json` has written."""
    results = json.loads(path.read_text())
    return [Row(**row) for row in results["rows"]], results["machine"]
