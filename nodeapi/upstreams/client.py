"""JSON-RPC client of an upstream, over HTTP or WebSocket.

Source: https://www.jsonrpc.org/specification;
https://ethereum.github.io/execution-apis/; https://geth.ethereum.org/docs pubsub
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count
from types import TracebackType
from typing import Any

from nodeapi.upstreams.address import Address
from nodeapi.upstreams.errors import (
    MethodUnavailable,
    UpstreamError,
    UpstreamUnavailable,
)
from nodeapi.upstreams.http import NOT_JSON_RPC, HttpConnections
from nodeapi.upstreams.websocket import Callback, WebSocketConnection

CALL_SECONDS = 10.0
"""Default time limit of a call. It includes the wait for other calls."""

PING_SECONDS = 10.0
"""Interval of pings on a WebSocket, and the time limit for each answer."""

MAX_RESPONSE_BYTES = 2**20
"""Default maximum size of a response or batch of responses."""

MAX_BLOCK_BYTES = 128 * 2**20
"""Maximum size of a response with a whole block. Blocks have at most 8 MiB since Osaka, which
are 16 MiB in hexadecimal digits; JSON objects may take several times as much."""

MAX_CALLS = 16
"""Maximum number of calls or batches in flight to one upstream. Others wait."""

MAX_BATCH = 100
"""Calls in one request. geth accepts 1000, providers often 100."""

FIRST_DELAY, LAST_DELAY = 0.25, 30.0
"""Seconds between attempts to subscribe again: the delay doubles from the first to the
last. A random part of up to a half is subtracted."""

REFUSAL_SECONDS = 300.0
"""Time for which a client remembers that its upstream does not offer a method."""

_METHOD_CODES = {
    -32601,  # JSON-RPC: method not found
    -32604,  # Besu: method not enabled
    -32004,  # EIP-1474: method not supported
}
_METHOD_TEXTS = re.compile(
    r"unsupported method"
    r"|\bmethod\b.{0,80}\b(not (found|supported|available|enabled|allowed|exist)"
    r"|unsupported|unavailable|disabled)",
    re.IGNORECASE,
)
"""Error texts for unavailable methods, which providers send with other codes."""

_RATE_LIMIT_CODES = {
    -32005,  # EIP-1474: limit exceeded
    429,  # Alchemy, in batches
}


_SOCKET_BATCHES = "batches over WebSocket"
"""Name under which a client remembers that an upstream refuses them, as some do that have
more than a few calls. The calls are then sent one by one."""


class UpstreamClient:
    """Calls one upstream. It belongs to the event loop in which it is first used.

    Calls may run concurrently. An invalid URL is reported by each call.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        *,
        timeout: float = CALL_SECONDS,
        max_bytes: int = MAX_RESPONSE_BYTES,
        ping_seconds: float = PING_SECONDS,
    ) -> None:
        """Set the address. The first call opens a connection.

        url: http, https, ws or wss. User info becomes basic authentication.
        headers: sent with each request or handshake.
        timeout: time limit of a call in seconds.
        max_bytes: maximum size of a response, unless a call sets another one.
        """
        self._url = url
        self._headers = dict(headers or {})
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._ping_seconds = ping_seconds
        self._ids = count(1)
        self._slots = asyncio.Semaphore(MAX_CALLS)
        self._refused_at: dict[str, float] = {}
        self._address: Address | None = None
        self._channel: HttpConnections | WebSocketConnection | None = None

    def __repr__(self) -> str:
        return f"<UpstreamClient {self._url.partition(':')[0]!r}>"

    async def __aenter__(self) -> UpstreamClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections. Calls in progress fail."""
        if self._channel is not None:
            await self._channel.close()

    @property
    def can_subscribe(self) -> bool:
        """Whether the URL is a WebSocket's."""
        return self._url.lower().startswith(("ws:", "wss:"))

    def offers(self, method: str) -> bool:
        """Return False if the upstream refused a method in the last `REFUSAL_SECONDS`.

        Calls do not depend on it.
        """
        refused_at = self._refused_at.get(method)
        return refused_at is None or time.monotonic() - refused_at > REFUSAL_SECONDS

    def note_refusal(self, method: str) -> None:
        """Remember that the upstream does not offer a method, or a form of its arguments.

        Errors for unavailable methods are noted by the calls themselves.
        """
        self._refused_at[method] = time.monotonic()

    async def call(
        self, method: str, *params: Any, max_bytes: int | None = None
    ) -> Any:
        """Call a method, and return its result.

        params: JSON values. max_bytes: maximum size of the response.

        Raises: UpstreamError if the upstream returns an error, MethodUnavailable if it
            does not offer the method; UpstreamUnavailable if there is no valid
            response.
        """
        [result] = await self._exchange([(method, params)], max_bytes)
        if isinstance(result, UpstreamError):
            raise result
        return result

    async def batch(
        self,
        calls: Sequence[tuple[str, Sequence[Any]]],
        max_bytes: int | None = None,
    ) -> list[Any]:
        """Make several calls, in requests of up to `MAX_BATCH`.

        calls: methods with their parameters. The upstream may answer each of them at
            another head.
        max_bytes: maximum size of the responses to one request.

        Return the results in the order of the calls, with an UpstreamError in place of
        each result that is an error.

        Raises: UpstreamUnavailable if a response is absent or invalid; UpstreamError if
            the batch as a whole is answered with an error.
        """
        results: list[Any] = []
        for start in range(0, len(calls), MAX_BATCH):
            part = calls[start : start + MAX_BATCH]
            results += await self._exchange(part, max_bytes)
        return results

    async def subscribe_heads(self, callback: Callback) -> None:
        """Call back with each new head's header as JSON; see `subscribe`."""
        await self.subscribe("newHeads", callback=callback)

    async def subscribe(self, *params: Any, callback: Callback) -> None:
        """Subscribe until cancelled. Subscribe again after each lost connection.

        params: the parameters of `eth_subscribe`.
        callback: gets each notification's `result`. It must not block or raise.

        Notifications may be lost, or stop while the connection stays open. Callers
        therefore have to poll as well.

        Raises: MethodUnavailable if the upstream offers no subscriptions, as over HTTP.
        """
        if not self.can_subscribe:
            raise MethodUnavailable(-32601, "notifications not supported")
        delay = FIRST_DELAY
        while True:
            started = time.monotonic()
            pause = 0.0
            try:
                await self._hold_subscription(params, callback)
            except MethodUnavailable:
                raise
            except UpstreamUnavailable as error:
                pause = error.retry_after or 0.0
            except UpstreamError:
                pass
            if time.monotonic() - started > LAST_DELAY:
                delay = FIRST_DELAY
            await asyncio.sleep(max(pause, delay * random.uniform(0.5, 1.0)))
            delay = min(2 * delay, LAST_DELAY)

    async def _hold_subscription(
        self, params: Sequence[Any], callback: Callback
    ) -> None:
        """Subscribe, and wait until the connection is closed."""
        [call] = self._numbered([("eth_subscribe", params)])
        channel = self._open()
        assert isinstance(channel, WebSocketConnection)
        async with self._limits():
            subscription = await channel.subscribe(call, callback)
        try:
            result = self._read(subscription.response)
            if isinstance(result, UpstreamError):
                raise result
            await subscription.wait_closed()
        finally:
            await subscription.end()

    async def _exchange(
        self, calls: Sequence[tuple[str, Sequence[Any]]], max_bytes: int | None
    ) -> list[Any]:
        """Return the results or UpstreamErrors of calls sent in one request."""
        numbered = self._numbered(calls)
        channel = self._open()
        most = max_bytes or self._max_bytes
        is_socket = isinstance(channel, WebSocketConnection)
        async with self._limits():
            if len(calls) > 1 and is_socket and not self.offers(_SOCKET_BATCHES):
                found = await asyncio.gather(
                    *(channel.exchange([call], most) for call in numbered)
                )
                responses = [response for each in found for response in each]
            else:
                responses = await channel.exchange(numbered, most)
        if len(responses) == 1 and _is_error_without_id(responses[0]):
            error = self._read(responses[0])
            if len(calls) == 1:
                return self._noted(calls, [error])
            if is_socket and self.offers(_SOCKET_BATCHES):
                self.note_refusal(_SOCKET_BATCHES)
                return await self._exchange(calls, max_bytes)
            raise error
        if not all(isinstance(response, dict) for response in responses):
            raise UpstreamUnavailable(NOT_JSON_RPC)
        by_id = {
            response["id"]: response
            for response in responses
            if type(response.get("id")) is int
        }
        ids = [call["id"] for call in numbered]
        if len(responses) != len(ids) or by_id.keys() != set(ids):
            raise UpstreamUnavailable("the responses are not those of the calls")
        return self._noted(calls, [self._read(by_id[number]) for number in ids])

    def _noted(
        self, calls: Sequence[tuple[str, Sequence[Any]]], results: list[Any]
    ) -> list[Any]:
        """Note which of the called methods are refused, and return the results."""
        for (method, _), result in zip(calls, results, strict=True):
            if isinstance(result, MethodUnavailable):
                self.note_refusal(method)
        return results

    def _numbered(
        self, calls: Sequence[tuple[str, Sequence[Any]]]
    ) -> list[dict[str, Any]]:
        """Return calls as JSON-RPC objects with new ids."""
        return [
            {
                "jsonrpc": "2.0",
                "id": next(self._ids),
                "method": method,
                "params": list(params),
            }
            for method, params in calls
        ]

    def _open(self) -> HttpConnections | WebSocketConnection:
        """Return the connections to the upstream, which the first call creates."""
        if self._channel is None:
            self._address = address = Address(self._url, self._headers)
            if address.is_socket:
                self._channel = WebSocketConnection(
                    address,
                    open_seconds=self._timeout,
                    ping_seconds=self._ping_seconds,
                )
            else:
                self._channel = HttpConnections(address, open_seconds=self._timeout / 2)
        return self._channel

    @asynccontextmanager
    async def _limits(self) -> AsyncIterator[None]:
        """Limit the number of calls in flight and the time of each call."""
        try:
            async with asyncio.timeout(self._timeout), self._slots:
                yield
        except TimeoutError:
            raise UpstreamUnavailable(
                f"no response within {self._timeout:g} s", is_late=True
            ) from None

    def _read(self, response: dict[str, Any]) -> Any:
        """Return the result or the UpstreamError of a response object.

        Raises: UpstreamUnavailable if it is neither, or if a rate limit is exceeded.
        """
        error = response.get("error")
        if error is None and "result" in response:
            return response["result"]
        if not isinstance(error, dict):
            raise UpstreamUnavailable(NOT_JSON_RPC)
        code, message = error.get("code"), error.get("message")
        if type(code) is not int or code.bit_length() > 31:
            raise UpstreamUnavailable(NOT_JSON_RPC)
        if not isinstance(message, str):
            raise UpstreamUnavailable(NOT_JSON_RPC)
        if code in _RATE_LIMIT_CODES:
            raise UpstreamUnavailable(f"a rate limit is exceeded ({code})")
        assert self._address is not None
        message = self._address.hide(message)
        try:
            data = self._address.hide(error.get("data"))
        except ValueError:
            raise UpstreamUnavailable(NOT_JSON_RPC) from None
        if code in _METHOD_CODES or _METHOD_TEXTS.search(message):
            return MethodUnavailable(code, message, data)
        return UpstreamError(code, message, data)


def _is_error_without_id(response: Any) -> bool:
    """Return whether a response is an error of the request as a whole.

    Source: JSON-RPC 2.0, 5: the id is null if it could not be read
    """
    return (
        isinstance(response, dict)
        and response.get("id") is None
        and response.get("error") is not None
    )
