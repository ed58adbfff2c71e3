"""The state that the node's sockets of a process share."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial

from jsonrpc.answers import refusal
from jsonrpc.envelope import NULL
from jsonrpc.errors import RpcError, TooManyConnections
from keys.errors import KeyRequired
from keys.grants import Grant
from keys.site import Headers, site_of
from networks.directory import NetworkView
from nodeapi.endpoint.access import read_path
from nodeapi.endpoint.endpoint import Endpoint
from nodeapi.endpoint.responses import ANY_ORIGIN, RESPONSE_HEADERS, header_lines
from nodeapi.errors.access import UnknownNetwork
from nodeapi.feeds.new_blocks import BlockEvent, send_events
from nodeapi.frames.close_codes import REVOKED, SLOW_READER
from nodeapi.frames.wire import Wire
from nodeapi.frames.writer import FrameWriter
from nodeapi.node import Node
from nodeapi.sockets import limits
from nodeapi.sockets.frame_log import FrameLog, NoFrameLog
from nodeapi.sockets.handshake import Rejected
from nodeapi.sockets.peer import Caller, NodeSubscription, Peer
from outbox.streams import ACCESS
from server.account import Account
from server.memory_bounds import Scope as Owner
from server.process import Process
from server.request_id import RequestId
from server.time_limits import StallDetector

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 1.0
"""Interval at which expiries and clients that do not read are looked for."""

STALL_SECONDS = 300.0
"""Longest time for which a client may read nothing, on a server without limits."""


class Share:
    """The share of one socket in the limits of its process.

    Counts its connection, unread bytes, and the bytes of its frames in progress, as
    `server.http` does for an HTTP connection. Under another server nothing is counted.
    """

    def __init__(self, process: Process | None, client: str | None) -> None:
        self._process = process
        self._stall = StallDetector()
        self._peer: Peer | None = None
        self._account: Account | None = None
        if process is not None:
            self._account = Account(
                process.bounds, client, self._disconnect, self._unread
            )

    def open(self, key: int, client: str | None) -> bool:
        """Count the connection. Return False if the key or the address has too many."""
        account = self._account
        return account is None or (account.open() and account.claim(key, client))

    def belong_to(self, peer: Peer) -> None:
        """Set the socket whose bytes are counted."""
        self._peer = peer

    def note(self, writer: FrameWriter, written: int) -> None:
        """Count again after the client has read a part of its data."""
        self.count()

    def count(self) -> None:
        """Report the socket's bytes, which may disconnect this socket or others."""
        if self._account is not None and self._peer is not None:
            self._account.set(self._unread() + self._peer.call_bytes)

    def check(self, now: float) -> None:
        """Disconnect a client that reads nothing. now: the loop's time."""
        self.count()
        unread = self._unread()
        if not unread:
            self._stall.end()
            return
        longest = STALL_SECONDS
        if self._account is not None and self._process is not None:
            self._account.progress()
            longest = self._process.bounds.limits.stall_seconds
        if self._peer is not None and self._stall.seconds(unread, now) >= longest:
            self._disconnect("stalled")

    def close(self) -> None:
        """Stop counting the socket."""
        if self._account is not None:
            self._account.close()

    def _unread(self) -> int:
        return 0 if self._peer is None else self._peer.writer.waiting_bytes

    def _disconnect(self, why: Owner | str) -> None:
        if self._process is not None:
            self._process.bounds.disconnected[why] += 1
        if self._peer is not None:
            self._peer.close(SLOW_READER, "too slow")


