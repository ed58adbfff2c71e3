"""A geth process that has imported a chain and answers JSON-RPC on loopback."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.ports import free_port

VERSION = "1.17.10"
"""Of geth, whose responses are checked in."""

_START_SECONDS = 60
_BATCH_CALLS = 100
_TOO_LONG = -32003
"""Code of responses that are left out of a batch, because it is too long."""

_CONFIG = """
[Node.P2P]
ListenAddr = ""
MaxPeers = 0
NoDiscovery = true
"""
"""geth has no flag that disables its peer-to-peer listener."""


class GethError(Exception):
    """Raised if there is no usable geth, or if geth rejects a chain."""


class Geth:
    """Calls to a running geth."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = httpx.Client(base_url=url, timeout=60, trust_env=False)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def call(self, method: str, params: list[Any]) -> dict[str, Any]:
        """Return the response's member: `{"result": …}` or `{"error": …}`."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        response: dict[str, Any] = self._client.post("/", json=body).json()
        return {
            name: response[name] for name in ("result", "error") if name in response
        }

    def batch(self, calls: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
        """Return the responses to calls, each a method with its parameters.

        geth does not answer all calls of a batch whose responses are too long together.
        """
        asked = list(calls)
        messages = [
            {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            for number, (method, *params) in enumerate(asked)
        ]
        found: dict[int, dict[str, Any]] = {}
        for start in range(0, len(messages), _BATCH_CALLS):
            some = messages[start : start + _BATCH_CALLS]
            for response in self._client.post("/", json=some).json():
                if response.get("error", {}).get("code") != _TOO_LONG:
                    names = response.keys() & {"result", "error"}
                    found[response["id"]] = {name: response[name] for name in names}
        return [
            found[number] if number in found else self.call(method, params)
            for number, (method, *params) in enumerate(asked)
        ]

    def is_ready(self) -> bool:
        """Return whether geth answers and has indexed all transactions.

        A geth that has only block 0 reports that it is syncing.
        """
        try:
            return self.call("eth_blockNumber", []) == {"result": "0x0"} or self.call(
                "eth_syncing", []
            ) == {"result": False}
        except httpx.TransportError:
            return False


def find_geth() -> str:
    """Return the path of the `geth` on the PATH.

    Raises: GethError if there is none, or if it is another version.
    """
    install = (
        f"go install github.com/ethereum/go-ethereum/cmd/geth@v{VERSION}\n"
        "and add Go's bin folder to the PATH."
    )
    path = shutil.which("geth")
    if path is None:
        raise GethError(f"There is no geth on the PATH. Install it with\n{install}")
    text = _run(path, "version")
    if f"\nVersion: {VERSION}-" not in text:
        raise GethError(f"{path} is not geth {VERSION}. Install that with\n{install}")
    return path


@contextmanager
def running_geth(
    binary: str,
    genesis: Any,
    chain: bytes,
    folder: Path,
    *,
    apis: str = "eth,debug",
    archive: bool = True,
) -> Iterator[Geth]:
    """Start geth on a new chain, and give calls to it.

    genesis: geth's genesis.json. chain: the RLP of the blocks after the genesis block.
    folder: an empty folder for geth's files. apis: served beside `net` and `web3`.
    archive: whether all states are kept, and not only those of the newest 128 blocks.
    Raises: GethError.
    """
    paths = {name: folder / name for name in ("genesis.json", "chain.rlp", "geth.toml")}
    paths["genesis.json"].write_text(json.dumps(genesis))
    paths["chain.rlp"].write_bytes(chain)
    paths["geth.toml"].write_text(_CONFIG)
    scheme = "hash" if archive else "path"
    data = ("--datadir", str(folder / "data"), "--state.scheme", scheme)
    mode = ("--gcmode", "archive" if archive else "full")
    _run(binary, "init", *data, str(paths["genesis.json"]))
    if chain:
        _run(binary, "import", *data, *mode, str(paths["chain.rlp"]))
    port = free_port()
    arguments = [
        *(binary, *data, *mode, "--config", str(paths["geth.toml"])),
        *("--syncmode", "full", "--ipcdisable", "--authrpc.port", str(free_port())),
        *("--http", "--http.addr", "127.0.0.1", "--http.port", str(port)),
        *("--http.api", f"{apis},net,web3"),
    ]
    log_file = folder / "geth.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(arguments, stdout=log, stderr=log)
    geth = Geth(f"http://127.0.0.1:{port}")
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not geth.is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise GethError(f"geth did not start:\n{log_file.read_text()[-3000:]}")
            time.sleep(0.1)
        yield geth
    finally:
        geth.close()
        process.terminate()
        process.wait()


def exported(binary: str, folder: Path) -> bytes:
    """Return what `geth export` writes. folder: that of a geth that has ended."""
    data = ("--datadir", str(folder / "data"), "--state.scheme", "hash")
    file = folder / "exported.rlp"
    _run(binary, "export", *data, str(file))
    return file.read_bytes()


def _run(*arguments: str) -> str:
    """Run a command of geth's to its end and return what it prints."""
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode:
        raise GethError(f"{' '.join(arguments)} failed:\n{done.stderr[-3000:]}")
    return done.stdout
