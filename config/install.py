"""Make `.venv` hold what a requirements file pins; `make` calls this first.

Runs on a bare Python, so that it uses nothing but the standard library and that
Python's pip. Wheels only: nothing is compiled. Two that run at once wait for each
other, and one that finds everything done does nothing.
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
    """Install the pins unless they are what was installed last.

    Raises: CalledProcessError when pip fails; pip has said why.
    """
    stamp = VENV / f"installed-{requirements.stem}"
    wanted = _fingerprint(requirements)
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
            *("--only-binary", ":all:", "--requirement", str(requirements)),
        )
        stamp.write_text(wanted)


def _fingerprint(requirements: Path) -> str:
    """Return what the installation depends on: the pins and the interpreter."""
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
