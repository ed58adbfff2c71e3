"""One socket of the node: its calls, its subscriptions, and what they cost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter_ns
from typing import Protocol

from jsonrpc.answers import Answer, Reply
from jsonrpc.errors import (
    InternalError,
    RequestTimedOut,
    RpcError,
    ServiceUnavailable,
)
from jsonrpc.later import Later
from jsonrpc.stream import ResultTooLarge, Stream
from keys.grants import Grant
from keys.site import Headers, site_of
from networks.directory import NetworkView
from nodeapi.endpoint.access import Access
from nodeapi.endpoint.calls import Calls
from nodeapi.errors.access import UnknownNetwork
from nodeapi.errors.sockets import (
    TooManyCalls,
    TooManySubscriptions,
)
from nodeapi.feeds.new_blocks import Audience
from nodeapi.frames.close_codes import REVOKED, TOO_FAST
from nodeapi.frames.writer import STALLED_BYTES, FrameWriter
from nodeapi.logs.filter import LogSelection
from nodeapi.methods.context import Context
from nodeapi.node import Node
from nodeapi.sockets import limits
from nodeapi.sockets.charges import NOTIFICATION, Charges
from nodeapi.sockets.frame_log import FrameLog, Line
from nodeapi.sockets.subscription import Subscription
from postgres.errors import Unavailable
from server.request_id import RequestId

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 0.05
"""Interval at which a long result looks whether the client has read the earlier ones."""

MAX_REASON = 120
"""Maximum number of characters of the reason in a close frame, which has at most 123
bytes."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who has opened a socket, and for which network.

    key: the secret, for later look-ups. headers: of the handshake. client: IP address.
    """

    key: str = field(repr=False)
    network_id: int
    headers: Headers
    client: str | None


class Hub(Audience, Protocol):
    """The objects that the sockets of a process share; see `nodeapi.sockets.hub`."""

    @property
    def node(self) -> Node:
        """The parts of the node."""

    @property
    def access(self) -> Access:
        """Decides who may use the API."""

    @property
    def calls(self) -> Calls:
        """Answers calls."""

    @property
    def log(self) -> FrameLog:
        """Has a line for each frame."""

    @property
    def long_answers(self) -> asyncio.Semaphore:
        """Held while a long result is read."""

    @property
    def answer_bytes(self) -> int:
        """Size of the longest result."""

    def network(self, network_id: int) -> NetworkView | None:
        """Return a network's current state, None if it was removed."""


class NodeSubscription(Subscription):
    """A subscription of a socket of the node.

    audience: the hub. peer: the socket.
    """

    def __init__(self, audience: Hub, peer: Peer, logs: LogSelection | None) -> None:
        super().__init__(peer.writer, logs)
        self.audience = audience
        self.peer = peer

    def write(self, frame: bytes) -> None:
        """Write a notification, for which the key is charged."""
        super().write(frame)
        self.peer.charges.add(len(frame))


