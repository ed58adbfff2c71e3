"""Paths of geth, anvil and cast; `python -m tests.live.programs` builds geth.

A geth of the pinned version is taken from the PATH, or else from the user's cache, into
which Go builds it once. npm installs anvil and cast into this folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.golden.geth import VERSION, GethError, find_geth

FOLDER = Path(__file__).parent
ANVIL = FOLDER / "node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil"
CAST = FOLDER / "node_modules/@foundry-rs/cast-linux-amd64/bin/cast"

_MODULE = "github.com/ethereum/go-ethereum/cmd/geth"


def cache_folder() -> Path:
    """Return the folder of the user's cache that has the built geth."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "portcullis" / f"geth-{VERSION}"


def geth() -> str:
    """Return the path of geth. Raises: GethError if it is neither on the PATH nor built."""
    try:
        return find_geth()
    except GethError:
        built = cache_folder() / "geth"
        if not built.exists():
            raise
        return str(built)


def build_geth() -> str:
    """Return the path of geth; build it if there is none.

    Raises: GethError if Go is missing, or if it can't build geth.
    """
    try:
        return geth()
    except GethError:
        pass
    go = shutil.which("go")
    if go is None:
        raise GethError(f"there is neither geth {VERSION} nor Go here")
    folder = cache_folder()
    # An interrupted build leaves no file with the final name.
    draft = folder.with_name(f"{folder.name}.{os.getpid()}")
    try:
        done = subprocess.run(
            [go, "install", f"{_MODULE}@v{VERSION}"],
            env={**os.environ, "GOBIN": str(draft)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no reason"])[-1]
            raise GethError(f"Go could not build geth {VERSION}: {last}")
        folder.mkdir(parents=True, exist_ok=True)
        (draft / "geth").replace(folder / "geth")
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return str(folder / "geth")


if __name__ == "__main__":
    try:
        print(build_geth())
    except GethError as error:
        print(f"Skipped: {error}")
