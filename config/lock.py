"""Pin dependencies with hashes, from the ranges in pyproject.toml: `make lock`.

uv resolves the ranges for all platforms and Python versions that the project supports.
It lists the hash of every file of a pinned version, so the pins work on all
architectures. This requires an index that lists hashes (PEP 503). For other indexes, uv
hashes a single file. A pinned version stays if the ranges permit it. `make lock
ARGS=--upgrade` selects the newest versions.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from config.package_indexes import uv_environment

ROOT = Path(__file__).resolve().parent.parent


def lock(root: Path, arguments: Sequence[str]) -> None:
    """Write all requirements files of the project in the folder `root`.

    arguments: further options for uv, such as `--upgrade`.

    Raises: CalledProcessError if uv fails. uv has printed the reason.
    """
    python = _oldest_python(root)
    environment = uv_environment()

    def compile_pins(output: str, *sources: str) -> None:
        command = [
            *(sys.executable, "-m", "uv", "pip", "compile", "--quiet"),
            *("--universal", "--python-version", python, "--only-binary", ":all:"),
            *("--generate-hashes", "--no-annotate"),
            *("--custom-compile-command", "make lock", "--output-file", output),
            *(*arguments, *sources),
        ]
        subprocess.run(
            command, check=True, cwd=root, env=environment, stdout=subprocess.DEVNULL
        )

    # The largest set first: the others are parts of it, at the same versions.
    compile_pins("requirements-dev.txt", "pyproject.toml", "--group", "dev")
    parts = ("pyproject.toml", "--constraint", "requirements-dev.txt")
    compile_pins("requirements.txt", *parts)
    # Installed after the second file, therefore without the packages of that file.
    present = [f"--no-emit-package={name}" for name in pinned(root, "requirements.txt")]
    compile_pins("requirements-otp.txt", *parts, "--extra", "otp", *present)
    oracle = "tests/differential/requirements"
    compile_pins(f"{oracle}.txt", f"{oracle}.in")


def pinned(root: Path, name: str) -> dict[str, str]:
    """Return the versions in a requirements file, by the packages' normalised names."""
    pins = re.findall(r"^([\w-]+)==([^\s;]+)", (root / name).read_text(), re.MULTILINE)
    return dict(pins)


def _oldest_python(root: Path) -> str:
    """Return the lowest version in `requires-python`, such as `3.11`."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    lowest, _, _ = str(project["requires-python"]).partition(",")
    return lowest.removeprefix(">=")


def main() -> int:
    """Write all requirements files. Command-line arguments are passed to uv."""
    try:
        lock(ROOT, sys.argv[1:])
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
