"""The client library, if the program does not read events."""

from __future__ import annotations

import asyncio

import orjson
import pytest
from websockets.asyncio.server import ServerConnection, serve

from tests.support.waiting import in_time
from wallets import client
from wallets.client import Disconnected, WalletClient, connect

EVENT = orjson.dumps({"jsonrpc": "2.0", "method": "wallet_notify", "params": {}})


@pytest.mark.parametrize("more", [0, 1])
def test_end_is_reported_behind_all_events_however_many_wait(
    more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_EVENTS", 3)

    async def send_events(socket: ServerConnection) -> None:
        for _ in range(3 + more):
            await socket.send(EVENT.decode())
        if more:  # the client then closes the connection
            await socket.wait_closed()

    async def scenario() -> tuple[int, int]:
        async with serve(
            send_events, "127.0.0.1", 0, subprotocols=["multichain.v1"]
        ) as site:
            port = site.sockets[0].getsockname()[1]
            wallet = await connect(f"ws://127.0.0.1:{port}/", "t" * 43)
            await in_time(wallet.reader)
            return await read_all(wallet)

    events, code = asyncio.run(scenario())
    assert events == 3
    assert code == (1008 if more else 1000)


async def read_all(wallet: WalletClient) -> tuple[int, int]:
    """Return the number of events, and the close code of the connection."""
    events = 0
    try:
        async for _ in wallet.events():
            events += 1
    except Disconnected as end:
        await wallet.close()
        return events, end.code
    raise AssertionError("it has no end")
