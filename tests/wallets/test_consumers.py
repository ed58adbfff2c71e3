"""The consumers, with Channels' own test client and the parts of a process.

`tests.wallets.test_sockets_behind_middleware` has more tests of them over ASGI.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import OriginValidator
from channels.testing import WebsocketCommunicator
from django.test import Client
from redis import Redis

from config.gateway import Gateway
from nodeapi.endpoint.endpoint import build_endpoint
from nodeapi.node import build_node
from samples.builder import ChainBuilder
from tests.support.coroutines import scenario
from tests.support.dapps import Owner, orm, page_token
from tests.support.waiting import PATIENCE_SECONDS, until
from tests.support.wallet import BY_USER, M0
from tests.wallets import test_socket_events as events
from wallets import internal_key
from wallets.models import LiveSocket
from wallets.routing import websocket_urlpatterns
from wallets.services.dapps import disconnect_dapp
from wallets.serving.threads import MAX_THREADS, in_thread
from wallets.serving.wallet import build_wallet
from wallets.sockets.hub import Hub
from wallets.sockets.inbox import Inboxes

EMPTY = {"sessionScopes": {}, "sessionProperties": {}}
PAGE = "https://dapp.example"

builder = events.builder


@pytest.fixture
def owner(builder: ChainBuilder) -> Iterator[Owner]:
    internal_key.ensure()
    yield Owner("http://testserver")


@asynccontextmanager
async def application() -> AsyncIterator[Gateway]:
    """Start the parts of a serving process, as its server does."""
    node = build_node()
    endpoint = build_endpoint(node)
    wallet = build_wallet(node, endpoint.calls)
    hub, inboxes = Hub(wallet), Inboxes(wallet.watch)
    gateway = Gateway(
        endpoint,
        ProtocolTypeRouter({}),
        sockets=URLRouter(websocket_urlpatterns(hub, inboxes)),
        parts=[endpoint, wallet, hub, inboxes],
    )
    to_application: asyncio.Queue[Any] = asyncio.Queue()
    from_application: asyncio.Queue[Any] = asyncio.Queue()
    life = asyncio.create_task(
        gateway({"type": "lifespan"}, to_application.get, from_application.put)
    )
    to_application.put_nowait({"type": "lifespan.startup"})
    assert (await from_application.get())["type"] == "lifespan.startup.complete"
    await until(lambda: node.directory.is_fresh)
    try:
        yield gateway
    finally:
        to_application.put_nowait({"type": "lifespan.shutdown"})
        await life
        await close_connections()


async def close_connections() -> None:
    """Close the threads' database connections, which Channels' test client keeps open."""
    await orm(lambda: None)
    all_threads = threading.Barrier(MAX_THREADS)
    await asyncio.gather(*(in_thread(all_threads.wait) for _ in range(MAX_THREADS)))


class Socket(WebsocketCommunicator):
    """Channels' test client, with long time limits for a busy machine."""

    async def opened(self) -> None:
        """Connect."""
        is_accepted, found = await self.connect(timeout=PATIENCE_SECONDS)
        assert is_accepted, found

    async def ask(self, method: str, params: Any = None) -> Any:
        """Make a call, and return the result or the error."""
        await self.send_json_to(
            {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        )
        answer = await self.next_frame()
        assert answer["id"] == 1
        return answer.get("result", answer.get("error"))

    async def next_frame(self) -> Any:
        """Return the next frame."""
        return await self.receive_json_from(timeout=PATIENCE_SECONDS)

    async def closed(self) -> int:
        """Wait until the consumer closes the socket, and return the close code."""
        message = await self.receive_output(timeout=PATIENCE_SECONDS)
        assert message["type"] == "websocket.close", message
        await self.wait(timeout=PATIENCE_SECONDS)
        return int(message["code"])


def dapp(application: Any, owner: Owner, **given: Any) -> Socket:
    """Return a socket of the owner's program."""
    bearer = (b"authorization", f"Bearer {owner.token}".encode())
    return Socket(application, "/ws/dapp", **{"headers": [bearer], **given})


def page(application: Any, client: Client, origin: str = "http://testserver") -> Socket:
    """Return the socket of a user's open page."""
    cookie = f"sessionid={client.cookies['sessionid'].value}"
    pairs = {"host": "testserver", "origin": origin, "cookie": cookie}
    headers = [(name.encode(), value.encode()) for name, value in pairs.items()]
    return Socket(application, "/ws/ui", headers=headers)


@scenario
async def test_a_dapp_asks_for_a_session_and_is_disconnected(owner: Owner) -> None:
    async with application() as served:
        first = dapp(served, owner, subprotocols=["other", "multichain.v1"])
        assert await first.connect(PATIENCE_SECONDS) == (True, "multichain.v1")
        second = dapp(served, owner)
        assert await second.connect(PATIENCE_SECONDS) == (True, None)
        assert await first.ask("wallet_getSession") == EMPTY
        wanted = {"optionalScopes": {"eip155:1": M0}}
        asking = asyncio.create_task(first.ask("wallet_createSession", wanted))
        await owner.until_pending()
        await orm(owner.approve)
        created = await asking
        assert list(created["sessionScopes"]) == ["eip155:1"]
        changed = await second.next_frame()
        assert changed["method"] == "wallet_sessionChanged"
        assert changed["params"]["sessionScopes"] == created["sessionScopes"]
        await orm(disconnect_dapp, dapp=owner.dapp, cause=BY_USER)
        assert [await first.closed(), await second.closed()] == [4401, 4401]
        rows = LiveSocket.objects.filter(dapp=owner.dapp)
        await until(lambda: orm(lambda: not rows.exists()))


@scenario
async def test_a_dapp_without_a_good_token_is_rejected(owner: Owner) -> None:
    async with application() as served:
        wrong = [(b"authorization", b"Bearer " + b"x" * 43)]
        for headers in ([], wrong):
            socket = dapp(served, owner, headers=headers)
            assert await socket.connect(PATIENCE_SECONDS) == (False, 1008)
            await socket.wait(PATIENCE_SECONDS)


@scenario
async def test_a_rejection_has_its_status_where_the_server_can_send_it(
    owner: Owner,
) -> None:
    async with application() as served:
        socket = dapp(served, owner, headers=[])
        socket.scope["extensions"] = {"websocket.http.response": {}}
        await socket.send_input({"type": "websocket.connect"})
        start = await socket.receive_output(PATIENCE_SECONDS)
        assert (start["type"], start["status"]) == (
            "websocket.http.response.start",
            401,
        )
        assert (b"www-authenticate", b"Bearer") in start["headers"]
        body = await socket.receive_output(PATIENCE_SECONDS)
        assert body["body"] == b"a connection token is required"
        await socket.wait(PATIENCE_SECONDS)


@scenario
async def test_middleware_of_channels_works_around_the_router(owner: Owner) -> None:
    client = Client()
    await orm(client.force_login, owner.user)
    users = []

    async with application() as served:

        async def note_user(scope: Any, receive: Any, send: Any) -> None:
            users.append(scope["user"].pk)
            await served(scope, receive, send)

        origins = [PAGE, "http://testserver"]
        wrapped = OriginValidator(AuthMiddlewareStack(note_user), origins)
        inbox = page(wrapped, client)
        await inbox.opened()
        assert await inbox.receive_from(PATIENCE_SECONDS) == "look"
        token = await orm(page_token, owner.user, PAGE)
        socket = Socket(
            wrapped,
            "/ws/dapp",
            headers=[(b"origin", PAGE.encode())],
            subprotocols=["multichain.v1", f"token.{token}"],
        )
        await socket.opened()
        assert await socket.ask("wallet_getSession") == EMPTY
        await socket.disconnect(timeout=PATIENCE_SECONDS)
        await inbox.disconnect(timeout=PATIENCE_SECONDS)
    assert users == [owner.user.pk, None]


@scenario
async def test_sockets_open_no_channels_of_the_layer(
    owner: Owner, redis_url: str
) -> None:
    def channels() -> list[bytes]:
        """Return the channels besides the groups of the process's streams."""
        with Redis.from_url(redis_url) as redis:
            names = redis.pubsub_channels()
        return sorted(name for name in names if b"__group__outbox." not in name)

    async with application() as served:
        sockets = [dapp(served, owner) for _ in range(5)]
        await sockets[0].opened()
        before = await asyncio.to_thread(channels)
        for socket in sockets[1:]:
            await socket.opened()
        assert await asyncio.to_thread(channels) == before
        for socket in sockets:
            await socket.disconnect(timeout=PATIENCE_SECONDS)
