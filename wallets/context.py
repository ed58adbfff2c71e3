"""What the methods know of a call: the socket, and the parts of the process behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from nodeapi.http import RequestId
from wallets.changes import Cause
from wallets.models import Actor
from wallets.store import SessionState

if TYPE_CHECKING:  # what the wallet offers depends on the methods, and those on this
    from wallets.service import Wallet


class Peer(Protocol):
    """The socket that calls. It is one user's and one dapp's as long as it lives."""

    @property
    def dapp_id(self) -> int:
        """The row of `wallets.models.Dapp`."""

    @property
    def socket(self) -> str:
        """Names the socket, among those of all processes: at most 36 characters."""

    @property
    def remote_address(self) -> str | None:
        """The client's IP address."""

    def subscribe(
        self, scope: str, kind: str, arguments: Sequence[Any]
    ) -> str | Awaitable[str]:
        """Open a subscription (`newHeads`, `logs`) of a scope and return its id.

        arguments: what follows the kind in eth_subscribe's params.
        Raises: InvalidParams, LimitExceeded.
        """

    def unsubscribe(self, scope: str, subscription: str) -> bool:
        """End a subscription of this socket and scope; false when there is none."""


@dataclass(frozen=True, slots=True)
class Context:
    """A call of a dapp."""

    request_id: RequestId
    peer: Peer
    wallet: Wallet

    @property
    def cause(self) -> Cause:
        """The dapp, as the cause of a change."""
        peer = self.peer
        return Cause(Actor.DAPP, peer.remote_address, peer.socket)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call is answered with.

    result: JSON.
    session: the session that the answer tells of, where it does. Whoever writes the
        answer takes that over in the same step: what it no longer holds ends before, no
        older state is told after, and a newer one that was told already is told again.
    """

    result: bytes
    session: SessionState | None = None