class Peer:
    """Answers a client's frames, and holds its subscriptions.

    Each frame is authorized like a request to `/v3`, and notifications are before they
    are sent. The socket is closed when its key is refused.
    grant: the key's grant as last seen.
    size: reports the bytes of frames in progress.
    """

    def __init__(
        self,
        hub: Hub,
        caller: Caller,
        grant: Grant,
        writer: FrameWriter,
        resized: Callable[[], None],
    ) -> None:
        self.caller = caller
        self.grant = grant
        self.writer = writer
        self.charges = Charges(hub.node, caller.network_id, writer, self._take_charge)
        self.call_bytes = 0
        """Bytes of the frames that are being answered."""
        self._resized = resized
        self._hub = hub
        self._calls = 0
        self._subscriptions: dict[str, tuple[NodeSubscription, Callable[[], None]]] = {}
        """The open subscriptions by id, each with the function that ends its source."""
        self._gone = asyncio.Event()
        self._long: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()
        """Held by the long result that is sent next."""

    @property
    def _site(self) -> str:
        """Base URL of the links in errors."""
        return site_of(self.caller.headers)

    # Authorization

    def require(self, grant: Grant) -> NetworkView:
        """Check that a key still grants what the socket has, and return the network.

        Raises: UnknownNetwork, an error of `keys.errors`.
        """
        network = self._hub.network(self.caller.network_id)
        if network is None:
            raise UnknownNetwork
        if grant is not self.grant:
            self._hub.access.require(
                grant, network, self.caller.headers, self.caller.client
            )
            for subscription, _ in self._subscriptions.values():
                _require_subscription(grant, subscription.logs)
            self.grant = grant
        return network

    def resolved(self) -> Later[Grant]:
        """Return the current grant of the socket's key.

        Fails like `Grants.resolve`.
        """
        return self._hub.access.resolve(self.caller.key, self.caller.client)

    def recheck(self) -> None:
        """Check the key again after it may have changed. A rejected key ends the socket."""
        self.resolved().then(self.require).when_done(self._take_check)

    def end_if_refused(self, error: RpcError) -> None:
        """Close the socket because its key, or its client, is refused."""
        self.close(REVOKED, error.message)

    def close(self, code: int, reason: str) -> None:
        """Close the socket, and drop later notifications."""
        self.end_subscriptions()
        self.writer.close(code, reason[:MAX_REASON])

    def _take_check(self, checked: Later[NetworkView]) -> None:
        error = checked.error
        if isinstance(error, RpcError):
            self.end_if_refused(error)
        elif error is not None and not isinstance(error, Unavailable):
            logger.error("a key could not be checked", exc_info=error)

    # Calls

    def receive(self, frame: bytes) -> None:
        """Answer a frame."""
        notifier = _FrameNotifier(self, self._hub.log.begin(self.caller.headers))
        is_full = self._calls >= limits.MAX_CALLS
        if is_full or self.call_bytes + len(frame) > limits.MAX_CALL_BYTES:
            error = TooManyCalls(limits.MAX_CALLS, limits.MAX_CALL_BYTES)
            self._send_error(frame, notifier, error)
            self._note_refusal("", error)
            return
        self._count(1, len(frame))
        answer = self.resolved().then(partial(self._respond, frame, notifier))
        answer.when_done(partial(self._take, frame, notifier))

    def _respond(
        self, frame: bytes, notifier: _FrameNotifier, grant: Grant
    ) -> Later[Answer]:
        network = self.require(grant)
        node = self._hub.node
        context = Context(
            notifier.request_id,
            grant,
            network,
            node.store,
            node.tracing,
            node.limiter,
            node.meter,
            perf_counter_ns(),
            relay=node.relay,
            notifier=notifier,
            filters=node.filters,
            headers=self.caller.headers,
            values=node.values,
        )
        notifier.is_authorized = True
        notifier.line.admitted(context)
        return self._hub.calls.respond(frame, context, self._gone.wait)

    def _take(
        self, frame: bytes, notifier: _FrameNotifier, answered: Later[Answer]
    ) -> None:
        """Send an answer, or begin to read a long one."""
        error = answered.error
        if error is not None:
            self._count(-1, -len(frame))
            notifier.end()
            if isinstance(error, asyncio.CancelledError):
                notifier.line.end(0)
            else:
                self._refuse(frame, notifier, error)
            return
        answer = answered.result()
        if isinstance(answer, Stream):
            task = asyncio.get_running_loop().create_task(
                self._send_long(frame, notifier, answer)
            )
            self._long.add(task)
            task.add_done_callback(self._long.discard)
            return
        self._count(-1, -len(frame))
        body = answer.body if isinstance(answer, Reply) else bytes(answer)
        if body:
            self.writer.send(body)
        notifier.line.end(len(body))
        notifier.begin(body)

    def _refuse(
        self, frame: bytes, notifier: _FrameNotifier, cause: BaseException
    ) -> None:
        """Answer a frame whose key was refused, or whose calls have crashed."""
        error = self._hub.access.refusal(cause, self.caller.client, notifier.request_id)
        self._send_error(frame, notifier, error)
        is_ours = error.code == InternalError.code
        if not notifier.is_authorized and not is_ours:
            self.end_if_refused(error)

    def _send_error(
        self, frame: bytes, notifier: _FrameNotifier, error: RpcError
    ) -> None:
        """Answer a whole frame with an error, and log it."""
        body = self._hub.calls.refuse(frame, error, self._site).body
        self.writer.send(body)
        notifier.line.refused(notifier.request_id, error)
        notifier.line.end(len(body))

    async def _send_long(
        self, frame: bytes, notifier: _FrameNotifier, stream: Stream
    ) -> None:
        """Send a long result when the client has read the earlier ones."""
        try:
            async with self._turn:
                while self.writer.waiting_bytes > STALLED_BYTES and self.writer.is_open:
                    await asyncio.sleep(DRAIN_SECONDS)
                async with self._hub.long_answers:
                    body = await self._read(stream) if self.writer.is_open else b""
                    self.writer.send(body)
                    notifier.line.end(len(body))
        except RpcError as error:
            self._send_error(frame, notifier, error)
        except Exception:
            logger.exception("a long result was not read")
            self._send_error(frame, notifier, InternalError())
        finally:
            self._count(-1, -len(frame))
            await stream.aclose()

    async def _read(self, stream: Stream) -> bytes:
        """Return a long result.

        Raises: ResultTooLarge, RequestTimedOut, ServiceUnavailable.
        """
        most = self._hub.answer_bytes
        if stream.size > most:
            raise ResultTooLarge(stream.size, most, "make the call over HTTP, at /v3")
        try:
            async with asyncio.timeout(self._hub.calls.limits.seconds):
                return await stream.read()
        except TimeoutError as error:
            raise RequestTimedOut from error
        except Unavailable as error:
            raise ServiceUnavailable from error

    def _count(self, calls: int, size: int) -> None:
        self._calls += calls
        self.call_bytes += size
        self._resized()

    # Subscriptions

    async def open_subscription(
        self, kind: str, logs: LogSelection | None, *, is_full: bool
    ) -> NodeSubscription:
        """Subscribe; notifications are held back until `NodeSubscription.begin`.

        The arguments and errors are those of `Notifier.subscribe`.
        """
        _require_subscription(self.grant, logs)
        network_id, node = self.caller.network_id, self._hub.node
        feed = None
        if kind in ("newHeads", "logs"):
            feed = await node.feeds.get(network_id)
        if len(self._subscriptions) >= limits.MAX_SUBSCRIPTIONS:
            raise TooManySubscriptions(limits.MAX_SUBSCRIPTIONS)
        opened = NodeSubscription(self._hub, self, logs)
        if not self.writer.is_open:
            opened.end()
            return opened
        publish = partial(self._publish, opened)
        if feed is not None:
            feed.join(opened)
            ends: Callable[[], None] = partial(feed.leave, opened)
        elif kind == "syncing":
            ends = node.syncing.subscribe(network_id, publish)
        else:
            ends = node.pending_feed.subscribe(network_id, publish, is_full)
        self._subscriptions[opened.id] = opened, ends
        return opened

    def _publish(self, subscription: NodeSubscription, result: bytes) -> None:
        """Send a result of a source without an audience, if the key is valid now."""
        checked = self.resolved().then(self.require)
        checked.when_done(partial(self._send_checked, subscription, result))

    def _send_checked(
        self,
        subscription: NodeSubscription,
        result: bytes,
        checked: Later[NetworkView],
    ) -> None:
        self._take_check(checked)
        if checked.error is None:
            subscription.send(result)
            self.settle(perf_counter_ns())

    def close_subscription(self, name: str) -> bool:
        """End a subscription; return False if there is none with this id."""
        subscription, end_source = self._subscriptions.pop(name, (None, None))
        if subscription is None or end_source is None:
            return False
        subscription.end()
        end_source()
        return True

    def end_subscriptions(self) -> None:
        """End all subscriptions."""
        for name in list(self._subscriptions):
            self.close_subscription(name)

    def settle(self, read_at: int) -> None:
        """Charge the key for the notifications that were written.

        read_at: when the event was looked for, as in `BlockEvent.read_at`.
        """
        self.charges.settle(self.grant, read_at)

    def _take_charge(self, error: RpcError) -> None:
        """Close the socket because its key has too few credits."""
        self._note_refusal(NOTIFICATION, error)
        self.close(TOO_FAST, f"no credits for notifications: {error.reason}")

    def _note_refusal(self, method: str, error: RpcError) -> None:
        key, network = self.grant.api_key_id, self.caller.network_id
        self._hub.node.meter.fail(key, network, method, error)

    async def stop(self) -> None:
        """End the socket: abort slow calls, and drop unsent frames."""
        self.writer.is_open = False
        self.end_subscriptions()
        self._gone.set()
        tasks = list(self._long)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _FrameNotifier:
    """The socket of the calls of one frame; implements `nodeapi.methods.context.Notifier`.

    is_authorized: the frame's key was accepted. line: of the request log.
    """

    __slots__ = ("_opened", "_peer", "is_authorized", "line", "request_id")

    def __init__(self, peer: Peer, line: Line) -> None:
        self.line = line
        self._peer = peer
        self._opened: list[NodeSubscription] = []
        self.request_id = RequestId()
        self.is_authorized = False

    async def subscribe(
        self, kind: str, logs: LogSelection | None, *, is_full: bool
    ) -> str:
        """Open a subscription, which begins after the frame's response."""
        opened = await self._peer.open_subscription(kind, logs, is_full=is_full)
        self._opened.append(opened)
        return opened.id

    def unsubscribe(self, subscription: str) -> bool:
        """End a subscription; return False if the socket has none with this id."""
        return self._peer.close_subscription(subscription)

    def begin(self, response: bytes) -> None:
        """Begin the subscriptions whose ids the response contains, and end the others.

        A batch whose response became too large reports an error in place of an id.
        """
        for subscription in self._opened:
            if subscription.id.encode() in response:
                subscription.begin()
            else:
                self._peer.close_subscription(subscription.id)
        if self._opened:
            self._peer.settle(perf_counter_ns())

    def end(self) -> None:
        """End the subscriptions, because the frame was not answered."""
        for subscription in self._opened:
            self._peer.close_subscription(subscription.id)


def _require_subscription(grant: Grant, logs: LogSelection | None) -> None:
    """Check that a key's allowlists permit a subscription.

    Raises: MethodNotAllowlisted, ContractNotAllowed.
    """
    allowlists = grant.allowlists
    if allowlists is None:
        return
    allowlists.require_method("eth_subscribe")
    if logs is not None:
        allowlists.require_filter(logs.wanted.address_bytes())
