"""The soak test: hours of blocks, reorganisations and failures under load.

python -m bench soak --minutes 120
"""

from __future__ import annotations

import argparse

from bench import report
from bench.own_services import own_services

MINUTES = 120


def main(arguments: list[str]) -> int:
    """Run the test, and print a table. Return 1 if a check has failed, else 0."""
    parser = argparse.ArgumentParser(prog="python -m bench soak")
    parser.add_argument("--minutes", type=float, default=MINUTES)
    minutes = parser.parse_args(arguments).minutes
    with own_services() as folder:
        from bench.soak_run import soak  # needs Django

        rows = soak(folder, minutes)
    print(report.table(rows))
    return 1 if any(row.misses for row in rows) else 0
