"""JSON-RPC calls and subscriptions over one WebSocket to an upstream."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidStatus,
    WebSocketException,
)
from websockets.frames import CloseCode

from nodeapi.upstreams.address import Address, tls
from nodeapi.upstreams.errors import UpstreamUnavailable
from nodeapi.upstreams.http import NOT_JSON, NOT_JSON_RPC, TOO_LONG, retry_after
from nodeapi.upstreams.reasons import reason_of

Callback = Callable[[Any], None]
"""Gets the `result` of each notification of a subscription. It must not block or raise.
"""

CLOSE_SECONDS = 1.0
"""Time in which the upstream has to answer a close frame."""

MAX_NOTIFICATION_BYTES = 2**20
"""Maximum size of a message while no call permits a larger response."""

CANCELLED_KEPT = 256

UNSUBSCRIBE_ID = 0
"""Id of calls whose responses are ignored. Other calls have ids from 1 on."""

_silent = logging.Logger("nodeapi.upstreams.websocket")
_silent.disabled = True  # the library logs handshakes, whose headers contain secrets


class WebSocketConnection:
    """One connection to an upstream. A call opens it if it is closed.

    Calls are multiplexed by their ids. Pings detect that the upstream is unavailable.
    """

    def __init__(
        self,
        address: Address,
        *,
        open_seconds: float,
        ping_seconds: float,
    ) -> None:
        """Set the address. The first call opens the connection.

        open_seconds: time limit of the handshake.
        ping_seconds: interval of pings, and the time limit for each answer.
        """
        self._address = address
        self._open_seconds = open_seconds
        self._ping_seconds = ping_seconds
        self._session: _Session | None = None
        self._opening: asyncio.Task[_Session] | None = None

    async def exchange(
        self, calls: Sequence[dict[str, Any]], max_bytes: int
    ) -> list[Any]:
        """Send calls in one message, as a batch if there are several.

        Return the responses in the upstream's order. They can be any JSON values. There
        is no time limit.

        Raises: UpstreamUnavailable.
        """
        session = await self._open()
        return await session.exchange(calls, max_bytes)

    async def subscribe(self, call: dict[str, Any], callback: Callback) -> Subscription:
        """Send an `eth_subscribe` call.

        callback: gets the notifications until the connection is closed.

        Raises: UpstreamUnavailable.
        """
        session = await self._open()
        making = asyncio.create_task(
            session.exchange([call], MAX_NOTIFICATION_BYTES, callback)
        )
        try:
            [response] = await asyncio.shield(making)
        except asyncio.CancelledError:
            making.add_done_callback(session.discard)
            raise
        return Subscription(response, session)

    async def close(self) -> None:
        """Close the connection, if there is one."""
        opening = self._opening
        if opening is not None:
            opening.cancel()
            await asyncio.wait([opening])
            self._opened(opening)  # it may have succeeded just before
        if self._session is not None:
            await self._session.close()

    async def _open(self) -> _Session:
        """Return the open session. Concurrent callers share one handshake."""
        session = self._session
        if session is not None and not session.closed.done():
            return session
        if self._opening is None:
            self._opening = asyncio.create_task(self._connect())
            self._opening.add_done_callback(self._opened)
        # Another caller may be waiting for the same handshake.
        return await asyncio.shield(self._opening)

    def _opened(self, opening: asyncio.Task[_Session]) -> None:
        self._opening = None
        if not opening.cancelled() and opening.exception() is None:
            self._session = opening.result()

    async def _connect(self) -> _Session:
        address = self._address
        try:
            socket = await _Connect(
                str(address.url),
                additional_headers=list(address.headers.items()),
                user_agent_header=None,
                ssl=tls() if address.url.scheme == "wss" else None,
                compression=None,  # a compressed message could have any size
                proxy=None,
                open_timeout=self._open_seconds,
                ping_interval=self._ping_seconds,
                ping_timeout=self._ping_seconds,
                close_timeout=CLOSE_SECONDS,
                max_size=MAX_NOTIFICATION_BYTES,
                logger=_silent,
            )
        except InvalidStatus as error:
            status = error.response.status_code
            delays = error.response.headers.get_all("Retry-After")
            raise UpstreamUnavailable(
                f"HTTP status {status}",
                status=status,
                retry_after=retry_after(next(iter(delays), None)),
            ) from None
        except (WebSocketException, OSError, ValueError) as error:
            raise UpstreamUnavailable(
                reason_of(error),
                is_unreachable=isinstance(error, ConnectionError),
            ) from None
        return _Session(socket)


class _Connect(connect):
    """A handshake that follows no redirects, because other hosts would get our headers."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


@dataclass(slots=True, eq=False)
class _Pending:
    """A call or a batch that waits for its response.

    response: completed with a JSON object, a list of them, or with the error to raise.
    callback: gets the notifications if the call is an `eth_subscribe`.
    """

    response: asyncio.Future[Any]
    max_bytes: int
    callback: Callback | None
    is_batch: bool


