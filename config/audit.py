"""Look for known vulnerabilities in what is pinned, where the index answers.

A machine without a network passes: the look says that it was left out, and why.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

ANSWER_SECONDS = 5
"""For one answer of the index."""

PATIENCE_SECONDS = 60
"""For all of them: a check must not hang on a slow network."""


def ask(requirements: Path) -> list[dict[str, Any]] | str:
    """Return what is known of each pinned package, or why nothing could be learned."""
    try:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pip_audit", "--requirement", requirements),
                *("--no-deps", "--disable-pip", "--progress-spinner", "off"),
                *("--timeout", str(ANSWER_SECONDS), "--format", "json"),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"the index took longer than {PATIENCE_SECONDS} s"
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except ValueError:
        return (done.stderr.strip().splitlines() or ["no answer"])[-1]
    return found


def report(packages: Iterable[dict[str, Any]]) -> tuple[list[str], int, int]:
    """Return a line for each vulnerability, how many were looked up, how many not."""
    lines = []
    known = unknown = 0
    for package in packages:
        if "skip_reason" in package:
            unknown += 1
            continue
        known += 1
        for flaw in package["vulns"]:
            fixed = ", ".join(flaw["fix_versions"]) or "no version yet"
            pin = f"{package['name']}=={package['version']}"
            lines.append(f"{pin}: {flaw['id']}, fixed in {fixed}")
    return lines, known, unknown


def main() -> int:
    """Print what was found; 1 when a pinned version is known to be vulnerable."""
    found = ask(ROOT / "requirements-dev.txt")
    if isinstance(found, str):
        print(f"audit: skipped: {found}")
        return 0
    lines, known, unknown = report(found)
    print(*lines, sep="\n", end="\n" if lines else "")
    if not known:
        print("audit: skipped: the index knows nothing of any package")
    else:
        left_out = f", {unknown} of which nothing is known" if unknown else ""
        print(f"audit: {len(lines)} known vulnerabilities in {known} pins{left_out}")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
