"""Runs geth with a chain for comparison, on the cores of the servers.

The program is named by the environment variable GETH or found on the PATH. Without it,
the comparison is skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from bench.servers import Target
from bench.token_chain import TokenChain

GETH = "geth"
START_SECONDS = 60

_CONFIG = """
[Node.P2P]
ListenAddr = ""
MaxPeers = 0
NoDiscovery = true
"""
"""geth has no flag that disables its peer-to-peer listener."""


class GethFailed(RuntimeError):
    """Raised when geth does not start, or rejects the chain."""


def find() -> str | None:
    """Return the path of the `geth` program, or None if it is not installed."""
    return os.environ.get("GETH") or shutil.which("geth")


@contextmanager
def serving_geth(
    program: str, chain: TokenChain, folder: Path, cores: set[int]
) -> Iterator[Target]:
    """Import a chain into a new archive node, and serve it during a `with` block.

    folder: for geth's files; it must not exist yet. cores: processor cores for geth.

    Raises: GethFailed.
    """
    folder.mkdir(parents=True)
    config = folder / "geth.toml"
    config.write_text(_CONFIG)
    data = ("--datadir", str(folder / "data"), "--state.scheme", "hash")
    archive = ("--gcmode", "archive")
    _run(program, "init", *data, str(chain.genesis_path))
    _run(program, "import", *data, *archive, str(chain.chain_path))
    port, inner = _free_port(), _free_port()
    pinned = ("taskset", "--cpu-list", ",".join(map(str, sorted(cores))))
    with (folder / "geth.log").open("wb") as log:
        process = subprocess.Popen(
            [
                *(*pinned, program, *data, *archive, "--config", str(config)),
                *("--syncmode", "full", "--ipcdisable", "--authrpc.port", str(inner)),
                *("--http", "--http.addr", "127.0.0.1", "--http.port", str(port)),
                *("--http.api", "eth,debug,net,web3"),
            ],
            stdout=log,
            stderr=log,
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _is_ready(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise GethFailed((folder / "geth.log").read_text()[-2000:])
            time.sleep(0.1)
        yield Target(GETH, port, [process.pid])
    finally:
        process.terminate()
        process.wait()


def _run(*arguments: str) -> None:
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode:
        raise GethFailed(done.stderr[-2000:])


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def _is_ready(port: int) -> bool:
    """Return whether geth answers and has indexed the chain."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "eth_syncing", "params": []}
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/", json.dumps(body), headers)
        answer = json.loads(connection.getresponse().read())
    except (OSError, HTTPException, ValueError):
        return False
    finally:
        connection.close()
    return bool(answer.get("result") is False)
