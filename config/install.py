"""Install the pins of a requirements file into `.venv`; `make` calls this first.

It runs on a bare Python and uses only the standard library and pip, which installs uv into
a temporary folder: uv needs a sixth of pip's time. Where uv can't be used, pip installs
everything. Only wheels are installed, so nothing is compiled. Concurrent runs wait for each other, and a run without
changes does nothing. Versions of Python for which there are no wheels are reported before
anything is created.
"""

from __future__ import annotations

import fcntl
import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from config.package_indexes import uv_environment

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
        python = str(venv / "bin" / "python")
        if not _uv_installs(requirements, python):
            print("uv could not install them; pip does", flush=True)
            _run("-m", "pip", "--python", python, *_pip_install(requirements))
        stamp.write_text(wanted)


def _pip_install(requirements: Path) -> Sequence[str]:
    """Return the arguments with which pip installs pins quietly."""
    return [
        *("--disable-pip-version-check", "install", "--quiet"),
        *("--require-hashes", "--only-binary", ":all:"),
        *("--requirement", str(requirements)),
    ]


def _uv_installs(requirements: Path, python: str) -> bool:
    """Install the pins with the uv that the project pins. Return whether it succeeded.

    Errors are not printed, because pip will report them.
    """
    pins = (ROOT / "requirements-dev.txt").read_text()
    pin = re.search(r"^uv==.*?(?=^\S|\Z)", pins, re.MULTILINE | re.DOTALL)
    with tempfile.TemporaryDirectory() as folder:
        only_uv = Path(folder, "requirements.txt")
        only_uv.write_text(pin[0] if pin else "")
        try:
            _run("-m", "pip", *_pip_install(only_uv), "--target", folder, quietly=True)
            subprocess.run(
                [
                    *(str(Path(folder, "bin", "uv")), "pip", "install", "--quiet"),
                    *("--python", python, "--require-hashes", "--no-build"),
                    *("--no-config", "--no-cache", "--compile-bytecode"),
                    *("--requirement", str(requirements)),
                ],
                check=True,
                env=uv_environment(),
                stderr=subprocess.DEVNULL,
            )
        except (OSError, subprocess.CalledProcessError):
            return False
    return True


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


def _run(*arguments: str, quietly: bool = False) -> None:
    stderr = subprocess.DEVNULL if quietly else None
    subprocess.run([sys.executable, *arguments], check=True, stderr=stderr)


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
