"""Receipts from an upstream, which the header's receipts root verifies."""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from evm.blocks import Block
from evm.receipts import Receipt
from evm.trie_roots import ordered_root
from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.errors import UnusableAnswer, UpstreamError
from nodeapi.upstreams.receipts import block_receipts, decode_receipts
from tests.golden import recording
from tests.golden.chains import CHAINS
from tests.support.coroutines import scenario
from tests.support.upstream_server import UpstreamServer, refuse
from tests.support.waiting import in_time

COMMITTED = ("type", "status", "root", "cumulativeGasUsed", "logs")
WRONG: list[Any] = [None, 7, True, "", "0x", "zz", "0x2", {}, [], [7], [None], [{}]]


Receipts = list[dict[str, Any]]
"""The receipts of a block, as geth returned them."""


@cache
def geth_receipts(chain: str) -> list[tuple[Block, Receipts]]:
    """Return the blocks of a chain, each with its receipts."""
    recorded = recording.read(chain, ["blocks"])
    names = {block: f"0x{block.header.hash.hex()}" for block in CHAINS[chain]().blocks}
    return [
        (block, recorded.find("eth_getBlockReceipts", name)["result"])
        for block, name in names.items()
    ]


@cache
def example() -> tuple[Block, Receipts]:
    """Return a small block with some logs, and its receipts."""
    found = geth_receipts("sample")
    with_logs = [pair for pair in found if sum(len(r["logs"]) for r in pair[1]) > 2]
    return min(with_logs, key=lambda pair: len(str(pair[1])))


def ask(node: UpstreamServer) -> list[Receipt]:
    block, _ = example()
    hashes = [transaction.hash for transaction in block.transactions]

    async def scenario() -> list[Receipt]:
        async with UpstreamClient(node.http_url) as client:
            root = block.header.receipts_root
            return await in_time(
                block_receipts(client, block.header.hash, root, hashes)
            )

    return asyncio.run(scenario())


@pytest.mark.parametrize("chain", ["sample", "amsterdam"])
def test_geth_receipts_have_the_header_s_root(chain: str) -> None:
    kinds = set()
    for block, documents in geth_receipts(chain):
        receipts = decode_receipts(documents, block.header.receipts_root)
        kinds |= {(each.type, each.status is None) for each in receipts}
        assert [hex(each.gas_used) for each in receipts] == [
            each["gasUsed"] for each in documents
        ]
        blooms = [f"0x{each.bloom:0512x}" for each in receipts]
        assert blooms == [each["logsBloom"] for each in documents]
    assert len(kinds) >= {"sample": 5, "amsterdam": 3}[chain]


def test_receipts_are_read_at_once_or_one_by_one(server: UpstreamServer) -> None:
    block, documents = example()
    expected = decode_receipts(documents, block.header.receipts_root)
    server.methods["eth_getBlockReceipts"] = documents
    assert ask(server) == expected
    assert server.calls == [("eth_getBlockReceipts", [f"0x{block.header.hash.hex()}"])]
    by_hash = {each["transactionHash"]: each for each in documents}
    server.methods["eth_getTransactionReceipt"] = by_hash.get
    for code in (-32601, -32602):
        server.methods["eth_getBlockReceipts"] = refuse(code, "no")
        assert ask(server) == expected
    server.methods["eth_getTransactionReceipt"] = refuse(-32000, "indexing")
    with pytest.raises(UpstreamError, match="indexing"):
        ask(server)
    for answer in (refuse(4444, "pruned"), None):
        server.methods["eth_getBlockReceipts"] = answer
        with pytest.raises(UpstreamError, match=r"pruned|no receipts of the block"):
            ask(server)


@scenario
async def test_a_block_without_transactions_needs_no_request(
    server: UpstreamServer,
) -> None:
    header = example()[0].header
    async with UpstreamClient(server.http_url) as client:
        assert not await block_receipts(client, header.hash, ordered_root([]), [])
        with pytest.raises(UnusableAnswer):
            await block_receipts(client, header.hash, header.receipts_root, [])
    assert server.calls == []


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values that the root commits to."""
    for at, item in value.items() if isinstance(value, dict) else enumerate(value):
        committed = COMMITTED if len(above) == 1 else ("address", "topics", "data")
        if isinstance(at, str) and at not in committed:
            continue
        yield (*above, at)
        if isinstance(item, dict | list):
            yield from places(item, (*above, at))


def test_every_change_is_noticed() -> None:
    block, given = example()
    root = block.header.receipts_root
    chance = random.Random(1)
    changes = 0
    for *path, last in places(given):
        for wrong in WRONG:
            documents = copy.deepcopy(given)
            inside: Any = documents
            for at in path:
                inside = inside[at]
            if inside[last] == wrong:
                continue
            text = inside[last]
            if isinstance(text, str) and wrong is None and len(text) > 2:
                at = chance.randrange(2, len(text))
                digit = format(15 - int(text[at], 16), "x")
                inside[last] = text[:at] + digit + text[at + 1 :]
            else:
                inside[last] = wrong
            with pytest.raises(UnusableAnswer):
                decode_receipts(documents, root)
            changes += 1
    assert changes > 300
    for wrong in (None, 7, {}, given[1:], given[::-1], given * 2):
        with pytest.raises(UnusableAnswer):
            decode_receipts(wrong, root)
