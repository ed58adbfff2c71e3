"""The wallet's parts in the process of a test, without sockets and pages.

Calls are answered on a separate event loop, as for a socket. The user decides through
the services that the wallet's pages call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import orjson

from jsonrpc.errors import RpcError
from keys.models import User
from networks.models import Network
from nodeapi.endpoint.endpoint import build_endpoint
from nodeapi.node import build_node
from server.request_id import RequestId
from tests.support.rows import add_block, make_network, set_head
from tests.support.waiting import in_time, until
from wallets import internal_key
from wallets.changes import Cause
from wallets.consents import get_consent
from wallets.errors import WalletError
from wallets.methods.outer import answer
from wallets.models import Account, Actor, ConsentRequest, Dapp, DappKind
from wallets.proposals import Choice
from wallets.services import consent, requests
from wallets.services.pairing import pair_dapp
from wallets.serving.context import Answer, Context
from wallets.serving.wallet import Wallet, build_wallet
from wallets.serving.watch import Callback

A1 = "0x5cfe73b6021e818b776b421b1c4db2474086a7e1"
A2 = "0x" + "a2" * 20
M0: dict[str, Any] = {"methods": [], "notifications": []}
BY_USER = Cause(Actor.USER, "192.0.2.1")
UNAUTHORIZED = (
    4100,
    "The requested account and/or method has not been authorized by the user.",
)


class Socket:
    """A socket as methods use it. Its subscriptions receive no events."""

    def __init__(self, dapp: Dapp, name: str) -> None:
        self.dapp_id = dapp.pk
        self.socket = name
        self.remote_address = "192.0.2.9"
        self.subscriptions: dict[str, tuple[str, str, list[Any]]] = {}

    def subscribe(self, scope: str, kind: str, arguments: Sequence[Any]) -> str:
        subscription = f"0x{len(self.subscriptions):032x}"
        self.subscriptions[subscription] = (scope, kind, list(arguments))
        return subscription

    def unsubscribe(self, scope: str, subscription: str) -> bool:
        if self.subscriptions.get(subscription, ("",))[0] != scope:
            return False
        del self.subscriptions[subscription]
        return True


class Rig:
    """A user with two accounts, their dapp P with two sockets, and three chains."""

    def __init__(self, runner: asyncio.Runner, wallet: Wallet) -> None:
        self.runner = runner
        self.wallet = wallet
        self.run(self._listening())
        self.user = new_user()
        self.account1, self.account2 = two_accounts(self.user)
        self.dapp = self.pair("https://p.example")
        self.s1 = Socket(self.dapp, "s1")
        self.s2 = Socket(self.dapp, "s2")

    def pair(self, origin: str, user: User | None = None) -> Dapp:
        """Return a dapp that a user has paired."""
        return pair_dapp(
            user=user or self.user, kind=DappKind.WEB, ident=origin, cause=BY_USER
        )

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the event loop."""
        return self.runner.run(work)

    async def _listening(self) -> None:
        """Wait until all changes are reported, also after an earlier test's outage."""
        await until(lambda: self.wallet.node.directory.is_fresh)

    def settle(self) -> None:
        """Wait until all changes that were committed so far have been reported."""
        self.run(self.wallet.node.subscriber.catch_up())

    def answer(self, socket: Socket, method: str, params: Any = None) -> Answer:
        """Return the answer to a call, or raise its error."""
        context = Context(RequestId(), socket, self.wallet)
        found: Answer = self.run(answer(context, method, params))
        return found

    def result(self, socket: Socket, method: str, params: Any = None) -> Any:
        """Make a call that must succeed."""
        return orjson.loads(self.answer(socket, method, params).result)

    def error(self, socket: Socket, method: str, params: Any = None) -> Any:
        """Make a call that must fail; return the error."""
        try:
            found = self.answer(socket, method, params)
        except (WalletError, RpcError) as error:
            return error
        raise AssertionError(f"no error but {found.result!r}")

    def code(self, socket: Socket, method: str, params: Any = None) -> int:
        """Make a call that must fail, and return the error's code."""
        return int(self.error(socket, method, params).code)

    def start(
        self, socket: Socket, params: Any, method: str = "wallet_createSession"
    ) -> asyncio.Task[Answer]:
        """Begin a call. Return when its request is pending, or when the call has ended."""

        async def begin() -> asyncio.Task[Answer]:
            context = Context(RequestId(), socket, self.wallet)
            call = answer(context, method, params)
            task = asyncio.create_task(call)
            waiting: list[int] = []
            watch = self.wallet.watch
            subscribe = watch.subscribe_dapp

            def subscribe_dapp(dapp: Dapp, callback: Callback) -> Callable[[], None]:
                waiting.append(dapp.pk)
                return subscribe(dapp, callback)

            with patch.object(watch, "subscribe_dapp", subscribe_dapp):
                await until(lambda: task.done() or waiting)
            return task

        task: asyncio.Task[Answer] = self.run(begin())
        return task

    def finish(self, task: asyncio.Task[Answer]) -> Any:
        """Return the result of a call that was begun, or its error."""

        try:
            found: Answer = self.run(in_time(task))
        except (WalletError, RpcError) as error:
            return error
        return orjson.loads(found.result)

    def pending(self) -> ConsentRequest:
        """Return the only pending request."""
        waiting = ConsentRequest.objects.pending().select_related("dapp")
        return waiting.get(dapp__user=self.user)

    def approve(
        self,
        scopes: set[str] | None = None,
        accounts: set[str] | None = None,
        **choice: Any,
    ) -> None:
        """Approve as the user: the ticked scopes and accounts, or the given ones."""
        request = self.pending()
        asked = get_consent(request)
        own = {named for named in asked.own if named.address in (accounts or ())}
        consent.approve_session(
            request_id=request.pk,
            user=request.dapp.user,
            digest=asked.digest,
            choice=Choice(
                scopes=frozenset(asked.asked if scopes is None else scopes),
                addresses=frozenset(asked.ticked if accounts is None else own),
                **choice,
            ),
            cause=BY_USER,
        )

    def reject(self) -> None:
        """Reject the request as the user."""
        request = self.pending()
        requests.reject_request(
            request_id=request.pk, user=request.dapp.user, cause=BY_USER
        )

    def create(
        self, *names: str, socket: Socket | None = None, **choice: Any
    ) -> dict[str, Any]:
        """Create a session with empty scope objects, and return the result."""
        wanted = {"optionalScopes": dict.fromkeys(names or ("eip155:1",), M0)}
        task = self.start(socket or self.s1, wanted)
        self.approve(**choice)
        created: dict[str, Any] = self.finish(task)
        assert isinstance(created, dict), created
        return created

    def session(self, socket: Socket | None = None) -> Any:
        """Return the result of wallet_getSession."""
        return self.result(socket or self.s1, "wallet_getSession", {})

    def invoke(self, scope: str, method: str, *params: Any) -> dict[str, Any]:
        """Return the parameters of a wallet_invokeMethod."""
        return {"scope": scope, "request": {"method": method, "params": list(params)}}


