from __future__ import annotations

import asyncio

import pytest

from config.gateway import Gateway
from jsonrpc.later import Later
from server.request import Response
from tests.support.coroutines import scenario


def answer(request):
    return Later(Response(200, (), b"node"))


class Named:
    """An ASGI application that answers with its name."""

    def __init__(self, name):
        self.name = name
        self.is_open = False

    async def __call__(self, scope, receive, send):
        await send(self.name)

    async def start(self):
        self.is_open = True

    async def stop(self):
        self.is_open = False


async def receive():
    return {}


def route(scope):
    scope = {"method": "POST", "headers": [], "http_version": "1.1", **scope}
    sent = []

    async def send(message):
        sent.append(message)

    gateway = Gateway(answer, Named("pages"))
    asyncio.run(gateway(scope, receive, send))
    return sent


@pytest.mark.parametrize(
    "path", ["/v3", "/v3/", "/v3/nk_key", "/v3/a/b", "/hive/v3", "/hive/v3/nk_key"]
)
def test_node_paths_reach_the_endpoint(path):
    start, body = route({"type": "http", "path": path})
    assert (start["status"], body["body"]) == (200, b"node")


@pytest.mark.parametrize(
    "path",
    ["/", "", "/v", "/v3x", "/v33/nk_key", "/V3", "/admin/", "/a/b/v3/key", "/a/v3x"],
)
def test_every_other_path_reaches_the_pages(path):
    assert route({"type": "http", "path": path}) == ["pages"]


def test_a_websocket_is_refused_before_it_opens():
    sent = route({"type": "websocket", "path": "/v3/nk_key"})
    assert sent == [{"type": "websocket.close", "code": 1008}]


@scenario
async def test_parts_live_as_long_as_the_server():
    endpoint = Named("part")
    gateway = Gateway(answer, Named("pages"), parts=[endpoint])
    to_app, from_app = asyncio.Queue(), asyncio.Queue()
    life = asyncio.create_task(gateway({"type": "lifespan"}, to_app.get, from_app.put))
    await to_app.put({"type": "lifespan.startup"})
    assert await from_app.get() == {"type": "lifespan.startup.complete"}
    assert endpoint.is_open
    await to_app.put({"type": "lifespan.shutdown"})
    assert await from_app.get() == {"type": "lifespan.shutdown.complete"}
    assert not endpoint.is_open
    await life
