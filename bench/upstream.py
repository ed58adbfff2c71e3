"""A simulated node in a process of its own, as an upstream over WebSocket.

    python -m bench.upstream GENESIS PORT

It begins with block 0 of a genesis.json, and prints "ready" when it listens. Each line of
standard input is a JSON list of blocks, as RLP in hexadecimal. The process makes these
blocks canonical, notifies the subscribers of the head, and prints the time of the
notification in seconds of `time.monotonic`.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from config import env
from evm.blocks import decode_block
from samples.builder import ChainBuilder
from samples.node import NOT_OFFERED, ChainNode, Refused

# In its own process


class _Server:
    """Answers calls, and notifies the subscribers of new heads."""

    def __init__(self, node: ChainNode) -> None:
        self._node = node
        self._subscribers: dict[ServerConnection, list[str]] = {}

    async def show(self, blocks: Sequence[str]) -> float:
        """Make blocks canonical, and return when the subscribers were notified."""
        decoded = [decode_block(bytes.fromhex(each)) for each in blocks]
        self._node.show_blocks(*decoded)
        head = self._node.head_document()
        now = time.monotonic()
        for client, names in list(self._subscribers.items()):
            for name in names:
                params = {"subscription": name, "result": head}
                message = {"method": "eth_subscription", "params": params}
                with suppress(ConnectionClosed):  # a follower may disconnect
                    await client.send(json.dumps({"jsonrpc": "2.0", **message}))
        return now

    async def serve_socket(self, client: ServerConnection) -> None:
        """Answer the calls of a socket until it is closed."""
        self._subscribers[client] = []
        try:
            async for message in client:
                found = json.loads(message)
                calls = found if isinstance(found, list) else [found]
                answers = [self._answer(call, client) for call in calls]
                content = answers if isinstance(found, list) else answers[0]
                await client.send(json.dumps(content))
        except ConnectionClosed:
            pass
        finally:
            del self._subscribers[client]

    def _answer(self, call: dict[str, Any], client: ServerConnection) -> dict[str, Any]:
        answer = {"jsonrpc": "2.0", "id": call["id"]}
        try:
            return answer | {"result": self._result(call, client)}
        except Refused as refusal:
            return answer | {"error": refusal.error}

    def _result(self, call: dict[str, Any], client: ServerConnection) -> Any:
        method, params = call["method"], call.get("params", [])
        if method in self._node.methods:
            return self._node.methods[method](*params)
        if method == "eth_subscribe" and params[0] == "newHeads":
            names = self._subscribers[client]
            names.append(hex(len(names) + 1))
            return names[-1]
        raise Refused(NOT_OFFERED, f"the method {method} does not exist")


async def _main(genesis_path: Path, port: int) -> None:
    chain = ChainBuilder(json.loads(genesis_path.read_text()))
    server = _Server(ChainNode(chain.config.chain_id, chain.genesis))
    reader = asyncio.StreamReader(limit=2**30)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    options: dict[str, Any] = {"max_size": None, "compression": None}
    async with serve(server.serve_socket, "127.0.0.1", port, **options):
        print("ready", flush=True)
        while line := await reader.readline():
            print(await server.show(json.loads(line)), flush=True)


# From outside


class Upstream:
    """Controls an upstream's process from its parent process."""

    def __init__(self, genesis_path: Path, port: int) -> None:
        """Start the process, and wait until it listens."""
        self.url = f"ws://127.0.0.1:{port}"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.upstream", str(genesis_path), str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=env.BASE_DIR,
        )
        self._read_line()

    def show(self, blocks: Sequence[bytes]) -> float:
        """Make blocks canonical, each as RLP, in place of those from their numbers on.

        Return when the subscribers were notified of the last one, in seconds of
        `time.monotonic`.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([block.hex() for block in blocks]) + "\n")
        self._process.stdin.flush()
        return float(self._read_line())

    def kill(self) -> None:
        """End the process with SIGKILL."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()

    def _read_line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the simulated upstream ended early")
        return line


@contextmanager
def upstream(genesis_path: Path) -> Iterator[Upstream]:
    """Run a simulated upstream on a free port during a `with` block."""
    running = Upstream(genesis_path, free_port())
    try:
        yield running
    finally:
        running.kill()


def free_port() -> int:
    """Return a TCP port of loopback that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), int(sys.argv[2])))
