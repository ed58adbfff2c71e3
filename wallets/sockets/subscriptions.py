"""Subscriptions of a dapp's socket to new heads or logs, and their events."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nodeapi.feeds.new_blocks import BlockEvent, send_events
from nodeapi.frames.writer import FrameWriter
from nodeapi.logs.filter import LogSelection
from nodeapi.sockets.subscription import Subscription
from postgres.connections import Connections
from postgres.statement import INT8, Statement, array, read_int8
from wallets.permissions import SUBSCRIPTION
from wallets.serving.store import SessionState
from wallets.sockets.frames import notification_frame
from wallets.sockets.room import Room

_VERSIONS = Statement(
    """
    SELECT s.dapp_id, s.version FROM wallets_session s
    JOIN wallets_dapp d ON d.id = s.dapp_id
    JOIN keys_user u ON u.id = d.user_id
    WHERE s.dapp_id = ANY($1) AND u.is_active AND d.blocked_at IS NULL
    """,
    [INT8.array_oid],
)


def allows(session: SessionState, scope: str) -> bool:
    """Return whether a session allows subscriptions on a scope."""
    granted = session.scopes.get(scope)
    return (
        granted is not None
        and "eth_subscribe" in granted.methods
        and SUBSCRIPTION in granted.notifications
    )


class DappAudience:
    """The subscriptions of dapps; implements `nodeapi.feeds.new_blocks.Audience`."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def prepare(
        self, subscribers: Sequence[DappSubscription]
    ) -> Callable[[Sequence[BlockEvent]], None]:
        """Return a function that sends events once the sessions are current.

        Session versions are read after the blocks. If a session changed before these
        blocks were committed, or its user was deactivated, its room is refreshed first,
        even if the change has not been reported yet.
        Raises: Unavailable.
        """
        by_room: dict[Room, list[DappSubscription]] = {}
        for subscription in subscribers:
            by_room.setdefault(subscription.room, []).append(subscription)
        ids = array(INT8, (room.dapp_id for room in by_room), len(by_room))
        rows = await self._connections.fetch(_VERSIONS, [ids])
        versions = {read_int8(r[0] or b""): read_int8(r[1] or b"") for r in rows}

        def send(events: Sequence[BlockEvent]) -> None:
            for room, subscriptions in by_room.items():
                if versions.get(room.dapp_id) != room.session.version:
                    room.refresh()
                room.call_when_current(_Delivery(subscriptions, events))

        return send


class DappSubscription(Subscription):
    """A subscription of a dapp.

    audience: all such subscriptions. room, writer: those of the socket.
    """

    def __init__(
        self,
        audience: DappAudience,
        room: Room,
        writer: FrameWriter,
        scope: str,
        logs: LogSelection | None,
    ) -> None:
        self.audience = audience
        self.room = room
        self.scope = scope
        super().__init__(writer, logs)

    def frame(self) -> tuple[bytes, bytes]:
        """Return the parts of a wallet_notify frame before and after its result."""
        return notification_frame(self.scope, self.id)


class _Delivery:
    """Events for the subscriptions of a room."""

    __slots__ = ("_events", "_subscriptions")

    def __init__(
        self, subscriptions: list[DappSubscription], events: Sequence[BlockEvent]
    ) -> None:
        self._subscriptions = subscriptions
        self._events = events

    def __call__(self) -> None:
        send_events(self._subscriptions, self._events)
