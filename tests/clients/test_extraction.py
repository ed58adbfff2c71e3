"""A program that copies a whole chain as cryo does, with 100 requests at a time.

Source: https://github.com/paradigmxyz/cryo, whose default chunks are 1,000 blocks; the
chunks here are smaller, but still several rounds of requests each
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any

import pytest
from hexbytes import HexBytes
from web3 import AsyncWeb3, Web3
from web3.providers import AsyncHTTPProvider
from web3.types import RPCEndpoint

from evm.hexadecimal import to_hex
from tests.clients.token_chain import (
    BOB,
    FIRST,
    SUPPLY,
    TokenChain,
    balance_slot,
)
from tests.support.coroutines import scenario

CONCURRENT = 100
CHUNK = 150


@pytest.fixture(scope="module")
def tokens(module_db: None) -> TokenChain:
    """Return a chain that is longer than a chunk."""
    return TokenChain(CHUNK + 30)


class Extractor:
    """Sends CONCURRENT requests at a time to a node."""

    def __init__(self, w3: AsyncWeb3[Any]) -> None:
        self._w3 = w3
        self._places = asyncio.Semaphore(CONCURRENT)

    async def all(self, requests: Iterable[Awaitable[Any]]) -> list[Any]:
        """Return the results of requests in their order."""

        async def one(request: Awaitable[Any]) -> Any:
            async with self._places:
                return await request

        return await asyncio.gather(*map(one, requests))

    async def result(self, method: str, *params: Any) -> Any:
        """Return the result of a method that web3.py does not know."""
        answer = await self._w3.provider.make_request(RPCEndpoint(method), params)
        assert "result" in answer, answer
        return answer["result"]


async def extract_chunk(w3: AsyncWeb3[Any], tokens: TokenChain, first: int) -> None:
    """Copy and check blocks, receipts, logs, traces and state changes of a chunk."""
    numbers = range(first, min(first + CHUNK, tokens.head + 1))
    expected = [tokens.blocks[number - 1] for number in numbers]
    extractor = Extractor(w3)
    blocks, receipts, traces, replays, (logs,) = await asyncio.gather(
        extractor.all(w3.eth.get_block(number, True) for number in numbers),
        extractor.all(w3.eth.get_block_receipts(number) for number in numbers),
        extractor.all(
            extractor.result("trace_block", hex(number)) for number in numbers
        ),
        extractor.all(
            extractor.result(
                "trace_replayBlockTransactions", hex(number), ["stateDiff"]
            )
            for number in numbers
        ),
        extractor.all(
            [w3.eth.get_logs({"fromBlock": numbers[0], "toBlock": numbers[-1]})]
        ),
    )
    assert [block["hash"] for block in blocks] == [
        HexBytes(block.header.hash) for block in expected
    ]
    assert [sum(each["gasUsed"] for each in found) for found in receipts] == [
        block.header.gas_used for block in expected
    ]
    assert logs == [
        log for found in receipts for receipt in found for log in receipt["logs"]
    ]
    values = [int.from_bytes(log["data"]) for log in logs]
    assert values == [SUPPLY if n < FIRST else n for n in numbers]
    slot = f"0x{balance_slot(BOB.address):064x}"
    for block, entries, found in zip(expected, traces, replays, strict=True):
        hashes = [to_hex(each.hash) for each in block.transactions]
        assert [entry["transactionHash"] for entry in entries] == hashes
        assert [each["transactionHash"] for each in found] == hashes
        if block.header.number >= FIRST:
            changed = found[0]["stateDiff"][to_hex(tokens.token)]["storage"][slot]
            (change,) = changed.values()
            after = change["to"] if isinstance(change, dict) else change
            assert int(after, 16) == tokens.balance(block.header.number)


@scenario
async def test_whole_chain_is_copied_in_chunks(
    tokens: TokenChain, tokens_url: str
) -> None:
    w3 = AsyncWeb3(AsyncHTTPProvider(tokens_url))
    try:
        for first in range(1, tokens.head + 1, CHUNK):
            await extract_chunk(w3, tokens, first)
    finally:
        await w3.provider.disconnect()


@scenario
async def test_whole_history_of_a_balance_is_copied(
    tokens: TokenChain, tokens_url: str
) -> None:
    """cryo also makes datasets of balances and of the results of calls."""
    w3 = AsyncWeb3(AsyncHTTPProvider(tokens_url))
    extractor = Extractor(w3)
    bob = Web3.to_checksum_address(BOB.address)
    token = Web3.to_checksum_address(tokens.token)
    data = HexBytes(bytes.fromhex("70a08231") + BOB.address.rjust(32, b"\0"))
    call: Any = {"to": token, "data": data}  # balanceOf(address)
    numbers = range(FIRST, tokens.head + 1)
    try:
        balances = await extractor.all(
            w3.eth.get_balance(bob, number) for number in numbers
        )
        results = await extractor.all(w3.eth.call(call, number) for number in numbers)
    finally:
        await w3.provider.disconnect()
    expected = [tokens.balance(number) for number in numbers]
    assert [int.from_bytes(each) for each in results] == expected
    assert balances == [10 * each for each in expected]
