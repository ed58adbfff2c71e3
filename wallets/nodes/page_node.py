"""Calls of this service's methods by pages, which run in threads.

`with_node` puts a `PageNode` into the scope of the pages' ASGI application. Without it, as
in tests of single views, nothing is known about the chain.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, TypeVar

from django.http import HttpRequest

from jsonrpc.errors import RpcError
from nodeapi.upstreams.errors import UpstreamUnavailable
from postgres.errors import Unavailable
from server.request_id import RequestId
from wallets.errors import WalletError
from wallets.nodes.own_node import OwnNode
from wallets.serving.wallet import Wallet
from wallets.signing.turns import TooBusy, Turns
from wallets.upstream import ChainNode, UpstreamRefused

logger = logging.getLogger(__name__)

SCOPE_KEY = "portcullis.wallet_node"

T = TypeVar("T")

MAX_ASKING = 2
"""Questions of pages that one process answers at a time. A page that waits for an answer
takes one of the few places of all pages (`config.pages.AT_ONCE`)."""

MAX_WAITING = 2
"""Pages that wait until their question can be asked."""

TURN_SECONDS = 5.0
"""Longest wait until a question can be asked."""


class PageNode:
    """Calls this service's methods for code that runs in threads. Nothing is charged.

    user: the user of the page. Users take turns, each with one question at a time.
    """

    def __init__(
        self,
        wallet: Wallet,
        loop: asyncio.AbstractEventLoop,
        turns: Turns | None = None,
        user: int | None = None,
    ) -> None:
        self._wallet = wallet
        self._loop = loop
        self._turns = turns or Turns(MAX_ASKING, MAX_WAITING, max_of_one=1)
        self._user = user

    def of(self, user: int | None) -> PageNode:
        """Return this node for the pages of a user."""
        return PageNode(self._wallet, self._loop, self._turns, user)

    def ask(
        self,
        scopes: Iterable[str],
        question: Callable[[Mapping[str, ChainNode]], Awaitable[T]],
        seconds: float,
    ) -> T | None:
        """Return the answer to a question about chains.

        Returns None if it fails or is late, or if too many pages ask at the same time.
        question: gets the nodes of the scopes that are served.
        """
        try:
            with self._turns.turn(self._user, TURN_SECONDS):
                asked = self._ask(list(scopes), question, seconds)
                future = asyncio.run_coroutine_threadsafe(asked, self._loop)
                try:
                    return future.result(seconds + 1)
                except (FutureTimeoutError, CancelledError):
                    future.cancel()
                    return None
        except TooBusy:
            logger.info(
                "a wallet page is shown without chain data: too many pages read it"
            )
            return None

    async def _ask(
        self,
        scopes: list[str],
        question: Callable[[Mapping[str, ChainNode]], Awaitable[T]],
        seconds: float,
    ) -> T | None:
        try:
            async with asyncio.timeout(seconds):
                return await question(await self.nodes(scopes))
        except (
            *(TimeoutError, RpcError, Unavailable, WalletError),
            *(UpstreamRefused, UpstreamUnavailable),
        ) as error:
            logger.info("a wallet page is shown without chain data: %r", error)
            return None

    async def nodes(self, scopes: list[str]) -> dict[str, ChainNode]:
        """Return the nodes of the scopes that are served.

        Raises: RpcError, Unavailable; InternalError when staff have revoked the wallet's
            API key.
        """
        wallet, nodes = self._wallet, dict[str, ChainNode]()
        grant = await wallet.grant()
        for scope in scopes:
            network = wallet.network(scope)
            if network is not None and grant.allows_network(network.id):
                nodes[scope] = OwnNode(
                    wallet.node, network, grant, RequestId(), self._user
                )
        return nodes


def with_node(
    pages: Callable[..., Awaitable[None]], wallet: Wallet
) -> Callable[..., Awaitable[None]]:
    """Return an ASGI application whose pages can call this service's methods."""
    node: PageNode | None = None

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        nonlocal node
        if node is None:  # the event loop is known now
            node = PageNode(wallet, asyncio.get_running_loop())
        await pages({**scope, SCOPE_KEY: node}, receive, send)

    return answer


def node_of(request: HttpRequest) -> PageNode | None:
    """Return the node for the page of a user, None if it has none."""
    scope: dict[str, Any] = getattr(request, "scope", {})
    node: PageNode | None = scope.get(SCOPE_KEY)
    return None if node is None else node.of(request.user.pk)
