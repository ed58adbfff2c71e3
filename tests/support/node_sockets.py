"""Clients of the node's WebSockets."""

from __future__ import annotations

import json
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.support.live import Live, request
from tests.support.waiting import in_time


class NodeSocket:
    """A client's socket, which separates notifications from responses."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.waiting: list[Any] = []
        """Notifications that arrived before a pending response."""

    async def __aenter__(self) -> NodeSocket:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.connection.close()

    async def exchange(self, message: Any) -> Any:
        """Send JSON; return the response."""
        await self.connection.send(json.dumps(message))
        while True:
            found = json.loads(await in_time(self.connection.recv()))
            if isinstance(found, list) or "method" not in found:
                return found
            self.waiting.append(found)

    async def ask(self, method: str, *params: Any) -> Any:
        """Make a call; return its result, or its error object."""
        answer = await self.exchange(request(method, *params))
        assert answer["id"] == 1
        return answer.get("result", answer.get("error"))

    async def next_event(self) -> tuple[str, Any]:
        """Return the subscription's id and the result of the next notification."""
        if self.waiting:
            found = self.waiting.pop(0)
        else:
            found = json.loads(await in_time(self.connection.recv()))
        assert set(found) == {"jsonrpc", "method", "params"}
        assert (found["jsonrpc"], found["method"]) == ("2.0", "eth_subscription")
        assert set(found["params"]) == {"subscription", "result"}
        return found["params"]["subscription"], found["params"]["result"]

    async def results(self, count: int) -> list[Any]:
        """Return the results of the next notifications."""
        return [(await self.next_event())[1] for _ in range(count)]

    async def closed(self) -> tuple[int, str]:
        """Wait until the server closes the socket; return code and reason."""
        try:
            while True:
                await in_time(self.connection.recv())
        except ConnectionClosed as error:
            assert error.rcvd is not None, "the connection was lost"
            return error.rcvd.code, error.rcvd.reason


def socket_url(live: Live, path: str) -> str:
    """Return the WebSocket URL of a path."""
    return live.base_url.replace("http:", "ws:") + path


async def open_socket(
    live: Live, key: str, network: str = "", **headers: str
) -> NodeSocket:
    """Open a socket with a key in its path."""
    prefix = f"/{network}" if network else ""
    return NodeSocket(
        await connect(
            socket_url(live, f"{prefix}/ws/v3/{key}"),
            additional_headers=headers,
            max_size=None,
            compression=None,
        )
    )
