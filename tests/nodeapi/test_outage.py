from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from django.db import connections as django_connections

from config.embedded.postgres import PostgresServer
from config.variables import processes
from keys.models import User
from keys.services import issue_key
from nodeapi.endpoint.endpoint import build_endpoint
from server.asgi import AsgiNode
from tests.support.rows import add_block, hash_of, make_network, set_head
from tests.support.waiting import until

PROBE_SECONDS = 1.2
"""Seconds after which the service has failed to connect again."""

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """The server that holds the test database; it runs again when the test is over."""
    if os.environ.get("DATABASE_URL"):
        pytest.skip("the database is not ours to stop")
    server = PostgresServer(processes.var_dir())
    try:
        yield server
    finally:
        server.start()


@asynccontextmanager
async def serving(path: str) -> AsyncIterator[Load]:
    """Answer requests to a path, in this process."""
    endpoint = build_endpoint()
    await endpoint.start()
    transport = httpx.ASGITransport(app=AsgiNode(endpoint))  # type: ignore[arg-type]
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
            yield Load(http, path)
    finally:
        await endpoint.stop()


class Load:
    """Clients that request a block continuously, and record statuses with times."""

    def __init__(self, client: httpx.AsyncClient, path: str) -> None:
        self._client = client
        self._path = path
        self.answers: list[tuple[float, float, int]] = []
        """For each response: times of request and response, and its status."""
        self.stopped = False

    async def call(self, method: str, *params: Any) -> httpx.Response:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self._client.post(self._path, json=body)

    async def run(self) -> None:
        while not self.stopped:
            asked = time.monotonic()
            answer = await self.call(
                "eth_getBlockByHash", "0x" + hash_of("one").hex(), False
            )
            self.answers.append((asked, time.monotonic(), answer.status_code))
            if answer.status_code == 503:
                assert answer.json()["error"]["code"] == -32603
                assert answer.headers["retry-after"] == "1"
            await asyncio.sleep(0.005)

    def statuses(self, start: float, end: float) -> set[int]:
        """Return the statuses of requests that were sent and answered between two moments."""
        return {
            status
            for asked, answered, status in self.answers
            if start < asked and answered < end
        }

    async def until_asked_after(self, moment: float) -> None:
        """Wait until several requests were answered that were made after a moment."""
        await until(lambda: sum(asked > moment for asked, _, _ in self.answers) > 50)

    async def until_told(self, status: int) -> float:
        """Wait until a new request is answered with a status. Return the time."""
        start = time.monotonic()
        await until(lambda: status in self.statuses(start, time.monotonic()))
        return time.monotonic()


def test_database_that_is_shut_down_means_503_until_it_is_back(
    server: PostgresServer, settings: Any
) -> None:
    settings.NODEAPI_CACHE_BYTES = 0
    network = make_network()
    add_block(network, "one", 1)
    set_head(network, "one", 1)
    owner = User.objects.create(email="owner@example.org")
    key = issue_key(owner=owner).secret
    django_connections.close_all()

    async def scenario() -> None:
        async with serving(f"/v3/{key}") as load:
            clients = [asyncio.create_task(load.run()) for _ in range(8)]
            await until(lambda: len(load.answers) > 50)

            stopping = time.monotonic()
            await asyncio.to_thread(server.stop)
            gone = await load.until_told(503)
            await load.until_asked_after(gone + PROBE_SECONDS)
            starting = time.monotonic()
            await asyncio.to_thread(server.start)
            back = await load.until_told(200)
            await load.until_asked_after(back)
            head = await load.call("eth_blockNumber")

            load.stopped = True
            await asyncio.gather(*clients)
        assert head.json()["result"] == "0x1"
        assert load.statuses(0, stopping) == {200}
        assert load.statuses(gone, starting) == {503}
        assert load.statuses(back, time.monotonic()) == {200}

    asyncio.run(scenario())


def test_service_that_starts_without_a_database_serves_when_there_is_one(
    server: PostgresServer,
) -> None:
    network = make_network()
    add_block(network, "one", 1)
    set_head(network, "one", 1)
    key = issue_key(owner=User.objects.create(email="owner@example.org")).secret
    django_connections.close_all()
    server.stop()

    async def scenario() -> None:
        async with serving(f"/v3/{key}") as load:
            assert (await load.call("eth_blockNumber")).status_code == 503
            await asyncio.to_thread(server.start)

            async def is_served() -> bool:
                return (await load.call("eth_blockNumber")).status_code == 200

            await until(is_served)

    asyncio.run(scenario())
