"""Write the pins from pyproject.toml: `requirements.txt`, `-otp.txt` and `-dev.txt`.

pip resolves the ranges without installing anything, wheels only, and its report
names the versions. Newer ones are taken where the ranges allow them.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

OLDER_PATCHES = ["async-timeout>=4.0.3"]
"""What redis needs before Python 3.11.3, such as Debian 12's: pinned on every one."""


def resolve(ranges: list[str]) -> list[str]:
    """Return `name==version` of everything that the requirements come to, sorted."""
    report = subprocess.run(
        [
            *(sys.executable, "-m", "pip"),
            *("--disable-pip-version-check", "install", "--quiet", "--dry-run"),
            *("--ignore-installed", "--only-binary", ":all:", "--report", "-"),
            *ranges,
        ],
        check=True,
        stdout=subprocess.PIPE,
    )
    found = [package["metadata"] for package in json.loads(report.stdout)["install"]]
    pins = sorted((canonical(one["name"]), one["version"]) for one in found)
    return [f"{name}=={version}" for name, version in pins]


def canonical(name: str) -> str:
    """Return a distribution's normalised name.

    Source: https://packaging.python.org/en/latest/specifications/name-normalization/
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> None:
    """Write all files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    runtime = project["project"]["dependencies"] + OLDER_PATCHES
    develop = project["dependency-groups"]["dev"]
    staff = project["project"]["optional-dependencies"]["otp"]
    pins = resolve(runtime)
    _write("requirements.txt", pins)
    _write("requirements-dev.txt", resolve(runtime + develop))
    # What comes on top of the first file.
    extra = [pin for pin in resolve(runtime + staff) if pin not in pins]
    _write("requirements-otp.txt", extra)


def _write(name: str, pins: list[str]) -> None:
    (ROOT / name).write_text("\n".join(pins) + "\n")


if __name__ == "__main__":
    main()
