"""The socket of an open inbox, over a server of two processes."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import ConnectionClosed, InvalidStatus

from keys.services.customers import switch_customer
from tests.support.coroutines import run, scenario
from tests.support.dapps import SILENCE, Owner, failure, orm
from tests.support.live import Live, live_service
from tests.support.waiting import PATIENCE_SECONDS, in_time, until
from tests.support.wallet import M0
from wallets.models import ConsentRequest, RequestState
from wallets.sockets import limits


class Visitor(Owner):
    """A wallet user with a program, who has logged in with a browser."""

    def __init__(self, base_url: str) -> None:
        super().__init__(base_url)
        self.client = Client()
        self.client.force_login(self.user)
        self.session = self.client.cookies["sessionid"].value
        self.origin = base_url
        self.inbox_url = base_url.replace("http", "ws", 1) + "/ws/ui"

    def open(self, **given: Any) -> open_socket:
        """Open the socket as the user's page does, except for the given arguments."""
        session = given.pop("session", self.session)
        cookie = {"Cookie": f"sessionid={session}"} if session else {}
        options = {"origin": self.origin, "additional_headers": cookie, **given}
        return open_socket(self.inbox_url, **options)

    async def status(self, **given: Any) -> int:
        """Return the HTTP status of a WebSocket handshake; 101 if it succeeds."""
        try:
            async with self.open(**given):
                return 101
        except InvalidStatus as error:
            return error.response.status_code


@pytest.fixture
def visitor(live: Live) -> Visitor:
    return Visitor(live.base_url)


async def told(socket: ClientConnection) -> None:
    assert await in_time(socket.recv()) == "look"


async def silent(socket: ClientConnection) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(SILENCE):
            await socket.recv()


async def close_code(socket: ClientConnection) -> int | None:
    """Return the code with which the wallet closes a socket."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(ConnectionClosed):
            while True:
                await socket.recv()
    return socket.close_code


@pytest.mark.case(129)
def test_it_opens_to_the_sites_own_page_alone(visitor: Visitor) -> None:
    """Cross-site hijacking: browsers send the cookie from pages of any origin."""
    host = visitor.origin.removeprefix("http://").partition(":")[0]

    async def scenario() -> None:
        assert await visitor.status() == 101
        for origin in (
            None,
            "null",
            "https://evil.example",
            f"http://{host}",  # another port
            visitor.origin + "0",
            visitor.origin.replace("http", "https"),
            visitor.origin.replace("//", "//evil."),
            visitor.origin + ".evil.example",
        ):
            assert await visitor.status(origin=origin) == 403, origin

    run(scenario())


@scenario
async def test_it_opens_to_logged_in_users_only(visitor: Visitor) -> None:
    for session in ("", "x" * 32, "X" * 32, "x" * 5000, visitor.token):
        assert await visitor.status(session=session) == 403, session
    bearer = {"Authorization": f"Bearer {visitor.token}"}
    assert await visitor.status(additional_headers=bearer) == 403
    await orm(visitor.client.logout)
    assert await visitor.status() == 403


def test_inbox_receives_new_and_withdrawn_requests(
    visitor: Visitor, live: Live
) -> None:
    stranger = Visitor(live.base_url)

    async def scenario() -> None:
        async with visitor.open() as inbox, stranger.open() as other:
            await told(inbox)  # for changes since the page was rendered
            await told(other)
            client = await visitor.connect()
            wanted = {"optionalScopes": {"eip155:1": M0}}
            call = asyncio.create_task(client.call("wallet_createSession", wanted))
            await visitor.until_pending()
            await told(inbox)
            await silent(inbox)
            await client.close()
            await told(inbox)
            waiting = ConsentRequest.objects.pending().filter(dapp=visitor.dapp)
            assert not await orm(waiting.exists)
            await asyncio.gather(call, return_exceptions=True)
            await silent(other)

    run(scenario())


@pytest.mark.case(74)
def test_inbox_receives_expired_requests(live: Live) -> None:
    async def scenario(visitor: Visitor) -> None:
        async with visitor.open() as inbox:
            await told(inbox)
            client = await visitor.connect()
            wanted = {"optionalScopes": {"eip155:1": M0}}
            call = asyncio.create_task(client.call("wallet_createSession", wanted))
            await told(inbox)  # that the request has arrived
            await told(inbox)
            request = await orm(ConsentRequest.objects.get, dapp=visitor.dapp)
            assert request.state == RequestState.EXPIRED
            assert (await failure(call)).code == 4001
            await client.close()

    with live_service(env={"WALLETS_REQUEST_SECONDS": "2"}) as hasty:
        run(scenario(Visitor(hasty.base_url)))


@scenario
async def test_every_open_inbox_of_every_process_gets_the_event(
    visitor: Visitor,
) -> None:
    inboxes = [await visitor.open() for _ in range(10)]
    for inbox in inboxes:
        await told(inbox)
    client = await visitor.connect()
    wanted = {"optionalScopes": {"eip155:1": M0}}
    call = asyncio.create_task(client.call("wallet_createSession", wanted))
    await asyncio.gather(*map(told, inboxes))
    await visitor.until_pending()
    await orm(visitor.reject)
    await asyncio.gather(call, return_exceptions=True)
    await asyncio.gather(*map(told, inboxes))
    await asyncio.gather(client.close(), *(inbox.close() for inbox in inboxes))


def test_it_is_closed_when_its_log_in_is_over(live: Live) -> None:
    def log_out(one: Visitor) -> None:
        one.client.logout()

    def deactivate(one: Visitor) -> None:
        switch_customer(user=one.user, is_active=False)

    def change_password(one: Visitor) -> None:
        one.user.set_password("another password")
        one.user.save()

    def let_expire(one: Visitor) -> None:
        session = one.client.session
        session.set_expiry(timezone.now() - timedelta(seconds=1))
        session.save()

    visitors = [Visitor(live.base_url) for _ in range(5)]
    stays = visitors.pop()

    async def scenario() -> None:
        inboxes = [await one.open() for one in visitors]
        other = await stays.open()
        await told(other)
        for act, one in zip(
            (log_out, deactivate, change_password, let_expire), visitors, strict=True
        ):
            await orm(act, one)
        codes = await asyncio.gather(*map(close_code, inboxes))
        assert codes == [4401] * 4
        await silent(other)
        await other.close()

    run(scenario())


@scenario
async def test_socket_that_sends_is_closed(visitor: Visitor) -> None:
    for frame in ("look", b"look"):
        async with visitor.open() as inbox:
            await inbox.send(frame)
            assert await close_code(inbox) == 1008


@scenario
async def test_a_user_has_no_more_of_them_than_allowed(
    visitor: Visitor, live: Live
) -> None:
    most = limits.MAX_INBOXES * len(live.server.pids)
    tries = [visitor.open() for _ in range(most + 10)]
    found = await asyncio.gather(*tries, return_exceptions=True)
    opened = [one for one in found if isinstance(one, ClientConnection)]
    refused = [one for one in found if isinstance(one, InvalidStatus)]
    assert len(opened) <= most
    assert {one.response.status_code for one in refused} == {429}
    assert await Visitor.status(await orm(Visitor, live.base_url)) == 101
    for socket in opened:
        await socket.close()

    async def is_let_in() -> bool:
        return await visitor.status() == 101

    await until(is_let_in)
