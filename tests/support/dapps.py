"""Dapps that talk to a running service, and the user who decides what they may do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection
from websockets.asyncio.client import connect as open_socket

from tests.support.wallet import A1, A2, BY_USER, M0, new_user
from wallets.client import WalletClient, connect
from wallets.consents import get_consent
from wallets.models import ConsentRequest, Dapp, Session
from wallets.proposals import Choice
from wallets.services import consent, requests, sessions
from wallets.services.accounts import add_account
from wallets.services.pairing import redeem_program_code, start_program_pairing

SILENCE = 0.5
"""Seconds after which nothing more is expected."""


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """Run a test's scenario on an event loop of its own, for a minute at most."""

    async def bounded() -> None:
        async with asyncio.timeout(60):
            await scenario

    asyncio.run(bounded())


async def orm(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call something that uses the ORM, in a thread that keeps its connection."""

    def call() -> Any:
        try:
            return function(*args, **kwargs)
        finally:
            connection.close()

    return await sync_to_async(call)()


class Owner:
    """A wallet user with two accounts and one program that he has paired."""

    def __init__(self, base_url: str) -> None:
        self.url = base_url.replace("http", "ws", 1) + "/ws/dapp"
        self.user = new_user()
        for address in (A1, A2):
            add_account(user=self.user, address=address, cause=BY_USER)
        self.token = self.new_token()
        self.dapp = Dapp.objects.get(user=self.user)

    def new_token(self, label: str = "bot") -> str:
        """Pair another program; return its token."""
        code = start_program_pairing(user=self.user, label=label)
        return redeem_program_code(code=code, cause=BY_USER).secret

    async def connect(self, **options: Any) -> WalletClient:
        """Open a socket of the program."""
        return await connect(self.url, options.pop("token", self.token), **options)

    @asynccontextmanager
    async def raw(self) -> Any:
        """Open a socket whose frames the test writes itself."""
        headers = {"Authorization": f"Bearer {self.token}"}
        async with open_socket(self.url, additional_headers=headers) as socket:
            yield socket

    def pending(self) -> ConsentRequest:
        """Return the request that waits for the user."""
        waiting = ConsentRequest.objects.pending().select_related("dapp")
        return waiting.get(dapp__user=self.user)

    def approve(self) -> None:
        """Say yes to all that is ticked."""
        request = self.pending()
        asked = get_consent(request)
        consent.approve_session(
            request_id=request.pk,
            user=self.user,
            digest=asked.digest,
            choice=Choice(frozenset(asked.asked), addresses=frozenset(asked.ticked)),
            cause=BY_USER,
        )

    def reject(self) -> None:
        """Say no."""
        requests.reject_request(
            request_id=self.pending().pk, user=self.user, cause=BY_USER
        )

    def edit(self, *names: str, addresses: Any = None) -> None:
        """Leave only some scopes of the session, and some accounts, ticked."""
        session = Session.objects.get(dapp=self.dapp)
        asked = {A1} if addresses is None else set(addresses)
        own = {a.named for a in self.user.wallet_accounts.all() if a.address in asked}
        sessions.edit_session(
            dapp=self.dapp,
            choice=Choice(frozenset(names), addresses=frozenset(own)),
            version=session.version,
            cause=BY_USER,
        )

    def revoke(self) -> None:
        """End the session from the wallet."""
        sessions.revoke_session(dapp_id=self.dapp.pk, cause=BY_USER)

    async def until_pending(self) -> None:
        """Wait until a request has come."""
        waiting = ConsentRequest.objects.pending().filter(dapp__user=self.user)
        async with asyncio.timeout(10):
            while not await orm(waiting.exists):
                await asyncio.sleep(0.02)

    async def create(self, client: WalletClient, *names: str) -> Any:
        """Create a session with scopes, approved with what is ticked."""
        wanted = {"optionalScopes": dict.fromkeys(names or ("eip155:1",), M0)}
        call = asyncio.create_task(client.call("wallet_createSession", wanted))
        await self.until_pending()
        await orm(self.approve)
        return await call


async def exchange(socket: Any, message: Any) -> Any:
    """Send a frame, JSON unless it is text or bytes; return the next one."""
    raw = isinstance(message, str | bytes)
    await socket.send(message if raw else json.dumps(message))
    return json.loads(await socket.recv())


async def nothing_comes(client: WalletClient, seconds: float = SILENCE) -> None:
    """Check that a client is told nothing for a while."""
    try:
        async with asyncio.timeout(seconds):
            event = await client.next_event()
    except TimeoutError:
        return
    raise AssertionError(f"unexpected: {event}")
