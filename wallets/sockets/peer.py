"""One socket of a dapp, as a JSON-RPC 2.0 peer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jsonrpc.envelope import NULL, write_result
from jsonrpc.errors import RpcError
from nodeapi.http import RequestId
from wallets import conf
from wallets.context import Context
from wallets.errors import InvalidRequest, LimitExceeded, Unauthorized, WalletError
from wallets.methods.outer import answer
from wallets.models import CREATE_SESSION
from wallets.services.presence import Arrival
from wallets.sockets import limits, outbox
from wallets.sockets.frames import (
    Call,
    Refused,
    read_call,
    read_frame,
    write_failure,
    write_session_changed,
)
from wallets.sockets.log_filter import read_filter
from wallets.sockets.outbox import Outbox
from wallets.sockets.room import NOTHING, Room
from wallets.sockets.subscriptions import Subscription, allows
from wallets.store import DappState, SessionState

if TYPE_CHECKING:
    from wallets.sockets.hub import Hub


@dataclass(slots=True)
class Outcome:
    """What a call has come to.

    session: what its answer tells of the session. opened: what it has subscribed to.
    """

    answer: bytes
    session: SessionState | None = None
    opened: list[Subscription] = field(default_factory=list)


class Peer:
    """Takes frames, has calls answered side by side, and is told of changes.

    All that is written goes through `outbox` in the step in which it is decided, so
    that the order of the frames is the order of the decisions.
    token_id: the row of the token that opened the socket.
    """

    def __init__(
        self,
        hub: Hub,
        room: Room,
        way_out: Outbox,
        token_id: int,
        arrival: Arrival,
    ) -> None:
        self.dapp_id = room.dapp_id
        self.socket = arrival.name
        self.remote_address = arrival.remote_address
        self.outbox = way_out
        self.room = room
        self._hub = hub
        self._token_id = token_id
        self._bucket = limits.Bucket(time.monotonic)
        self._calls: set[asyncio.Task[None]] = set()
        self._ids: set[bytes] = set()
        self._told = NOTHING
        """The session as the client knows it."""
        self._subscriptions: dict[str, Subscription] = {}

    def begin(self) -> None:
        """Take what the room knows for what the client can ask for."""
        self._told = self.room.session

    def receive(self, frame: str) -> None:
        """Take a text frame."""
        try:
            message = read_frame(frame)
            if isinstance(message, list):
                calls, refusals = self._read_batch(message)
                if calls or refusals:
                    self._start(self._answer_batch(calls, refusals))
                return
            call = self._admit(message)
        except Refused as refusal:
            self._count_refused()
            self.outbox.send(write_failure(refusal.id, refusal.error))
            return
        if call is not None:
            self._start(self._answer_single(call))

    def adopt(self, state: DappState | None) -> None:
        """Take over what the room has seen; tell the client what is new to it."""
        if (
            state is None
            or not state.is_welcome
            or self._token_id not in state.live_tokens
        ):
            self.end_subscriptions()
            self.outbox.close(outbox.REVOKED, "disconnected by the wallet")
            return
        session = state.session
        if session.version < self._told.version:
            return  # an answer has told more already
        self._keep_only(session)
        if session.version == self._told.version or session.changed_by == self.socket:
            return  # the call's own answer tells
        self._tell(session)

    def end_subscriptions(self) -> None:
        """End all subscriptions."""
        for subscription in list(self._subscriptions.values()):
            self._end(subscription)

    async def stop(self) -> None:
        """Give up what is under way, and wait until requests are taken back."""
        self.outbox.is_open = False
        self.end_subscriptions()
        calls = list(self._calls)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    async def open_subscription(
        self, scope: str, kind: str, arguments: Sequence[Any]
    ) -> Subscription:
        """Subscribe; nothing is sent before `Subscription.begin`.

        Raises: InvalidParams, LimitExceeded, Unauthorized.
        """
        wanted = read_filter(next(iter(arguments), None)) if kind == "logs" else None
        network = self._hub.wallet.network(scope)
        if network is None:
            raise Unauthorized
        feed = await self._hub.feed(network.id)
        # The grant was read a moment ago: what the room knows must not be older.
        await self.room.looked()
        if not allows(self.room.session, scope) or not self.outbox.is_open:
            raise Unauthorized
        if len(self._subscriptions) >= limits.MAX_SUBSCRIPTIONS:
            raise LimitExceeded
        subscription = Subscription(self, scope, feed, wanted)
        self._subscriptions[subscription.id] = subscription
        feed.join(subscription)
        return subscription

    def close_subscription(self, scope: str, name: str) -> bool:
        """End a subscription; false when there is none of that name and scope."""
        found = self._subscriptions.get(name)
        if found is None or found.scope != scope:
            return False
        self._end(found)
        return True

    # Frames

    def _read_batch(self, messages: list[Any]) -> tuple[list[Call], list[bytes]]:
        """Return the calls of a batch, and the answers to what are none.

        Raises: Refused, for all of it.
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
        """Return a message's call, whose id is taken from then on.

        Raises: Refused.
        """
        wait = self._bucket.take()
        call = read_call(message)
        if call is None:
            self._count_refused()
            return None
        if wait or len(self._ids) >= limits.MAX_CALLS:
            data = {"retryAfterMs": max(1, round(1000 * wait))}
            raise Refused(call.id, LimitExceeded(data=data))
        if call.id in self._ids:
            fault = InvalidRequest("The id is that of a call that is under way.")
            raise Refused(call.id, fault)
        if is_batch and call.method == CREATE_SESSION:
            fault = InvalidRequest(f"{CREATE_SESSION} can't be called in a batch.")
            raise Refused(call.id, fault)
        self._ids.add(call.id)
        return call

    def _count_refused(self) -> None:
        if self._bucket.is_exhausted:
            self.outbox.close(outbox.TOO_FAST, "too many messages")

    # Calls

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    async def _answer_single(self, call: Call) -> None:
        outcome = await self._outcome(call)
        self._settle([outcome], outcome.answer)

    async def _answer_batch(self, calls: list[Call], refusals: list[bytes]) -> None:
        outcomes = await asyncio.gather(*map(self._outcome, calls))
        answers = [*(outcome.answer for outcome in outcomes), *refusals]
        self._settle(outcomes, b"[" + b",".join(answers) + b"]")

    async def _outcome(self, call: Call) -> Outcome:
        caller = Caller(self)
        context = Context(RequestId(), caller, self._hub.wallet)
        try:
            answered = await answer(context, call.method, call.params)
        except (WalletError, RpcError) as error:
            for subscription in caller.opened:  # nobody knows its id
                self._end(subscription)
            return Outcome(write_failure(call.id, error))
        finally:
            self._ids.discard(call.id)
        written = write_result(call.id, answered.result)
        return Outcome(written, answered.session, caller.opened)

    def _settle(self, outcomes: Sequence[Outcome], frame: bytes) -> None:
        """Write answers, and take over what they tell, in one step."""
        is_behind = False
        for outcome in outcomes:
            session = outcome.session
            if session is not None and session.version >= self._told.version:
                self._keep_only(session)
                if conf.echo_to_requester():
                    self._tell(session)
                self._told = session
            elif session is not None:
                is_behind = True
        self.outbox.send(frame)
        for outcome in outcomes:
            for subscription in outcome.opened:
                subscription.begin()
        if is_behind:
            self.outbox.send(write_session_changed(self._told.scopes_json()))

    # What the client is told of

    def _tell(self, session: SessionState) -> None:
        before, self._told = self._told, session
        scopes = session.scopes_json()
        if scopes != before.scopes_json():
            self.outbox.send(write_session_changed(scopes))

    def _keep_only(self, session: SessionState) -> None:
        """End the subscriptions that a session does not hold."""
        for subscription in list(self._subscriptions.values()):
            if not allows(session, subscription.scope):
                self._end(subscription)

    def _end(self, subscription: Subscription) -> None:
        subscription.end()
        self._subscriptions.pop(subscription.id, None)


class Caller:
    """A socket as one of its calls sees it, see `wallets.context.Peer`."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self.dapp_id = peer.dapp_id
        self.socket = peer.socket
        self.remote_address = peer.remote_address
        self.opened: list[Subscription] = []

    async def subscribe(self, scope: str, kind: str, arguments: Sequence[Any]) -> str:
        """Open a subscription, which begins when the call has been answered."""
        opened = await self._peer.open_subscription(scope, kind, arguments)
        self.opened.append(opened)
        return opened.id

    def unsubscribe(self, scope: str, subscription: str) -> bool:
        """End a subscription of this socket and scope; false when there is none."""
        return self._peer.close_subscription(scope, subscription)