class _Session:
    """An open connection. closed: completed with the reason when it is closed."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._pending: dict[int, _Pending] = {}
        self._cancelled: dict[int, int] = {}
        """Calls that were cancelled before their response → its maximum size."""
        self._subscriptions: dict[str, Callback] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self.closed: asyncio.Future[UpstreamUnavailable] = (
            asyncio.get_running_loop().create_future()
        )
        self._reader = asyncio.create_task(self._read())

    async def exchange(
        self,
        calls: Sequence[dict[str, Any]],
        max_bytes: int,
        callback: Callback | None = None,
    ) -> list[Any]:
        """Send calls in one message, and return the responses."""
        if self.closed.done():
            raise UpstreamUnavailable(self.closed.result().reason)
        pending = _Pending(
            *(asyncio.get_running_loop().create_future(), max_bytes, callback),
            is_batch=len(calls) > 1,
        )
        numbers = [call["id"] for call in calls]
        self._pending |= dict.fromkeys(numbers, pending)
        self._limit_messages()
        try:
            message = calls[0] if len(calls) == 1 else calls
            await self._socket.send(orjson.dumps(message), text=True)
            response = await pending.response
        except ConnectionClosed as error:
            raise _closed(error) from None
        finally:
            for number in numbers:
                del self._pending[number]
            if not pending.response.done() or pending.response.cancelled():
                self._cancelled[numbers[0]] = max_bytes
            while len(self._cancelled) > CANCELLED_KEPT:
                del self._cancelled[next(iter(self._cancelled))]
            self._limit_messages()
        if isinstance(response, UpstreamUnavailable):
            raise UpstreamUnavailable(response.reason)
        return response if isinstance(response, list) else [response]

    def _limit_messages(self) -> None:
        """Limit the next message to the largest response that may arrive."""
        sizes = [each.max_bytes for each in self._pending.values()]
        self._socket.protocol.max_message_size = max(
            [MAX_NOTIFICATION_BYTES, *sizes, *self._cancelled.values()]
        )

    async def unsubscribe(self, subscription: str) -> None:
        """End a subscription, without waiting for the response."""
        self._subscriptions.pop(subscription, None)
        call = {
            "jsonrpc": "2.0",
            "id": UNSUBSCRIBE_ID,
            "method": "eth_unsubscribe",
            "params": [subscription],
        }
        with suppress(ConnectionClosed, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._socket.send(orjson.dumps(call), text=True)

    def discard(self, making: asyncio.Task[list[Any]]) -> None:
        """End the subscription of an exchange whose caller was cancelled."""
        if making.cancelled() or making.exception() is not None:
            return
        [response] = making.result()
        if isinstance(response.get("result"), str):
            ending = asyncio.create_task(self.unsubscribe(response["result"]))
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """Close the connection, and return when it is closed."""
        await self._socket.close()
        await asyncio.wait([self._reader])

    async def _read(self) -> None:
        """Deliver messages until the connection is closed."""
        reason = UpstreamUnavailable("the connection was closed")
        try:
            while True:
                self._deliver(await self._socket.recv(decode=False))
        except ConnectionClosed as error:
            reason = _closed(error)
        except UpstreamUnavailable as error:
            reason = error
        finally:
            self.closed.set_result(reason)
            for each in self._pending.values():
                if not each.response.done():
                    each.response.set_result(reason)
            await self._socket.close()

    def _deliver(self, message: bytes) -> None:
        """Pass a message to its call or subscription.

        Other messages are dropped. They answer cancelled calls, such as after a timeout.

        Raises: UpstreamUnavailable for a message that is not JSON-RPC.
        """
        try:
            found = orjson.loads(message)
        except ValueError:
            raise UpstreamUnavailable(NOT_JSON) from None
        responses = found if isinstance(found, list) else [found]
        if not all(isinstance(each, dict) for each in responses):
            raise UpstreamUnavailable(NOT_JSON_RPC)
        if isinstance(found, dict) and found.get("method") == "eth_subscription":
            self._notify(found.get("params"))
            return
        ids = (each.get("id") for each in responses)
        numbers = [number for number in ids if type(number) is int]
        for number in numbers:
            if self._cancelled.pop(number, None) is not None:
                self._limit_messages()
        pending = next((self._pending[n] for n in numbers if n in self._pending), None)
        if not numbers and (isinstance(found, list) or "error" in found):
            pending = self._only_batch()
        if pending is None or pending.response.done():
            return
        if len(message) > pending.max_bytes:
            reason = TOO_LONG.format(pending.max_bytes)
            pending.response.set_result(UpstreamUnavailable(reason))
            return
        result = responses[0].get("result")
        if pending.callback is not None and isinstance(result, str):
            # At once, because the next message may be the first notification.
            self._subscriptions[result] = pending.callback
        pending.response.set_result(found)

    def _only_batch(self) -> _Pending | None:
        """Return the batch that a message without ids answers, None if there are several."""
        batches = {each for each in self._pending.values() if each.is_batch}
        return batches.pop() if len(batches) == 1 else None

    def _notify(self, params: Any) -> None:
        if isinstance(params, dict) and isinstance(params.get("subscription"), str):
            callback = self._subscriptions.get(params["subscription"])
            if callback is not None:
                callback(params.get("result"))


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription on a connection. response: the response to `eth_subscribe`."""

    response: Any
    _session: _Session

    async def wait_closed(self) -> UpstreamUnavailable:
        """Wait until the connection is closed, and return the reason."""
        return await asyncio.shield(self._session.closed)

    async def end(self) -> None:
        """Unsubscribe, if the connection is open."""
        if isinstance(self.response.get("result"), str):
            await self._session.unsubscribe(self.response["result"])


_OWN_CLOSE_REASONS = {
    CloseCode.MESSAGE_TOO_BIG: "a message is too long",
    CloseCode.INTERNAL_ERROR: "a ping was not answered",
}
"""Close code that this client has sent → reason."""


def _closed(error: ConnectionClosed) -> UpstreamUnavailable:
    """Return the error for calls on a closed connection.

    It omits the reason in a received close frame, which may contain the URL.
    """
    if error.sent is not None and not error.rcvd_then_sent:
        reason = _OWN_CLOSE_REASONS.get(CloseCode(error.sent.code))
        if reason is not None:
            return UpstreamUnavailable(reason)
    code = CloseCode.ABNORMAL_CLOSURE if error.rcvd is None else error.rcvd.code
    return UpstreamUnavailable(f"the connection was closed ({int(code)})")
