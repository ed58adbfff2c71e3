"""Runs Foundry's anvil for comparison, with a chain of the same shape as ours.

The program is named by the environment variable ANVIL or found on the PATH. Without it,
the comparison is skipped.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from typing import Any

from abi.encoding import call_data, mapping_slot
from bench.questions import (
    FULL_BLOCKS,
    FULL_TRANSFERS,
    ROTATION,
    SMALL_BLOCKS,
    SMALL_TRANSFERS,
    Subject,
)
from bench.token_chain import SUPPLY_EACH, TOKEN, TRANSFER_GAS
from samples.contracts import contract

START_SECONDS = 20

TOKEN_HEX = f"0x{TOKEN.hex()}"


class AnvilFailed(RuntimeError):
    """Raised when anvil does not start or returns an unexpected result."""


def find() -> str | None:
    """Return the path of the `anvil` program, or None if it is not installed."""
    return os.environ.get("ANVIL") or shutil.which("anvil")


@contextmanager
def running(program: str) -> Iterator[tuple[int, int]]:
    """Run anvil during a `with` block. Yield its port and its process id.

    Raises: AnvilFailed if it does not start in time; OSError if it can't be executed.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [
            program,
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--silent",
            "--no-mining",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise AnvilFailed("it did not come up")
            time.sleep(0.1)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(10)


def build_chain(port: int) -> Subject:
    """Make anvil mine the same blocks of token transfers as in our chain.

    Return the blocks, transactions and slots that requests can name.
    Raises: AnvilFailed if anvil returns an unexpected result.
    """
    client = _Client(port)
    accounts: list[str] = client.call("eth_accounts")
    client.call("anvil_setCode", TOKEN_HEX, f"0x{contract('token').runtime.hex()}")
    for account in accounts:
        slot = mapping_slot(bytes.fromhex(account[2:]), 0)
        value = f"0x{SUPPLY_EACH:064x}"
        client.call("anvil_setStorageAt", TOKEN_HEX, f"0x{slot:064x}", value)
    chance = random.Random(1)
    receivers = [chance.randbytes(20) for _ in range(ROTATION)]
    blocks: dict[int, list[str]] = {SMALL_TRANSFERS: [], FULL_TRANSFERS: []}
    numbers = []
    for count, transfers in (
        (SMALL_BLOCKS, SMALL_TRANSFERS),
        (FULL_BLOCKS, FULL_TRANSFERS),
    ):
        for _ in range(count):
            for _ in range(transfers):
                receiver = chance.choice(receivers)
                client.send(chance.choice(accounts), receiver)
            client.call("evm_mine")
            block = client.call("eth_getBlockByNumber", "latest", False)
            if len(block["transactions"]) != transfers:
                raise AnvilFailed(f"a block has {len(block['transactions'])} transfers")
            blocks[transfers].append(block["hash"])
            numbers.append(int(block["number"], 16))
    slots = [hex(mapping_slot(receiver, 0)) for receiver in receivers]
    return Subject(
        contract=TOKEN_HEX,
        slots=slots,
        small=blocks[SMALL_TRANSFERS],
        full=blocks[FULL_TRANSFERS],
        numbers=numbers[SMALL_BLOCKS // 2 : SMALL_BLOCKS],
    )


class _Client:
    """JSON-RPC over one connection."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=10)

    def call(self, method: str, *params: object) -> Any:
        """Return a call's result. Raises: AnvilFailed."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"Content-Type": "application/json"}
        try:
            self._connection.request("POST", "/", json.dumps(request), headers)
            answer = json.loads(self._connection.getresponse().read())
        except (OSError, HTTPException, ValueError) as error:
            raise AnvilFailed(f"{method}: {error}") from error
        if "error" in answer:
            raise AnvilFailed(f"{method}: {answer['error']}")
        return answer["result"]

    def send(self, sender: str, receiver: bytes) -> None:
        """Send a transfer of tokens, which stays in the pool until a block is mined."""
        data = call_data("transfer(address,uint256)", receiver, 1)
        transaction = {
            "from": sender,
            "to": TOKEN_HEX,
            "data": f"0x{data.hex()}",
            "gas": hex(TRANSFER_GAS),
        }
        self.call("eth_sendTransaction", transaction)


def _answers(port: int) -> bool:
    try:
        _Client(port).call("eth_chainId")
    except AnvilFailed:
        return False
    return True
