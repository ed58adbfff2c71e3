"""What a socket has subscribed to."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from wallets.permissions import SUBSCRIPTION
from wallets.sockets.frames import around_notification
from wallets.sockets.log_filter import LogFilter
from wallets.store import SessionState

if TYPE_CHECKING:
    from wallets.sockets.feed import Feed
    from wallets.sockets.peer import Peer


def allows(session: SessionState, scope: str) -> bool:
    """Return whether a session lets a dapp be told of new blocks on a scope."""
    granted = session.scopes.get(scope)
    return (
        granted is not None
        and "eth_subscribe" in granted.methods
        and SUBSCRIPTION in granted.notifications
    )


class Subscription:
    """One eth_subscribe, from its answer to its end.

    log_filter: which logs it is for; None: it is for new heads.
    """

    def __init__(
        self, peer: Peer, scope: str, feed: Feed, log_filter: LogFilter | None
    ) -> None:
        self.id = "0x" + secrets.token_hex(16)
        self.peer = peer
        self.scope = scope
        self.feed = feed
        self.log_filter = log_filter
        self.is_open = True
        self._before, self._behind = around_notification(scope, self.id)
        self._held: list[bytes] | None = []

    def begin(self) -> None:
        """Send from now on: the answer with the id has been written."""
        held, self._held = self._held or [], None
        for result in held:
            self.send(result)

    def send(self, result: bytes) -> None:
        """Send a head or a log, as JSON; nothing once the subscription is over."""
        if not self.is_open:
            return
        if self._held is not None:
            self._held.append(result)
        else:
            self.peer.outbox.send(self._before + result + self._behind)

    def end(self) -> None:
        """Send nothing more."""
        self.is_open = False
        self.feed.leave(self)
