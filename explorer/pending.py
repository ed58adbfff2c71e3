"""Pending transactions on pages, read from the upstreams of a network.

Pages run in threads, and the relay in the event loop of the process. `with_pending` puts
a `PendingReader` into the scope of the pages' ASGI application. Without it, as in tests
of single views, nothing is pending.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from django.http import HttpRequest

from abi.addresses import checksummed
from abi.batches import no_abi, selectors_in
from explorer.abis import Abis
from explorer.arguments import MAX_LINES, CallText, call_text
from explorer.summaries import TYPES
from jsonrpc.errors import RpcError
from legible import words
from networks.directory import Directory, NetworkView
from networks.models import Network
from nodeapi.relay.relay import Relay
from postgres.errors import Unavailable

SCOPE_KEY = "portcullis.pending"

COUNT_SECONDS = 0.5
LOOK_UP_SECONDS = 5.0
"""Time limits for waiting for upstreams: for the count of pending transactions on a page,
and for the transaction of a page."""

SILENT_SECONDS = 5.0
"""Time for which the count is not read again after a timeout of the upstreams. Otherwise
each page would wait for them."""

_PAYER = 0
"""Used instead of an API key's id. All pages of a process share its limit of calls in
flight."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PendingTransaction:
    """A pending transaction, formatted as text."""

    hash: str
    type: str
    sender: str
    to: str
    """Empty for a contract creation."""
    nonce: str
    value: str
    selector: str
    call: CallText | None
    """The decoded input; None if the function is unknown."""
    gas: str
    fee: str
    """Highest price per gas."""


class PendingReader:
    """Reads pending transactions for code that runs in threads."""

    def __init__(
        self, relay: Relay, directory: Directory, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._relay = relay
        self._directory = directory
        self._loop = loop
        self._silent_until: dict[int, float] = {}
        """Network id → monotonic time until which the count is unknown."""

    def count(self, network_id: int) -> int | None:
        """Return the number of transactions in the pending block, or None if unknown."""
        if time.monotonic() < self._silent_until.get(network_id, 0.0):
            return None
        try:
            found = self._wait(self._block(network_id), COUNT_SECONDS)
        except TimeoutError:
            self._silent_until[network_id] = time.monotonic() + SILENT_SECONDS
            return None
        return None if found is None else len(found)

    def transaction(self, network_id: int, name: bytes) -> bytes | None:
        """Return a pending transaction's object as JSON, or None if it is not found.

        name: its hash.
        """
        with suppress(TimeoutError):
            return self._wait(self._transaction(network_id, name), LOOK_UP_SECONDS)
        return None

    def _wait(self, reading: Coroutine[Any, Any, T | None], seconds: float) -> T | None:
        """Return the result, or None after an upstream's error. Raises: TimeoutError."""
        future: Future[T | None] = asyncio.run_coroutine_threadsafe(reading, self._loop)
        try:
            return future.result(seconds)
        except (RpcError, Unavailable):
            return None
        finally:
            future.cancel()

    async def _block(self, network_id: int) -> tuple[bytes, ...] | None:
        network = self._followed(network_id)
        if network is None:
            return None
        block = await self._relay.pending_block(network, _PAYER)
        return None if block is None else block.transactions

    async def _transaction(self, network_id: int, name: bytes) -> bytes | None:
        network = self._directory.get(network_id)
        if network is None:
            return None
        return await self._relay.pending_transaction(network, name, _PAYER)

    def _followed(self, network_id: int) -> NetworkView | None:
        """Return a network that has upstreams. Raises: Unavailable."""
        network = self._directory.get(network_id)
        return network if network is not None and network.upstreams else None


def with_pending(
    pages: Callable[..., Awaitable[None]], relay: Relay, directory: Directory
) -> Callable[..., Awaitable[None]]:
    """Return an ASGI application whose pages can read pending transactions."""
    reader: PendingReader | None = None

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        nonlocal reader
        if reader is None:  # the event loop is known now
            reader = PendingReader(relay, directory, asyncio.get_running_loop())
        await pages({**scope, SCOPE_KEY: reader}, receive, send)

    return answer


def pending_count(request: HttpRequest, network: Network) -> int | None:
    """Return the number of transactions in the pending block, None if unknown."""
    reader = _reader(request)
    return None if reader is None else reader.count(network.pk)


def pending_transaction(
    request: HttpRequest, network: Network, name: bytes
) -> PendingTransaction | None:
    """Return a pending transaction, or None if it is unknown. name: its hash."""
    reader = _reader(request)
    document = None if reader is None else reader.transaction(network.pk, name)
    if document is None:
        return None
    with suppress(ValueError, KeyError, TypeError):  # an upstream's object
        return shown(name, orjson.loads(document), Abis(network, request.user))
    return None


def shown(
    name: bytes, document: dict[str, Any], abis: Abis | None = None
) -> PendingTransaction:
    """Format a transaction object.

    name: the transaction's hash. abis: the uploaded definitions, which are read.
    Raises: ValueError, KeyError, TypeError if a member is missing or malformed.
    """
    numbers = {key: int(document[key], 16) for key in ("type", "nonce", "value", "gas")}
    price = document.get("maxFeePerGas") or document["gasPrice"]
    to, data = document.get("to"), bytes.fromhex(document["input"][2:])
    kind = numbers["type"]
    call = None
    if to is not None:
        target = bytes.fromhex(to[2:])
        if abis is not None:
            abis.read(selectors_in(data))
        abi_of = no_abi if abis is None else abis.of
        call = call_text(data, target, abi_of, MAX_LINES)
    return PendingTransaction(
        hash=f"0x{name.hex()}",
        type=f"{kind}, {TYPES.get(kind, 'unknown')}",
        sender=_address(document["from"]),
        to="" if to is None else _address(to),
        nonce=words.number(numbers["nonce"]),
        value=words.ether(numbers["value"]),
        selector="" if to is None else words.selector(data),
        call=call,
        gas=words.number(numbers["gas"]),
        fee=words.gwei(int(price, 16)),
    )


def _address(text: str) -> str:
    return checksummed(bytes.fromhex(text[2:]))


def _reader(request: HttpRequest) -> PendingReader | None:
    scope: dict[str, Any] = getattr(request, "scope", {})
    return scope.get(SCOPE_KEY)