def new_user() -> User:
    """Return a new user with a unique email address."""
    return User.objects.create_user(f"{uuid4()}@example.org", "a password")


def two_accounts(user: User, label: str = "") -> list[Account]:
    """Store the accounts A1, with a label, and A2 of a new user.

    `add_account` takes many queries for each of them, and writes a log.
    """
    return Account.objects.bulk_create(
        Account(user=user, address=address, label=text, position=position)
        for position, (address, text) in enumerate([(A1, label), (A2, "")])
    )


def served_chains() -> list[Network]:
    """Serve the chains 1, 137 and 1337, each with a block 5."""
    networks = []
    for slug, chain_id in (("main", 1), ("polygon", 137), ("dev", 1337)):
        network = make_network(slug, chain_id=chain_id)
        add_block(network, f"{slug}-5", 5)
        set_head(network, f"{slug}-5", 5)
        networks.append(network)
    return networks


def accounts_of(user: User) -> list[Account]:
    """Return a user's accounts, the primary one first."""
    return list(Account.objects.filter(user=user))


@contextmanager
def running_wallet() -> Iterator[tuple[asyncio.Runner, Wallet]]:
    """Start the node's and the wallet's parts, which only see committed data."""
    served_chains()
    internal_key.ensure()
    with asyncio.Runner() as runner:
        service = build_node()
        wallet = build_wallet(service, build_endpoint(service).calls)

        async def start() -> None:
            await service.start()
            await wallet.start()

        async def stop() -> None:
            await wallet.stop()
            await service.stop()

        runner.run(start())
        try:
            yield runner, wallet
        finally:
            runner.run(stop())
