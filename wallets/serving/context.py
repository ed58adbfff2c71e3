"""Argument and result types of method handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from server.request_id import RequestId
from wallets.changes import Cause
from wallets.models import Actor
from wallets.serving.store import SessionState
from wallets.serving.wallet import Wallet


class Peer(Protocol):
    """The socket that makes the call, of one user and one dapp until it closes."""

    @property
    def dapp_id(self) -> int:
        """The row of `wallets.models.Dapp`."""

    @property
    def socket(self) -> str:
        """The socket's name: unique among all processes, at most 36 characters."""

    @property
    def remote_address(self) -> str | None:
        """The client's IP address, or None if it is unknown."""

    def subscribe(
        self, scope: str, kind: str, arguments: Sequence[Any]
    ) -> str | Awaitable[str]:
        """Open a subscription of a scope and return its id.

        kind: `newHeads` or `logs`.
        arguments: the params of eth_subscribe after the kind.
        Raises: InvalidParams, LimitExceeded.
        """

    def unsubscribe(self, scope: str, subscription: str) -> bool:
        """End a subscription. Return False if this socket does not have it."""


@dataclass(frozen=True, slots=True)
class Context:
    """A call of a dapp.

    cancelled: set when the dapp no longer waits for the user's decision.
    size: bytes of the frame that contained the call.
    """

    request_id: RequestId
    peer: Peer
    wallet: Wallet
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    size: int = 0

    async def user(self) -> int | None:
        """Return the id of the dapp's user, None if the dapp was deleted.

        Raises: Unavailable.
        """
        dapp = await self.wallet.store.dapp(self.peer.dapp_id)
        return None if dapp is None else dapp.user_id

    @property
    def cause(self) -> Cause:
        """The dapp, as the cause of a change."""
        peer = self.peer
        return Cause(Actor.DAPP, peer.remote_address, peer.socket)


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a call.

    result: JSON.
    session: the session that the result reports, if it does. The socket adopts it in
        the step that sends the response: subscriptions that it does not allow end
        before, and no older session is sent after it.
    """

    result: bytes
    session: SessionState | None = None
