"""Dapps of a running service, and the user who decides about their requests."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from websockets.asyncio.client import connect as open_socket

from keys.models import User
from tests.support.waiting import PATIENCE_SECONDS, in_time, until
from tests.support.wallet import A1, BY_USER, M0, new_user, two_accounts
from wallets.client import CallFailed, WalletClient, connect
from wallets.consents import get_consent
from wallets.models import ConsentRequest, Dapp, LiveSocket, Session
from wallets.permissions import Group
from wallets.proposals import Choice
from wallets.services import consent, requests, sessions
from wallets.services.pairing import (
    redeem_page_code,
    redeem_program_code,
    start_page_pairing,
    start_program_pairing,
)

# The library's limits of 10 and 20 s are too short for tests with a busy machine.
open_socket.__init__.__kwdefaults__.update(
    open_timeout=PATIENCE_SECONDS, ping_timeout=PATIENCE_SECONDS
)

SILENCE = 0.5
"""Seconds after which nothing more is expected."""


def case(number: int, *values: Any) -> Any:
    """Return parameters of a test that are one of the wallet's numbered cases."""
    return pytest.param(*values, marks=pytest.mark.case(number), id=f"case{number}")


async def orm(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function that uses the ORM in a thread, which keeps its connection."""

    def call() -> Any:
        try:
            return function(*args, **kwargs)
        finally:
            connection.close()

    return await sync_to_async(call)()


class Owner:
    """A wallet user with two accounts and one paired program."""

    def __init__(self, base_url: str) -> None:
        self.url = base_url.replace("http", "ws", 1) + "/ws/dapp"
        self.user = new_user()
        two_accounts(self.user)
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

    def pending(self, dapp: Dapp | None = None) -> ConsentRequest:
        """Return the pending request, of one dapp or of any."""
        waiting = ConsentRequest.objects.pending().select_related("dapp")
        own = waiting.filter(dapp__user=self.user)
        return own.get() if dapp is None else own.get(dapp=dapp)

    def approve(
        self,
        *names: str,
        addresses: Any = None,
        groups: Any = Group,
        dapp: Dapp | None = None,
    ) -> None:
        """Approve the request, with the preselected or the given choices."""
        request = self.pending(dapp)
        asked = get_consent(request)
        chosen = {named for named in asked.own if named.address in (addresses or ())}
        consent.approve_session(
            request_id=request.pk,
            user=self.user,
            digest=asked.digest,
            choice=Choice(
                frozenset(names or asked.asked),
                groups=frozenset(groups),
                addresses=frozenset(asked.ticked if addresses is None else chosen),
            ),
            cause=BY_USER,
        )

    def reject(self) -> None:
        """Reject the request."""
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
        """Wait until a request is pending."""
        waiting = ConsentRequest.objects.pending().filter(dapp__user=self.user)
        await until(lambda: orm(waiting.exists))

    async def asking(self, client: WalletClient, params: Any) -> asyncio.Task[Any]:
        """Return a wallet_createSession that waits for the user."""
        call = asyncio.create_task(client.call("wallet_createSession", params))
        await self.until_pending()
        return call

    async def granted(
        self, client: WalletClient, params: Any, *names: str, **choice: Any
    ) -> Any:
        """Return the result of an approved wallet_createSession."""
        call = await self.asking(client, params)
        await orm(self.approve, *names, **choice)
        return await call

    async def create(self, client: WalletClient, *names: str) -> Any:
        """Create a session with scopes, approved with the preselected choices."""
        wanted = {"optionalScopes": dict.fromkeys(names or ("eip155:1",), M0)}
        call = asyncio.create_task(client.call("wallet_createSession", wanted))
        await self.until_pending()
        await orm(self.approve)
        return await call


def page_token(user: User, origin: str) -> str:
    """Pair a page of an origin; return its token."""
    verifier = "v" * 43
    hashed = hashlib.sha256(verifier.encode()).digest()
    challenge = base64.urlsafe_b64encode(hashed).rstrip(b"=").decode()
    code = start_page_pairing(user=user, origin=origin, challenge=challenge)
    return redeem_page_code(
        code=code, verifier=verifier, origin=origin, cause=BY_USER
    ).secret


@asynccontextmanager
async def sockets_apart(
    owner: Owner, tokens: Sequence[str] = ()
) -> AsyncIterator[list[WalletClient]]:
    """Open two sockets that two processes serve.

    tokens: of two programs of the owner; without them both are sockets of the first.
    """
    kept: list[tuple[WalletClient, int]] = []
    known = set(await orm(list, _socket_names(owner)))
    try:
        for token in tokens or [owner.token] * 2:
            for _ in range(60):
                client = await owner.connect(token=token)
                rows = LiveSocket.objects.filter(dapp__user=owner.user)
                new = rows.exclude(name__in=known).values_list("name", "process")
                ((name, process),) = await orm(list, new)
                known.add(name)
                if process not in {other for _, other in kept}:
                    kept.append((client, process))
                    break
                await client.close()
        assert len(kept) == 2
        yield [client for client, _ in kept]
    finally:
        await asyncio.gather(*(client.close() for client, _ in kept))


def _socket_names(owner: Owner) -> Any:
    rows = LiveSocket.objects.filter(dapp__user=owner.user)
    return rows.values_list("name", flat=True)


async def failure(call: Coroutine[Any, Any, Any] | asyncio.Task[Any]) -> CallFailed:
    """Return the error of a call that must fail."""
    try:
        result = await call
    except CallFailed as error:
        return error
    raise AssertionError(f"no error but {result!r}")


async def exchange(socket: Any, message: Any) -> Any:
    """Send a frame, JSON unless it is text or bytes; return the next one."""
    raw = isinstance(message, str | bytes)
    await socket.send(message if raw else json.dumps(message))
    return json.loads(await socket.recv())


async def next_event(client: WalletClient) -> Any:
    """Return the next event of a client, with a timeout for a busy machine."""
    return await in_time(client.next_event())


async def nothing_comes(client: WalletClient, seconds: float = SILENCE) -> None:
    """Check that a client receives no event for a while."""
    try:
        async with asyncio.timeout(seconds):
            event = await client.next_event()
    except TimeoutError:
        return
    raise AssertionError(f"unexpected: {event}")