class Hub:
    """The customers' sockets in one process, and the audience of their subscriptions.

    endpoint: shares its authorization and its dispatchers with the sockets.
    log: has a line for each frame.
    """

    def __init__(
        self,
        node: Node,
        endpoint: Endpoint,
        *,
        answer_bytes: int,
        log: FrameLog | None = None,
    ) -> None:
        self.node = node
        self.log = log or NoFrameLog()
        self.access = endpoint.access
        self.calls = endpoint.calls
        self.answer_bytes = answer_bytes
        self.long_answers = asyncio.Semaphore(limits.LONG_ANSWERS)
        self._peers: dict[Peer, Share] = {}
        self._of_keys: dict[int, set[Peer]] = {}
        self._sweep: asyncio.Task[None] | None = None
        node.subscriber.subscribe(ACCESS, self._access_changed, self._recheck_all)
        node.subscriber.at_epoch(self._recheck_all)
        node.directory.subscribe(self._close_without_network)

    @property
    def sockets(self) -> int:
        """Number of open sockets."""
        return len(self._peers)

    async def start(self) -> None:
        """Start the sweep."""
        self._sweep = asyncio.create_task(self._sweep_forever())

    async def stop(self) -> None:
        """Stop the sweep."""
        if self._sweep is not None:
            self._sweep.cancel()
            await asyncio.gather(self._sweep, return_exceptions=True)

    def network(self, network_id: int) -> NetworkView | None:
        """Return a network's current state, or None if it was removed."""
        return self.node.directory.get(network_id)

    # Sockets

    async def admit(
        self,
        path: str,
        headers: Headers,
        client: str | None,
        process: Process | None,
        wire: Wire,
    ) -> Peer:
        """Return the socket of a handshake.

        path: `/ws/v3/<key>` or `/<slug>/ws/v3/<key>`.
        process: the server's, None under another server.
        Raises: Rejected, with the response that `/v3` would give.
        """
        request_id = RequestId(headers.get(b"x-request-id"))
        line = self.log.begin(headers)
        try:
            slug, key = read_path(path.replace("/ws/v3", "/v3", 1), headers)
            if not key:
                raise KeyRequired
            grant = await self.access.resolve(key, client)
            network = self.access.network(grant, slug, headers, client)
            caller = Caller(key, network.id, headers, client)
            return self._join(caller, grant, wire, Share(process, client))
        except Exception as cause:
            error = self.access.refusal(cause, client, request_id)
            line.refused(request_id, error)
            line.end(0)
            raise _rejected(error, request_id, site_of(headers)) from None

    def leave(self, peer: Peer) -> None:
        """Forget a closed socket."""
        share = self._peers.pop(peer, None)
        if share is not None:
            share.close()
        key = peer.grant.api_key_id
        members = self._of_keys.get(key, set())
        members.discard(peer)
        if not members:
            self._of_keys.pop(key, None)

    def _join(self, caller: Caller, grant: Grant, wire: Wire, share: Share) -> Peer:
        """Add a socket.

        Raises: TooManyConnections.
        """
        if not share.open(grant.api_key_id, caller.client):
            share.close()
            error = TooManyConnections("API key or address")
            self.node.meter.fail(grant.api_key_id, caller.network_id, "", error)
            raise error
        writer = FrameWriter(wire, share, self.answer_bytes + limits.UNREAD_BYTES)
        peer = Peer(self, caller, grant, writer, share.count)
        share.belong_to(peer)
        self._peers[peer] = share
        self._of_keys.setdefault(grant.api_key_id, set()).add(peer)
        peer.recheck()  # a change may have been reported since the look-up began
        return peer

    # Notifications

    async def prepare(
        self, subscribers: Sequence[NodeSubscription]
    ) -> Callable[[Sequence[BlockEvent]], None]:
        """Return a function that sends events to sockets whose keys are valid now.

        Raises: Unavailable.
        """
        by_peer: dict[Peer, list[NodeSubscription]] = {}
        for subscription in subscribers:
            by_peer.setdefault(subscription.peer, []).append(subscription)
        resolved = [(peer, peer.resolved()) for peer in by_peer]
        for peer, grant in resolved:
            try:
                peer.require(grant.result() if grant.is_done else await grant)
            except RpcError as error:
                peer.end_if_refused(error)
        return partial(_send, by_peer)

    # Changes

    def _access_changed(self, subject: str) -> None:
        """Check the sockets of a key that may have changed."""
        kind, _, name = subject.partition(":")
        if kind == "key":
            for peer in list(self._of_keys.get(int(name), ())):
                peer.recheck()

    def _recheck_all(self) -> None:
        for peer in list(self._peers):
            peer.recheck()

    def _close_without_network(self) -> None:
        """Close the sockets of networks that were removed."""
        used = {peer.caller.network_id for peer in self._peers}
        removed = used - {network.id for network in self.node.directory.all()}
        for peer in list(self._peers) if removed else ():
            if peer.caller.network_id in removed:
                peer.end_if_refused(UnknownNetwork())

    async def _sweep_forever(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                self._check_all()
            except Exception:
                logger.exception("the sockets could not be checked")

    def _check_all(self) -> None:
        now, wall = asyncio.get_running_loop().time(), time.time()
        for peer, share in list(self._peers.items()):
            expires_at = peer.grant.expires_at
            if expires_at is not None and expires_at <= wall:
                peer.close(REVOKED, "this API key expired")
            share.check(now)


def _send(
    by_peer: dict[Peer, list[NodeSubscription]], events: Sequence[BlockEvent]
) -> None:
    for peer, subscriptions in by_peer.items():
        if peer.writer.is_open:
            send_events(subscriptions, events)
            peer.settle(events[0].read_at)


def _rejected(error: RpcError, request_id: RequestId, site: str) -> Rejected:
    """Return the rejection of a handshake with an error. site: see `jsonrpc.answers`."""
    headers = {**error.headers}
    headers.pop("Connection", None)
    lines = [
        *RESPONSE_HEADERS,
        *ANY_ORIGIN,
        (b"x-request-id", bytes(request_id)),
        *header_lines(headers),
    ]
    body = refusal(NULL, error, site).body.decode()
    return Rejected(error.http_status, body, lines)
