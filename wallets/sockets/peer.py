"""One socket of a dapp, as a JSON-RPC 2.0 peer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from jsonrpc.envelope import NULL, write_result
from jsonrpc.errors import InvalidParams, RpcError
from nodeapi.feeds.new_blocks import Feed
from nodeapi.frames import close_codes
from nodeapi.frames.writer import FrameWriter
from nodeapi.logs.filter import LogSelection
from nodeapi.methods.log_criteria import log_criteria
from server.request_id import RequestId
from wallets.errors import InvalidRequest, LimitExceeded, Unauthorized, WalletError
from wallets.methods.outer import answer
from wallets.models import CREATE_SESSION
from wallets.services.presence import Handshake
from wallets.serving.context import Context
from wallets.serving.store import DappState, SessionState
from wallets.sockets import limits
from wallets.sockets.frames import (
    Call,
    Refused,
    read_call,
    read_cancellation,
    read_frame,
    write_failure,
    write_session_changed,
)
from wallets.sockets.hub import Hub
from wallets.sockets.room import NO_SESSION, Room
from wallets.sockets.subscriptions import DappSubscription, allows


@dataclass(slots=True)
class Outcome:
    """The result of a call.

    answer: the JSON-RPC response.
    session: the session that the response reports, if it does.
    opened: the subscriptions that the call has opened.
    """

    answer: bytes
    session: SessionState | None = None
    opened: list[DappSubscription] = field(default_factory=list)


class Peer:
    """Reads a client's frames, runs its calls concurrently, and sends session changes.

    Every frame is written through `writer` in the same step as the decision that it
    reports, so the frames are in the order of the decisions.
    token_id: the row of the token that opened the socket.
    """

    def __init__(
        self,
        hub: Hub,
        room: Room,
        writer: FrameWriter,
        token_id: int,
        handshake: Handshake,
    ) -> None:
        self.dapp_id = room.dapp_id
        self.socket = handshake.name
        self.remote_address = handshake.remote_address
        self.writer = writer
        self.room = room
        self._hub = hub
        self._token_id = token_id
        self._bucket = limits.Bucket(time.monotonic)
        self._calls: set[asyncio.Task[None]] = set()
        self._cancelled: dict[bytes, asyncio.Event] = {}
        """The event that cancels a call in progress, by the id of the call."""
        self._sent_session = NO_SESSION
        """The session as it was last sent to the client."""
        self._subscriptions: dict[str, tuple[DappSubscription, Feed]] = {}
        """The open subscriptions by id, each with the feed that serves it."""

    def begin(self) -> None:
        """Assume that the client knows the room's session: it can ask for it."""
        self._sent_session = self.room.session

    def receive(self, frame: str) -> None:
        """Handle a text frame."""
        try:
            message = read_frame(frame)
            if isinstance(message, list):
                calls, refusals = self._read_batch(message)
                if calls or refusals:
                    self._start(self._answer_batch(calls, refusals, len(frame)))
                return
            call = self._admit(message)
        except Refused as refusal:
            self._count_refused()
            self.writer.send(write_failure(refusal.id, refusal.error))
            return
        if call is not None:
            self._start(self._answer_single(call, len(frame)))

    def adopt(self, state: DappState | None) -> None:
        """Apply the dapp's state as read by the room; send the session if it is new."""
        if (
            state is None
            or not state.is_welcome
            or self._token_id not in state.live_tokens
        ):
            self.end_subscriptions()
            self.writer.close(close_codes.REVOKED, "disconnected by the wallet")
            return
        session = state.session
        if session.version < self._sent_session.version:
            return  # a response has reported a newer one
        self._keep_only(session)
        if (
            session.version == self._sent_session.version
            or session.changed_by == self.socket
        ):
            return  # the call's own response reports it
        self._send_session(session)

    def end_subscriptions(self) -> None:
        """End all subscriptions."""
        for subscription, _ in list(self._subscriptions.values()):
            self._end(subscription)

    async def stop(self) -> None:
        """Cancel the calls in progress, and wait until their requests are withdrawn."""
        self.writer.is_open = False
        self.end_subscriptions()
        calls = list(self._calls)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    async def open_subscription(
        self, scope: str, kind: str, arguments: Sequence[Any]
    ) -> DappSubscription:
        """Subscribe; events are held back until `DappSubscription.begin`.

        Raises: InvalidParams, TooManyAlternatives, LimitExceeded, Unauthorized.
        """
        logs = _selected(next(iter(arguments), None)) if kind == "logs" else None
        network = self._hub.wallet.network(scope)
        if network is None:
            raise Unauthorized
        feed = await self._hub.wallet.node.feeds.get(network.id)
        # The call was authorised a moment ago; the room's session must not be older.
        await self.room.refreshed()
        if not allows(self.room.session, scope) or not self.writer.is_open:
            raise Unauthorized
        if len(self._subscriptions) >= limits.MAX_SUBSCRIPTIONS:
            raise LimitExceeded
        subscription = DappSubscription(
            self._hub.audience, self.room, self.writer, scope, logs
        )
        self._subscriptions[subscription.id] = subscription, feed
        feed.join(subscription)
        return subscription

    def close_subscription(self, scope: str, name: str) -> bool:
        """End a subscription; return False if the scope has none with that id."""
        subscription, _ = self._subscriptions.get(name, (None, None))
        if subscription is None or subscription.scope != scope:
            return False
        self._end(subscription)
        return True

    # Frames

    def _read_batch(self, messages: list[Any]) -> tuple[list[Call], list[bytes]]:
        """Return the calls of a batch, and error responses to its invalid messages.

        Raises: Refused, for the whole batch.
        """
        if not messages:
            raise Refused(NULL, InvalidRequest())
        if len(messages) > limits.MAX_BATCH_CALLS:
            most = {"maxBatchCalls": limits.MAX_BATCH_CALLS}
            raise Refused(NULL, InvalidRequest("batch too large", data=most))
        calls, refusals = [], []
        for message in messages:
            try:
                call = self._admit(message, is_batch=True)
            except Refused as refusal:
                self._count_refused()
                refusals.append(write_failure(refusal.id, refusal.error))
            else:
                calls += [call] if call is not None else []
        return calls, refusals

    def _admit(self, message: Any, *, is_batch: bool = False) -> Call | None:
        """Return a message's call and reserve its id; None for a JSON-RPC notification.

        Raises: Refused.
        """
        wait = self._bucket.take()
        call = read_call(message)
        if call is None:
            self._count_refused()
            cancelled = self._cancelled.get(read_cancellation(message) or b"")
            if cancelled is not None:
                cancelled.set()
            return None
        if wait or len(self._cancelled) >= limits.MAX_CALLS:
            data = {"retryAfterMs": max(1, round(1000 * wait))}
            raise Refused(call.id, LimitExceeded(data=data))
        if call.id in self._cancelled:
            fault = InvalidRequest("The id is that of a call in progress.")
            raise Refused(call.id, fault)
        if is_batch and call.method == CREATE_SESSION:
            fault = InvalidRequest(f"{CREATE_SESSION} can't be called in a batch.")
            raise Refused(call.id, fault)
        self._cancelled[call.id] = asyncio.Event()
        return call

    def _count_refused(self) -> None:
        if self._bucket.is_exhausted:
            self.writer.close(close_codes.TOO_FAST, "too many messages")

    # Calls

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    async def _answer_single(self, call: Call, size: int) -> None:
        outcome = await self._outcome(call, size)
        self._settle([outcome], outcome.answer)

    async def _answer_batch(
        self, calls: list[Call], refusals: list[bytes], size: int
    ) -> None:
        outcomes = await asyncio.gather(*(self._outcome(call, size) for call in calls))
        answers = [*(outcome.answer for outcome in outcomes), *refusals]
        self._settle(outcomes, b"[" + b",".join(answers) + b"]")

    async def _outcome(self, call: Call, size: int) -> Outcome:
        """Run a call. size: length of its frame."""
        caller = Caller(self)
        cancelled = self._cancelled[call.id]
        context = Context(RequestId(), caller, self._hub.wallet, cancelled, size)
        try:
            answered = await answer(context, call.method, call.params)
        except (WalletError, RpcError) as error:
            for subscription in caller.opened:  # the client does not know its id
                self._end(subscription)
            return Outcome(write_failure(call.id, error))
        finally:
            self._cancelled.pop(call.id, None)
        written = write_result(call.id, answered.result)
        return Outcome(written, answered.session, caller.opened)

    def _settle(self, outcomes: Sequence[Outcome], frame: bytes) -> None:
        """Send a response and adopt the sessions that it reports, in one step."""
        is_behind = False
        for outcome in outcomes:
            session = outcome.session
            if session is not None and session.version >= self._sent_session.version:
                self._keep_only(session)
                if settings.WALLETS_ECHO_TO_REQUESTER:
                    self._send_session(session)
                self._sent_session = session
            elif session is not None:
                is_behind = True
        self.writer.send(frame)
        for outcome in outcomes:
            for subscription in outcome.opened:
                subscription.begin()
        if is_behind:
            self.writer.send(write_session_changed(self._sent_session.scopes_json()))

    # Session changes

    def _send_session(self, session: SessionState) -> None:
        before, self._sent_session = self._sent_session, session
        scopes = session.scopes_json()
        if scopes != before.scopes_json():
            self.writer.send(write_session_changed(scopes))

    def _keep_only(self, session: SessionState) -> None:
        """End the subscriptions that a session does not allow."""
        for subscription, _ in list(self._subscriptions.values()):
            if not allows(session, subscription.scope):
                self._end(subscription)

    def _end(self, subscription: DappSubscription) -> None:
        subscription.end()
        _, feed = self._subscriptions.pop(subscription.id, (None, None))
        if feed is not None:
            feed.leave(subscription)


class Caller:
    """The socket of one call; implements `wallets.serving.context.Peer`."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self.dapp_id = peer.dapp_id
        self.socket = peer.socket
        self.remote_address = peer.remote_address
        self.opened: list[DappSubscription] = []

    async def subscribe(self, scope: str, kind: str, arguments: Sequence[Any]) -> str:
        """Open a subscription, which begins after the call's response."""
        opened = await self._peer.open_subscription(scope, kind, arguments)
        self.opened.append(opened)
        return opened.id

    def unsubscribe(self, scope: str, subscription: str) -> bool:
        """End a subscription; return False if this socket has none like it."""
        return self._peer.close_subscription(scope, subscription)


def _selected(criteria: Any) -> LogSelection:
    """Return the logs that the argument of a subscription selects.

    Raises: InvalidParams, TooManyAlternatives.
    """
    try:
        return log_criteria(criteria).new_logs()
    except ValueError as error:
        raise InvalidParams(f"invalid argument 1: {error}") from error
