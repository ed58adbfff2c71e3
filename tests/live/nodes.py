"""Real nodes in processes of their own: geth in developer mode, and anvil."""

from __future__ import annotations

import json
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx

from samples.schedules import fork_genesis
from tests.live.programs import ANVIL
from tests.support.ports import free_port
from tests.support.waiting import wait_until

DEVELOPER = "0x71562b71999873db5b286df957af199ec94617f7"
DEVELOPER_BALANCE = 2**256 - 9
DEVELOPER_KEY = "0xb71c71a67e1177ad4e901695e1b4b9ee17ae16c6668d313eac2f96dbcda3f291"
"""The account of every `geth --dev`. geth's sources publish its private key."""

AMSTERDAM_SECONDS = 20
"""Time from a geth's first start to Amsterdam, so that its first blocks are Osaka's."""
_GENESIS_TIME = 1_700_000_000
"""Timestamp of anvil's genesis block."""


class RpcError(Exception):
    """Raised when a node returns an error."""


class Node(ABC):
    """A node in a process of its own, which can be killed and started again.

    folder: for its files and its log.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._client = httpx.Client(base_url=self.url, timeout=60, trust_env=False)

    @abstractmethod
    def command(self) -> list[str]:
        """Return the command line."""

    def start(self) -> None:
        """Start the process and wait until it answers."""
        with (self.folder / "node.log").open("ab") as log:
            self._process = subprocess.Popen(self.command(), stdout=log, stderr=log)
        wait_until(self._is_ready)

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log()[-3000:]
        try:
            return bool(self.call("eth_chainId"))
        except (httpx.TransportError, json.JSONDecodeError):
            return False

    def kill(self) -> None:
        """Kill the process with SIGKILL, as the kernel does when memory runs out."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """End the process and the connections to it."""
        self.kill()
        self._client.close()

    def log(self) -> str:
        """Return the output of the process."""
        return (self.folder / "node.log").read_text(errors="replace")

    def call(self, method: str, *params: Any) -> Any:
        """Return the result of a call. Raises: RpcError."""
        (answer,) = self.batch([(method, *params)])
        if "error" in answer:
            raise RpcError(f"{method}: {answer['error']}")
        return answer["result"]

    def batch(self, calls: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
        """Return the responses, `{"result": …}` or `{"error": …}`, in the calls' order."""
        return batch(self._client, "/", calls)

    def head(self) -> int:
        """Return the number of the newest block."""
        return int(self.call("eth_blockNumber"), 16)

    def next_block(self) -> int:
        """Wait for a new block and return its number."""
        before = self.head()
        return wait_until(lambda: number if (number := self.head()) > before else 0)


def batch(
    client: httpx.Client, path: str, calls: Iterable[tuple[Any, ...]]
) -> list[dict[str, Any]]:
    """Make calls, each a method with its parameters, in one batch."""
    messages = [
        {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        for number, (method, *params) in enumerate(calls)
    ]
    response = client.post(path, json=messages)
    answers = response.json()
    assert isinstance(answers, list), answers
    answers.sort(key=lambda answer: answer["id"])
    assert [answer["id"] for answer in answers] == list(range(len(messages)))
    names = ("result", "error")
    return [
        {name: answer[name] for name in names if name in answer} for answer in answers
    ]


class Geth(Node):
    """`geth --dev --dev.period 1`, over HTTP and WebSocket, with an archive of states.

    Its genesis has Amsterdam a little later, instead of Bogota from the beginning, which
    is geth's own one.
    """

    def __init__(self, binary: str, folder: Path) -> None:
        super().__init__(folder)
        self._binary = binary
        self._storage = ("--datadir", str(folder / "data"), "--state.scheme", "hash")
        self._ports = free_port(), free_port()
        self.amsterdam_time = int(time.time()) + AMSTERDAM_SECONDS
        self.socket_url = f"ws://127.0.0.1:{self._ports[0]}"

    def command(self) -> list[str]:
        address = "127.0.0.1"
        return [
            *(self._binary, "--dev", "--dev.period", "1"),
            *(*self._storage, "--gcmode", "archive", "--ipcdisable"),
            *("--http", "--http.addr", address, "--http.port", str(self.port)),
            *("--http.api", "eth,debug,net,web3,txpool"),
            *("--ws", "--ws.addr", address, "--ws.port", str(self._ports[0])),
            *("--ws.api", "eth,debug,net,web3", "--authrpc.port", str(self._ports[1])),
            *("--maxpeers", "0", "--nodiscover", "--port", "0"),
        ]

    def start(self) -> None:
        """Start geth, the first time on the genesis block."""
        if not (self.folder / "data").exists():
            file = self.folder / "genesis.json"
            file.write_text(json.dumps(self.genesis()))
            self._run("init", *self._storage, str(file))
        super().start()

    def _run(self, *arguments: str) -> str:
        """Run a command of geth's to its end and return what it prints."""
        command = [self._binary, *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout

    def finalized(self) -> int:
        """Return the number of the finalized block, 0 if there is none yet."""
        try:
            found = self.call("eth_getBlockByNumber", "finalized", False)
        except RpcError:
            return 0
        return int(found["number"], 16)

    def genesis(self) -> dict[str, Any]:
        """Return genesis.json with the developer's account, which geth omits."""
        genesis: dict[str, Any] = json.loads(self._run("--dev", "dumpgenesis"))
        del genesis["config"]["bogotaTime"]
        genesis["config"]["amsterdamTime"] = self.amsterdam_time
        genesis["alloc"][DEVELOPER[2:]] = {"balance": hex(DEVELOPER_BALANCE)}
        return genesis


class Anvil(Node):
    """anvil without accounts and fees, which makes blocks only on demand.

    Block 0 of anvil has the state root of an empty state, even if accounts have ether in
    it. Without any account and any fee, the root is right.
    """

    CHAIN_ID = 31_337

    def command(self) -> list[str]:
        return [
            *(str(ANVIL), "--hardfork", "cancun", "--port", str(self.port)),
            *("--accounts", "0", "--disable-default-create2-deployer"),
            *("--gas-price", "0", "--block-base-fee-per-gas", "0"),
            *("--timestamp", str(_GENESIS_TIME), "--no-mining"),
        ]

    def start(self) -> None:
        """Start anvil, with a second between blocks.

        Otherwise anvil gives blocks of a reorganisation the timestamp of their parent.
        """
        super().start()
        self.call("anvil_setBlockTimestampInterval", 1)

    def mine(self) -> None:
        """Make a block."""
        self.call("evm_mine")

    def genesis(self) -> dict[str, Any]:
        """Return genesis.json."""
        genesis = fork_genesis("cancun", chain_id=self.CHAIN_ID)
        changed = {"alloc": {}, "baseFeePerGas": "0x0", "difficulty": "0x0"}
        return {**genesis, **changed, "timestamp": hex(_GENESIS_TIME)}
