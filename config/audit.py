"""Look up known vulnerabilities of the pinned versions: `make audit`.

A machine without access to the vulnerability service can't audit anything. That is a
failure, or a warning with `--optional` (`make check AUDIT_OPTIONAL=1`).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

ANSWER_SECONDS = 5
"""Timeout of one request to the service."""

PATIENCE_SECONDS = 60
"""Timeout of all requests, so that a slow network does not block a check."""

NOT_AUDITED = 2
"""Exit status when no pin could be checked."""


def ask(requirements: Path) -> list[dict[str, Any]] | str:
    """Return pip-audit's entry for each pinned package, or an error message.

    pip-audit takes other options from its own environment variables, such as
    PIP_AUDIT_VULNERABILITY_SERVICE.
    """
    try:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pip_audit", "--requirement", requirements),
                *("--require-hashes", "--disable-pip", "--progress-spinner", "off"),
                *("--timeout", str(ANSWER_SECONDS), "--format", "json"),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"the service took longer than {PATIENCE_SECONDS} s"
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except ValueError:
        return _reason(done.stderr)
    return found


def _reason(output: str) -> str:
    """Return the last line of pip-audit's errors that has a message."""
    lines = output.strip().splitlines()
    # An exception without one ends the traceback of the exception that has it.
    messages = [line for line in lines if re.match(r"ERROR:|[\w.]+: ", line)]
    return (messages or lines or ["pip-audit printed nothing"])[-1]


def report(packages: Iterable[dict[str, Any]]) -> tuple[list[str], int, int]:
    """Return a line for each vulnerability, and the numbers of known and unknown pins."""
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


def main(arguments: Sequence[str]) -> int:
    """Print the vulnerabilities and return the exit status.

    The status is 1 if a pinned version has a known vulnerability. It is NOT_AUDITED if
    no version could be checked and `--optional` is not given, and otherwise 0.
    """
    parser = ArgumentParser(prog="audit", description="Audit the pinned versions.")
    parser.add_argument(
        "--optional",
        action="store_true",
        help="only warn if the vulnerability service is unreachable",
    )
    options = parser.parse_args(arguments)
    found = ask(ROOT / "requirements-dev.txt")
    if isinstance(found, str):
        return _not_audited(found, options.optional)
    lines, known, unknown = report(found)
    if not known:
        reason = "the service knows none of the pinned packages"
        return _not_audited(reason, options.optional)
    print(*lines, sep="\n", end="\n" if lines else "")
    left_out = f", {unknown} of which are unknown to the service" if unknown else ""
    total = known + unknown
    print(f"audit: {len(lines)} known vulnerabilities in {total} pins{left_out}")
    return 1 if lines else 0


def _not_audited(reason: str, optional: bool) -> int:
    """Report that no pin was checked; returns the exit status."""
    kind = "WARNING" if optional else "ERROR"
    print(
        f"audit: {kind}: no pinned version was checked for known vulnerabilities:\n"
        f"audit: {reason}",
        file=sys.stderr,
    )
    if optional:
        return 0
    print("audit: AUDIT_OPTIONAL=1 makes this a warning", file=sys.stderr)
    return NOT_AUDITED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
