"""Install the pins of a requirements file into `.venv`; `make` calls this first.

It runs on a bare Python and uses only the standard library and pip. It installs wheels
only, so nothing is compiled. Concurrent runs wait for each other, and a run without
changes does nothing. Versions of Python for which there are no wheels are reported before
anything is created.
"""

from __future__ import annotations

import fcntl
import hashlib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUPPORTED = ((3, 11), (3, 12), (3, 13))
"""Versions of Python for which all dependencies have wheels."""


def install(requirements: Path, venv: Path) -> None:
    """Install the pins unless the same pins were installed last.

    venv: the folder of the virtual environment. One of another version of Python is
        replaced.
    Raises: CalledProcessError if pip fails; pip has printed the reason.
    """
    stamp = venv / f"installed-{requirements.stem}"
    wanted = fingerprint(requirements)
    with (ROOT / f"{venv.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == wanted:
            return
        if not _is_ours(venv):
            # Without ensurepip, which some distributions leave out: our pip serves it.
            _run("-m", "venv", "--clear", "--without-pip", str(venv))
        print(f"Installing {requirements.name} into {venv.name}", flush=True)
        _run(
            *("-m", "pip", "--python", str(venv / "bin" / "python")),
            *("--disable-pip-version-check", "install", "--quiet"),
            *("--require-hashes", "--only-binary", ":all:"),
            *("--requirement", str(requirements)),
        )
        stamp.write_text(wanted)


def fingerprint(requirements: Path) -> str:
    """Return a text that differs for other pins and another interpreter."""
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()
    return f"{sys.version}\n{digest}\n"


def _is_ours(venv: Path) -> bool:
    """Return whether a virtual environment exists for this version of Python."""
    settings = venv / "pyvenv.cfg"
    if not settings.exists() or not (venv / "bin" / "python").exists():
        return False
    version = re.search(r"^version\w* *= *(\d+)\.(\d+)", settings.read_text(), re.M)
    return version is None or (int(version[1]), int(version[2])) == sys.version_info[:2]


def _run(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True)


def main() -> int:
    """Install the requirements file that is named on the command line.

    A second argument is the name of the virtual environment's folder, by default `.venv`.
    """
    if sys.version_info[:2] not in SUPPORTED:
        *others, last = (f"{major}.{minor}" for major, minor in SUPPORTED)
        found = ".".join(map(str, sys.version_info[:3]))
        print(
            f"Python {', '.join(others)} or {last} is required, and {sys.executable} is"
            f" {found}. Name another one: make PYTHON=python{last}",
            file=sys.stderr,
        )
        return 1
    name = sys.argv[2] if len(sys.argv) > 2 else ".venv"
    try:
        install(ROOT / sys.argv[1], ROOT / name)
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
