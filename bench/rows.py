"""The result of a benchmark: one row for each figure, with its requirement."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. Its JSON form has these fields."""

    bench: str
    """The part of `make bench` that has measured it."""
    case: str
    value: float
    unit: str
    ratio: float | None = None
    """This figure over that of `ratio_to`, the median over rounds."""
    ratio_to: str | None = None
    required: str | None = None
    """`>= 0.75` or `<= 3`. It applies to the ratio, or to the value without a ratio."""

    @property
    def misses(self) -> bool:
        """Return whether the figure misses its requirement."""
        if self.required is None:
            return False
        comparison, limit = self.required.split()
        measured = self.value if self.ratio is None else self.ratio
        return (
            measured < float(limit) if comparison == ">=" else measured > float(limit)
        )


def median_ratio(values: Sequence[float], references: Sequence[float]) -> float:
    """Return the median of the rounds' ratios of a value to its reference.

    Both figures of a round were measured shortly after each other, so that other load
    on the machine affects both.
    """
    return median(
        value / reference for value, reference in zip(values, references, strict=True)
    )


def machine() -> dict[str, Any]:
    """Return properties of this machine that influence the figures."""
    packages = ("uvicorn", "uvloop", "httptools", "psycopg", "orjson", "py-evm")
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
    )
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(
            os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1
        ),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in packages},
        "commit": commit.stdout.strip() or None,
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
