"""Run published fixtures: `python -m tests.consensus DIR [--only TEXT] [--jobs N]`.

Standard output gets one line per failure and a summary, standard error a line of
progress. Exit status: 0 if all tests passed, 1 if one failed, 2 if there is no test.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from tests.consensus.files import find_files
from tests.consensus.pool import Pool, Running
from tests.consensus.verdict import Status, Verdict

PROGRESS_SECONDS = 15.0
LIMIT_SECONDS = 7200.0
"""Time limit of a test. `CALLBlake2f_MaxRounds` takes minutes even in native code."""
LONG_SECONDS = 10.0
"""Tests that take longer are named in the line of progress."""


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        prog="make test-consensus DIR=…",
        description="Run BlockchainTests, GeneralStateTests and EEST fixtures.",
    )
    parser.add_argument("folder", type=Path, help="a folder of fixtures, or one file")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="tests whose path or name has it"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes"
    )
    parser.add_argument(
        "--limit-seconds", type=float, default=LIMIT_SECONDS, help="for each test"
    )
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Run the fixtures of a folder, and return the exit status."""
    options = parse(arguments)
    if not options.folder.exists():
        print(f"{options.folder} does not exist", file=sys.stderr)
        return 2
    files, began = find_files(options.folder), time.monotonic()
    pool = Pool(
        files,
        jobs=min(options.jobs, len(files)),
        only=options.only,
        limit_seconds=options.limit_seconds,
    )
    counts: Counter[Status] = Counter()
    unknown: Counter[tuple[Status, str]] = Counter()
    next_progress = began + PROGRESS_SECONDS
    for event in pool.events():
        if event is not None:
            path, verdict = event
            counts[verdict.status] += 1
            report(path, verdict, unknown)
        if time.monotonic() >= next_progress:
            print(progress(counts, pool.running), file=sys.stderr, flush=True)
            next_progress = time.monotonic() + PROGRESS_SECONDS
    return summarize(counts, unknown, len(files), time.monotonic() - began)


def report(path: Path, verdict: Verdict, unknown: Counter[tuple[Status, str]]) -> None:
    """Print a failure. Count tests that were not run, by reason."""
    if verdict.status is Status.FAILED:
        detail = " ".join(verdict.detail.split())
        print(f"FAILED {path}::{verdict.name}: {detail}", flush=True)
    elif verdict.status is not Status.PASSED:
        unknown[verdict.status, verdict.detail] += 1


def progress(counts: Counter[Status], running: list[Running]) -> str:
    """Return the progress line, with the tests that take long."""
    now = time.monotonic()
    long = [
        f"{worker.task.path.name}::{worker.test} ({now - worker.since:.0f} s)"
        for worker in running
        if worker.test and now - worker.since > LONG_SECONDS
    ]
    line = f"… {counts[Status.PASSED]} passed, {counts[Status.FAILED]} failed"
    return f"{line}; running {', '.join(long)}" if long else line


def summarize(
    counts: Counter[Status],
    unknown: Counter[tuple[Status, str]],
    files: int,
    seconds: float,
) -> int:
    """Print the summary, and return the exit status."""
    for (status, detail), count in sorted(unknown.items(), key=str):
        print(f"not run, {status.value}: {detail} ({count} tests)")
    passed, failed = counts[Status.PASSED], counts[Status.FAILED]
    other = counts.total() - passed - failed
    print(
        f"{passed} passed, {failed} failed, {other} not run; "
        f"{files} files in {seconds:.1f} s"
    )
    if not passed + failed:
        print("no test was run", file=sys.stderr)
        return 2
    return 1 if failed else 0


if __name__ == "__main__":
    # An exception, so that the worker processes are ended as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(sys.argv[1:]))
