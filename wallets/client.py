"""A library with which programs and bots connect to the wallet as dapps.

    token = await pair("https://wallet.example", "BCDF-GHJK-LMNP")  # once; store it
    token = await renew("https://wallet.example", token)  # at each start; store it, too
    async with await connect("wss://wallet.example/ws/dapp", token) as wallet:
        session = await wallet.call("wallet_createSession", {"optionalScopes": …})
        number = await wallet.invoke("eip155:1", "eth_blockNumber")
        subscription = await wallet.invoke("eip155:1", "eth_subscribe", "newHeads")
        async for event in wallet.events():
            …

It needs `websockets` and nothing else of this project.
"""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Mapping
from itertools import count
from types import TracebackType
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import ConnectionClosed

MAX_MESSAGE_BYTES = 16 * 2**20
"""Longest message accepted; the longest response has half of that."""

MAX_EVENTS = 10_000
"""Limit of unread events; beyond it the connection is closed."""


class CallFailed(Exception):
    """Raised when a call returns an error.

    code, message, data: members of the error object. `data` is None if it is absent.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class Disconnected(Exception):
    """Raised by pending calls and `events` when the connection is closed.

    code: the WebSocket's close code, 1006 when the connection broke.
    """

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"disconnected: {code} {reason}".rstrip())
        self.code = code


class PairingRefused(Exception):
    """Raised for a code that is wrong, used or expired, or after too many wrong codes.

    Also raised for a token that the user has revoked, or that has expired after months
    without use.
    """


class WalletClient:
    """One connection. Calls may run concurrently; `events` supports one reader."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self._ids = count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self.received: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._over: Disconnected | None = None
        self.reader = asyncio.create_task(self._read())

    async def __aenter__(self) -> WalletClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def call(self, method: str, params: Any = None) -> Any:
        """Call one of the wallet's methods and return its result.

        params: None sends none. wallet_createSession waits for the user, for minutes.
        Raises: CallFailed, Disconnected.
        """
        if self._over is not None:
            raise self._over
        number = next(self._ids)
        message = {"jsonrpc": "2.0", "id": number, "method": method}
        if params is not None:
            message["params"] = params
        future = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            await self.socket.send(json.dumps(message))
            return await future
        except ConnectionClosed as error:
            raise await self._ended() from error
        finally:
            self._waiting.pop(number, None)

    async def invoke(self, scope: str, method: str, *params: Any) -> Any:
        """Call a method that the session allows on a scope, and return its result.

        scope: `eip155:1`, `wallet:eip155`.
        Raises: CallFailed, Disconnected.
        """
        request = {"method": method, "params": list(params)}
        return await self.call(
            "wallet_invokeMethod", {"scope": scope, "request": request}
        )

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """Yield wallet_notify and wallet_sessionChanged messages as they arrive.

        Raises: Disconnected, after the last one.
        """
        while True:
            yield await self.next_event()

    async def next_event(self) -> dict[str, Any]:
        """Return the next event.

        Raises: Disconnected.
        """
        event = await self.received.get()
        if event is None:
            self.received.put_nowait(None)  # for later calls
            raise self._over or Disconnected(1006, "")
        return event

    async def close(self) -> None:
        """Close the connection."""
        await self.socket.close()
        await self.reader

    async def _ended(self) -> Disconnected:
        """Wait for the end of the connection and return it as an exception."""
        await self.reader
        return self._over or Disconnected(1006, "")

    async def _read(self) -> None:
        try:
            async for frame in self.socket:
                self._take(json.loads(frame))
        except ConnectionClosed:
            pass
        except asyncio.QueueFull:
            await self.socket.close(1008, "events are not read")
        code = self.socket.close_code or 1006
        self._over = Disconnected(code, self.socket.close_reason or "")
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(self._over)
        self.received.put_nowait(None)

    def _take(self, message: Mapping[str, Any]) -> None:
        if "id" not in message:
            # The queue itself has no bound, so that the end marker always fits.
            if self.received.qsize() == MAX_EVENTS:
                raise asyncio.QueueFull
            self.received.put_nowait(dict(message))
            return
        future = self._waiting.get(message["id"])
        if future is None or future.done():
            return  # the call was cancelled
        error = message.get("error")
        if error is None:
            future.set_result(message["result"])
        else:
            failure = CallFailed(error["code"], error["message"], error.get("data"))
            future.set_exception(failure)


async def connect(
    url: str, token: str, *, origin: str | None = None, in_subprotocol: bool = False
) -> WalletClient:
    """Connect to a wallet.

    url: `wss://wallet.example/ws/dapp`.
    token: from `pair` or `renew`.
    origin, in_subprotocol: the Origin header, and whether the token is sent as a
        subprotocol, as pages have to; for programs that act for a page.
    Raises: websockets.exceptions.InvalidStatus when the wallet refuses; OSError.
    """
    headers = {} if in_subprotocol else {"Authorization": f"Bearer {token}"}
    names: list[Any] = ["multichain.v1"]
    if in_subprotocol:
        names.append(f"token.{token}")
    socket = await open_socket(
        url,
        subprotocols=names,
        additional_headers=headers,
        origin=origin,  # type: ignore[arg-type]  # a NewType of str
        max_size=MAX_MESSAGE_BYTES,
        compression=None,
    )
    return WalletClient(socket)


async def pair(wallet: str, code: str) -> str:
    """Exchange the code that the user has read on their wallet's page for a token.

    wallet: its URL, `https://wallet.example`.
    Raises: PairingRefused; OSError when the wallet can't be reached.
    """
    return await asyncio.to_thread(_exchange, wallet, code=code)


async def renew(wallet: str, token: str) -> str:
    """Exchange a token for a new one; a token younger than a day is returned unchanged.

    Store the new token before using it, because its first use invalidates the old one.
    Raises: PairingRefused; OSError when the wallet can't be reached.
    """
    return await asyncio.to_thread(_exchange, wallet, token=token)


def _exchange(wallet: str, **form: str) -> str:
    url, body = f"{wallet}/wallet/token", urllib.parse.urlencode(form).encode()
    try:
        with urllib.request.urlopen(url, body, timeout=30) as response:
            return str(json.load(response)["token"])
    except urllib.error.HTTPError as error:
        with error:
            if error.code not in (400, 403):
                raise
            raise PairingRefused(json.load(error).get("error", "")) from error
