"""A service that starts without a database."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import httpx
import pytest
from django.db import connections as django_connections

from config.embedded.postgres import PostgresServer
from config.variables import processes
from keys.models import User
from keys.services import issue_key
from nodeapi.endpoint.endpoint import build_endpoint
from server.asgi import AsgiNode
from tests.support.rows import add_block, make_network, set_head
from tests.support.waiting import until

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
async def serving() -> AsyncIterator[httpx.AsyncClient]:
    """Answer requests in this process."""
    endpoint = build_endpoint()
    await endpoint.start()
    transport = httpx.ASGITransport(app=AsgiNode(endpoint))  # type: ignore[arg-type]
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
            yield http
    finally:
        await endpoint.stop()


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
        async with serving() as client:

            async def status() -> int:
                call = {"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber"}
                return (await client.post(f"/v3/{key}", json=call)).status_code

            assert await status() == 503
            await asyncio.to_thread(server.start)

            async def is_served() -> bool:
                return await status() == 200

            await until(is_served)

    asyncio.run(scenario())
