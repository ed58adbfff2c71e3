"""Install the pins of a requirements file into `.venv`; `make` calls this first.

It runs on a bare Python and uses only the standard library and pip. It installs wheels
only, so nothing is compiled. Concurrent runs wait for each other, and a run without
changes does nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
MINIMUM = (3, 11)


def install(requirements: Path) -> None:
    """Install the pins unless the same pins were installed last.

    Raises: CalledProcessError if pip fails; pip has printed the reason.
    """
    stamp = VENV / f"installed-{requirements.stem}"
    wanted = fingerprint(requirements)
    with (ROOT / ".venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == wanted:
            return
        if not (VENV / "bin" / "python").exists():
            # Without ensurepip, which some distributions leave out: our pip serves it.
            _run("-m", "venv", "--without-pip", str(VENV))
        print(f"Installing {requirements.name} into .venv", flush=True)
        _run(
            *("-m", "pip", "--python", str(VENV / "bin" / "python")),
            *("--disable-pip-version-check", "install", "--quiet"),
            *("--require-hashes", "--only-binary", ":all:"),
            *("--requirement", str(requirements)),
        )
        stamp.write_text(wanted)


def fingerprint(requirements: Path) -> str:
    """Return a text that changes with the pins or the interpreter."""
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()
    return f"{sys.version}\n{digest}\n"


def _run(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True)


def main() -> int:
    """Install the requirements file that is named on the command line."""
    if sys.version_info < MINIMUM:
        found = ".".join(map(str, sys.version_info[:3]))
        print(f"Python 3.11 or newer is needed, this is {found}: make PYTHON=…")
        return 1
    try:
        install(ROOT / sys.argv[1])
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
