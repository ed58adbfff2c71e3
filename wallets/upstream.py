"""The node that takes a network's transactions, asked over JSON-RPC.

Its address may hold a secret: no error and no log line names it.
Source: https://ethereum.github.io/execution-apis/
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson

from wallets.signing.transactions import TRANSACTION_GAS, Market, Wanted

CALL_SECONDS = 10.0
"""For a call, from the connection to the last byte."""

MAX_ANSWER_BYTES = 2**20
"""Longest answer: a block without its transactions' objects is the longest by far."""

MAX_MESSAGE = 500
"""Characters of an error's message that are passed on."""

MAX_ERROR_DATA = 8 * 1024
"""Characters of an error's data, such as what a contract has reverted with."""

_QUANTITY = re.compile(r"0x(0|[1-9a-fA-F][0-9a-fA-F]{0,63})")
_METHOD_NOT_FOUND = -32601
_MARGIN = 4
"""A quarter more gas than was estimated: until then the state may be another one."""


class UpstreamAway(Exception):
    """Raised when the node does not answer, or with something that is no answer."""


class UpstreamRefused(Exception):
    """Raised when the node answers with an error.

    code, message, data: the error object's, data None where it has none.
    """

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


@dataclass(frozen=True, slots=True)
class Upstream:
    """A node by its address.

    Every method raises UpstreamAway and UpstreamRefused.
    """

    url: str = field(repr=False)

    async def chain_id(self) -> int:
        """Return the chain that it is a node of."""
        return await self._quantity("eth_chainId")

    async def market(self) -> Market:
        """Return what gas costs at its newest block."""
        block = await self.call("eth_getBlockByNumber", "latest", False)
        if not isinstance(block, dict):
            raise UpstreamAway("no newest block")
        if block.get("baseFeePerGas") is None:
            return Market(None, await self._quantity("eth_gasPrice"))
        base_fee = _read_quantity(block["baseFeePerGas"])
        try:
            return Market(base_fee, await self._quantity("eth_maxPriorityFeePerGas"))
        except UpstreamRefused as error:
            if error.code != _METHOD_NOT_FOUND:
                raise
        price = await self._quantity("eth_gasPrice")
        return Market(base_fee, max(price - base_fee, 0))

    async def gas(self, wanted: Wanted) -> int:
        """Return how much gas a transaction may use: what it says, else an estimate."""
        if wanted.gas is not None:
            return wanted.gas
        estimate = await self._quantity("eth_estimateGas", wanted.call())
        if estimate == TRANSACTION_GAS:
            return estimate
        return estimate + estimate // _MARGIN

    async def nonce(self, address: str) -> int:
        """Return an account's next nonce, after all that it has sent."""
        return await self._quantity("eth_getTransactionCount", address, "pending")

    async def send(self, raw: bytes) -> None:
        """Hand a signed transaction over; one that it has already is well."""
        try:
            await self.call("eth_sendRawTransaction", "0x" + raw.hex())
        except UpstreamRefused as error:
            if "already known" not in error.message:  # in geth's words
                raise

    async def knows(self, transaction_hash: str) -> bool:
        """Return whether it has a transaction, in a block or not yet."""
        found = await self.call("eth_getTransactionByHash", transaction_hash)
        return found is not None

    async def call(self, method: str, *params: Any) -> Any:
        """Return a call's result."""
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        try:
            async with asyncio.timeout(CALL_SECONDS):
                body = await self._post(orjson.dumps(call))
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise UpstreamAway(type(error).__name__) from error
        return _read_answer(body)

    async def _post(self, body: bytes) -> bytes:
        # An answer that was packed might be any length, and a proxy of the environment
        # is not meant for nodes.
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        client = httpx.AsyncClient(timeout=CALL_SECONDS, trust_env=False)
        async with (
            client,
            client.stream("POST", self.url, content=body, headers=headers) as response,
        ):
            found = bytearray()
            async for chunk in response.aiter_raw():
                found += chunk
                if len(found) > MAX_ANSWER_BYTES:
                    raise UpstreamAway("a longer answer than any")
            return bytes(found)

    async def _quantity(self, method: str, *params: Any) -> int:
        return _read_quantity(await self.call(method, *params))


def _read_answer(body: bytes) -> Any:
    """Return the result in an answer, whatever its HTTP status was."""
    try:
        answer = orjson.loads(body)
    except ValueError as error:
        raise UpstreamAway("no JSON") from error
    if not isinstance(answer, dict):
        raise UpstreamAway("no JSON-RPC")
    failure = answer.get("error")
    if isinstance(failure, dict):
        code, message = failure.get("code"), failure.get("message")
        if type(code) is int and isinstance(message, str):
            data = failure.get("data")
            if isinstance(data, str) and len(data) <= MAX_ERROR_DATA:
                data = _kept(data)
            else:
                data = None
            raise UpstreamRefused(code, _kept(message[:MAX_MESSAGE]), data)
    if failure is not None or "result" not in answer:
        raise UpstreamAway("no JSON-RPC")
    return answer["result"]


def _kept(text: str) -> str:
    """Return a text as the database can keep it, which has no zero characters."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _read_quantity(value: Any) -> int:
    if not isinstance(value, str) or not _QUANTITY.fullmatch(value):
        raise UpstreamAway("no quantity")
    return int(value, 16)
