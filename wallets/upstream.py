"""Calls of the wallet to the nodes to which it sends a network's transactions.

Source: https://ethereum.github.io/execution-apis/
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from nodeapi.relay.relay import submit
from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.errors import UpstreamError, UpstreamUnavailable
from nodeapi.upstreams.quantities import quantity
from wallets.signing.transactions import TRANSACTION_GAS, GasPrices, TransactionRequest

CALL_SECONDS = 10.0
"""Time limit of a call, from connecting to the last byte."""

READ_SECONDS = 20.0
"""Time limit of `first_available`."""

MAX_MESSAGE = 500
"""Characters of an error's message that are passed on to the dapp."""

MAX_ERROR_DATA = 8 * 1024
"""Longest error data that is passed on, such as a contract's revert data."""

PRICE_BITS = 128
"""Maximum size of a price of gas in wei, so that fees have at most 256 bits."""

_METHOD_NOT_FOUND = -32601
_MARGIN = 4
"""A quarter of the estimate is added, because the state may change before execution."""


T = TypeVar("T")
Node = TypeVar("Node", bound="ChainNode")


class UpstreamRefused(Exception):
    """Raised when the node returns an error.

    code, message, data: members of the error object. `data` is None if it is absent.
    """

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class ChainNode(ABC):
    """A node of a chain, reached over HTTP or within this service.

    Every method raises UpstreamUnavailable if the node does not respond, and
    UpstreamRefused if it returns an error.
    """

    @abstractmethod
    async def call(self, method: str, *params: Any) -> Any:
        """Call a method of the node, and return its result."""

    async def chain_id(self) -> int:
        """Return the node's chain id."""
        return await self._quantity(64, "eth_chainId")

    async def prices(self) -> GasPrices:
        """Return the base fee and the usual price of gas at the newest block, in wei."""
        block = await self.call("eth_getBlockByNumber", "latest", False)
        if not isinstance(block, dict):
            raise UpstreamUnavailable("no newest block")
        if block.get("baseFeePerGas") is None:
            return GasPrices(None, await self._quantity(PRICE_BITS, "eth_gasPrice"))
        base_fee = _read_quantity(block["baseFeePerGas"], PRICE_BITS)
        try:
            tip = await self._quantity(PRICE_BITS, "eth_maxPriorityFeePerGas")
            return GasPrices(base_fee, tip)
        except UpstreamRefused as error:
            if error.code != _METHOD_NOT_FOUND:
                raise
        price = await self._quantity(PRICE_BITS, "eth_gasPrice")
        return GasPrices(base_fee, max(price - base_fee, 0))

    async def gas(self, wanted: TransactionRequest) -> int:
        """Return a transaction's gas limit: the requested one, else an estimate."""
        if wanted.gas is not None:
            return wanted.gas
        estimate = await self._quantity(62, "eth_estimateGas", wanted.call())
        if estimate == TRANSACTION_GAS:
            return estimate
        return estimate + estimate // _MARGIN

    async def nonce(self, address: str) -> int:
        """Return an account's next nonce, pending transactions included."""
        return await self._quantity(64, "eth_getTransactionCount", address, "pending")

    async def knows(self, transaction_hash: str) -> bool:
        """Return whether the node has a transaction, pending or in a block."""
        found = await self.call("eth_getTransactionByHash", transaction_hash)
        return found is not None

    async def _quantity(self, bits: int, method: str, *params: Any) -> int:
        return _read_quantity(await self.call(method, *params), bits)


@dataclass(frozen=True, slots=True)
class Upstream(ChainNode):
    """A node's JSON-RPC endpoint. No text contains the URL or a header."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    async def send(self, raw: bytes) -> None:
        """Send a signed transaction. Nothing happens if the node has it already."""
        async with self._client() as client:
            await submit(client, raw)

    async def call(self, method: str, *params: Any) -> Any:
        """Call a method of the node, and return its result."""
        async with self._client() as client:
            return await client.call(method, *params)

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[UpstreamClient]:
        """Yield a client. Errors that it raises are converted to UpstreamRefused."""
        client = UpstreamClient(self.url, self.headers, timeout=CALL_SECONDS)
        try:
            async with client:
                yield client
        except UpstreamError as error:
            data = error.data
            if isinstance(data, str) and len(data) <= MAX_ERROR_DATA:
                data = _kept(data)
            else:
                data = None
            raise UpstreamRefused(
                error.code, _kept(error.message[:MAX_MESSAGE]), data
            ) from None


async def first_available(
    upstreams: Sequence[Node], ask: Callable[[Node], Awaitable[T]]
) -> T:
    """Return the answer of the first node that responds.

    Raises: UpstreamRefused; UpstreamUnavailable if none responds in READ_SECONDS.
    """
    failure = UpstreamUnavailable("no upstream")
    try:
        async with asyncio.timeout(READ_SECONDS):
            for upstream in upstreams:
                try:
                    return await ask(upstream)
                except UpstreamUnavailable as error:
                    failure = error
    except TimeoutError:
        pass
    raise failure


async def send_to_all(
    upstreams: Sequence[Upstream], raw: bytes, transaction_hash: str
) -> None:
    """Send a signed transaction to all upstreams, and return when all have answered.

    One that accepts the transaction is enough, and so is one that has it although its
    answer was lost.

    Raises: UpstreamRefused, the first upstream's, if none accepts it;
        UpstreamUnavailable if none has answered.
    """
    sent = await asyncio.gather(
        *(upstream.send(raw) for upstream in upstreams), return_exceptions=True
    )
    silent = [
        upstream
        for upstream, failure in zip(upstreams, sent, strict=True)
        if isinstance(failure, UpstreamUnavailable)
    ]
    if None in sent:
        return
    found = await asyncio.gather(
        *(upstream.knows(transaction_hash) for upstream in silent),
        return_exceptions=True,
    )
    if True in found:
        return
    for failure in (*sent, *found):
        if isinstance(failure, UpstreamRefused):
            raise failure
    raise UpstreamUnavailable("no upstream has responded")


def _kept(text: str) -> str:
    """Return a text without zero characters, which the database can't store."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _read_quantity(value: Any, bits: int) -> int:
    try:
        return quantity(value, bits)
    except ValueError as error:
        raise UpstreamUnavailable(str(error)) from None
