"""Pin dependencies with hashes, from the ranges in pyproject.toml: `make lock`.

uv resolves the ranges for all platforms and Python versions that the project supports.
It lists the hash of every file of a pinned version, so the pins work on all
architectures. This requires an index that lists hashes (PEP 503). For other indexes, uv
hashes a single file. A pinned version stays if the ranges permit it. `make lock
ARGS=--upgrade` selects the newest versions.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

_PIP_SECTIONS = ("global", "install", ":env:")
"""Sections of pip's configuration. Later ones take precedence.

Source: https://pip.pypa.io/en/stable/topics/configuration/"""

_UV_VARIABLES = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", " "),
}
"""pip setting → uv's environment variable, and the separator of several values.

Source: https://docs.astral.sh/uv/reference/environment/"""


def lock(root: Path, arguments: Sequence[str]) -> None:
    """Write all requirements files of the project in the folder `root`.

    arguments: further options for uv, such as `--upgrade`.

    Raises: CalledProcessError if uv fails. uv has printed the reason.
    """
    python = _oldest_python(root)
    environment = uv_environment(_pip_settings())

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


def uv_environment(pip_settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which uv uses the same package indexes as pip.

    pip_settings: pip setting → values, separated by white space.
    """
    # pip takes the best match of all its indexes, uv by default that of the first.
    found = {**os.environ, "UV_INDEX_STRATEGY": "unsafe-best-match"}
    for name, (variable, separator) in _UV_VARIABLES.items():
        if name in pip_settings:
            found[variable] = separator.join(pip_settings[name].split())
    return found


def _pip_settings() -> dict[str, str]:
    """Return the installation settings of pip's configuration files and variables."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    lines = re.findall(r"^([\w:]+)\.([\w-]+)=(.+)$", listed, re.MULTILINE)
    return {
        name: str(ast.literal_eval(value))
        for wanted in _PIP_SECTIONS
        for section, name, value in lines
        if section == wanted
    }


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
