from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from evm import rlp
from evm.blocks import decode_block
from evm.headers import Header
from evm.trie_roots import ordered_root
from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.errors import (
    UnknownTransactionType,
    UpstreamError,
    UpstreamUnavailable,
    WrongBlock,
)
from nodeapi.upstreams.source import (
    MAX_HEADER_BYTES,
    PRUNED,
    BlockRef,
    BlockSource,
    RawMode,
)
from samples.node import Refused
from tests.golden.chains import CHAINS
from tests.nodeapi.upstreams.test_block_rlp import Case, case_of, other
from tests.support.upstream_server import (
    UpstreamServer,
    refuse,
    status,
)
from tests.support.waiting import in_time

OURS = [case_of(block) for block in CHAINS["sample"]().blocks[:60]]
CASES = {"0x" + case.hash.hex(): case for case in OURS}
UNCLED = next(case for case in OURS if case.uncles)
PLAIN = OURS[3:9]
NOT_FOUND = refuse(-32000, "block not found")


def block_by_hash(name: str, full: bool) -> dict[str, Any] | None:
    if name not in CASES:
        return None
    document = CASES[name].document
    if not full:
        hashes = [each["hash"] for each in document["transactions"]]
        document = document | {"transactions": hashes}
    return document


def block_by_number(name: str, full: bool) -> dict[str, Any] | None:
    for case_hash, case in CASES.items():
        if case.document["number"] == name:
            return block_by_hash(case_hash, full)
    return None


def raw_by_hash(name: str) -> str:
    if name not in CASES:
        raise Refused(-32000, f"block {name} not found")
    return "0x" + CASES[name].raw.hex()


def raw_by_number(name: str) -> str | None:
    if len(name) == 66:
        raise Refused(-32602, "Invalid block, unable to parse RLP")
    document = block_by_number(name, False)
    return None if document is None else raw_by_hash(document["hash"])


@pytest.fixture
def node(server: UpstreamServer) -> UpstreamServer:
    """Run an upstream that behaves like geth."""
    server.methods |= {
        "eth_getBlockByHash": block_by_hash,
        "eth_getBlockByNumber": block_by_number,
        "eth_getUncleByBlockHashAndIndex": lambda name, index: CASES[name].uncles[
            int(index, 16)
        ],
        "debug_getRawBlock": raw_by_hash,
    }
    return server


def read(
    node: UpstreamServer, work: Callable[[BlockSource], Awaitable[Any]], url: str = ""
) -> Any:
    async def scenario() -> Any:
        async with UpstreamClient(url or node.http_url) as client:
            return await in_time(work(BlockSource(client)))

    return asyncio.run(scenario())


async def all_of(source: BlockSource, wanted: list[Case]) -> None:
    for case in wanted:
        number = int(case.document["number"], 16)
        assert await source.block(case.hash, number) == case.raw


# Blocks


def test_blocks_are_read_raw(node: UpstreamServer, scheme: str):
    read(node, lambda source: all_of(source, PLAIN), node.url(scheme))
    assert {method for method, _ in node.calls} == {"debug_getRawBlock"}


@pytest.mark.parametrize("code", [-32601, -32604])
def test_blocks_are_rebuilt_without_the_debug_namespace(
    node: UpstreamServer, scheme: str, code: int
):
    node.methods["debug_getRawBlock"] = refuse(code, "no such method")
    read(node, lambda source: all_of(source, [*PLAIN, UNCLED]), node.url(scheme))
    assert node.count("debug_getRawBlock") == 1
    assert node.count("eth_getUncleByBlockHashAndIndex") == len(UNCLED.uncles)


@pytest.mark.parametrize("number", [401, 403, 404, 405])
def test_blocks_are_rebuilt_if_a_gateway_refuses_the_method(
    node: UpstreamServer, number: int
):
    node.faults.append(status(number, b"no"))
    read(node, lambda source: all_of(source, PLAIN))
    assert node.count("debug_getRawBlock") == 1


def test_blocks_are_read_by_number_where_hashes_are_refused(node: UpstreamServer):
    node.methods["debug_getRawBlock"] = raw_by_number

    async def scenario(source: BlockSource) -> None:
        await all_of(source, PLAIN)
        assert source.raw_mode == RawMode.BY_NUMBER
        # A block is rebuilt if its number is unknown or belongs to a sibling.
        assert await source.block(PLAIN[0].hash) == PLAIN[0].raw
        assert await source.block(PLAIN[0].hash, 2) == PLAIN[0].raw
        await all_of(source, PLAIN)
        assert source.raw_mode == RawMode.BY_NUMBER

    read(node, scenario)
    assert node.count("eth_getBlockByHash") == 3


@pytest.mark.parametrize("answer", [None, "0x", NOT_FOUND, refuse(5, "x")])
def test_raw_blocks_that_never_come_are_not_asked_for_again(
    node: UpstreamServer, answer: Any
):
    node.methods["debug_getRawBlock"] = answer
    read(node, lambda source: all_of(source, OURS[:20]))
    assert node.count("debug_getRawBlock") == 6  # three by hash, three by number


def test_a_raw_block_that_is_missing_once_changes_nothing(node: UpstreamServer):
    answers = iter([None, raw_by_hash] * 10)

    def sometimes(name: str) -> str | None:
        answer = next(answers)
        return None if answer is None else answer(name)

    node.methods["debug_getRawBlock"] = sometimes
    read(node, lambda source: all_of(source, OURS[:20]))
    assert node.count("debug_getRawBlock") == 20


def test_unknown_block_is_none(node: UpstreamServer):
    async def scenario(source: BlockSource) -> None:
        for _ in range(5):
            assert await source.block(b"\x01" * 32) is None
        assert await source.reference(b"\x01" * 32) is None
        assert await source.at(10**6) is None
        assert source.raw_mode == RawMode.BY_HASH

    read(node, scenario)


def test_deleted_block_has_its_own_error(node: UpstreamServer):
    pruned = refuse(PRUNED, "pruned history unavailable")
    node.methods["debug_getRawBlock"] = pruned
    for by_hash in (pruned, None):
        node.methods["eth_getBlockByHash"] = by_hash
        with pytest.raises(UpstreamError) as caught:
            read(node, lambda source: source.block(PLAIN[0].hash))
        assert caught.value.code == PRUNED


@pytest.mark.parametrize(
    "answer",
    {
        "another block": "0x" + PLAIN[1].raw.hex(),
        "altered": "0x" + (PLAIN[0].raw[:-1] + b"\x55").hex(),
        "cut": "0x" + PLAIN[0].raw[:-1].hex(),
        "no data": "latest",
        "odd": "0x123",
        "number": 5,
        "list": [],
    }.values(),
)
def test_raw_block_that_is_another_one_is_wrong(node: UpstreamServer, answer: Any):
    node.methods["debug_getRawBlock"] = answer
    with pytest.raises(WrongBlock):
        read(node, lambda source: source.block(PLAIN[0].hash))


OTHER_DOCUMENTS = {
    "another block": PLAIN[1].document,
    "altered": PLAIN[0].document | {"stateRoot": "0x" + "00" * 32},
    "empty": {},
    "list": [],
    "text": "latest",
    "number": 5,
}


@pytest.mark.parametrize("name", OTHER_DOCUMENTS)
def test_document_of_another_block_is_wrong(node: UpstreamServer, name: str):
    del node.methods["debug_getRawBlock"]
    node.methods["eth_getBlockByHash"] = OTHER_DOCUMENTS[name]
    for work in (
        lambda source: source.block(PLAIN[0].hash),
        lambda source: source.reference(PLAIN[0].hash),
    ):
        with pytest.raises(WrongBlock):
            read(node, work)


def test_document_without_transaction_objects_is_wrong(node: UpstreamServer):
    del node.methods["debug_getRawBlock"]
    node.methods["eth_getBlockByHash"] = lambda name, _: block_by_hash(name, False)
    case = next(case for case in OURS if case.document["transactions"])
    with pytest.raises(WrongBlock, match="transactions"):
        read(node, lambda source: source.block(case.hash))


@pytest.mark.parametrize("answer", [None, [], {}, UNCLED.document])
def test_uncle_that_is_another_block_is_wrong(node: UpstreamServer, answer: Any):
    del node.methods["debug_getRawBlock"]
    node.methods["eth_getUncleByBlockHashAndIndex"] = answer
    with pytest.raises(WrongBlock):
        read(node, lambda source: source.block(UNCLED.hash))


def test_failures_are_raised(node: UpstreamServer):
    node.fault = status(503)
    for work in (
        lambda source: source.block(PLAIN[0].hash),
        lambda source: source.head("safe"),
        lambda source: source.reference(PLAIN[0].hash),
    ):
        with pytest.raises(UpstreamUnavailable):
            read(node, work)


def test_documents_without_transactions_may_not_be_as_large_as_blocks(
    node: UpstreamServer, scheme: str
):
    """Over a WebSocket, the message is not even received."""
    long = {"padding": "x" * MAX_HEADER_BYTES}
    node.methods["eth_getBlockByNumber"] = lambda *_: long
    node.methods["eth_getBlockByHash"] = lambda *_: long
    for work in (
        lambda source: source.head(),
        lambda source: source.head("finalized"),
        lambda source: source.reference(PLAIN[0].hash),
    ):
        with pytest.raises(UpstreamUnavailable, match=r"too long|longer than 8388608"):
            read(node, work, node.url(scheme))


# Unknown transaction types


def with_unknown_type() -> tuple[Case, bytes]:
    """Return a block with a transaction of type 0x7e, and that transaction."""
    block = decode_block(PLAIN[0].raw)
    unknown = b"\x7e" + rlp.encode([b"\x05"])
    known = [transaction.raw for transaction in block.transactions]
    header: Header = dataclasses.replace(
        block.header, transactions_root=ordered_root([unknown, *known])
    )
    parts = rlp.list_items(PLAIN[0].raw)
    items = [rlp.encode(unknown), *rlp.list_items(parts[1])]
    body = [rlp.wrap_list(b"".join(items)), *parts[2:]]
    raw = rlp.wrap_list(b"".join([header.encode(), *body]))
    document = PLAIN[0].document | {
        "hash": "0x" + header.hash.hex(),
        "transactionsRoot": "0x" + header.transactions_root.hex(),
        "transactions": [
            {"type": "0x7e", "hash": "0x" + "00" * 32},
            *PLAIN[0].document["transactions"],
        ],
    }
    return Case("unknown", header.hash, raw, document, []), unknown


def test_transaction_of_an_unknown_type_is_read_raw(node: UpstreamServer):
    case, unknown = with_unknown_type()
    del node.methods["debug_getRawBlock"]
    node.methods["eth_getBlockByHash"] = case.document
    method = "eth_getRawTransactionByBlockHashAndIndex"
    node.methods[method] = "0x" + unknown.hex()
    assert read(node, lambda source: source.block(case.hash)) == case.raw
    assert (method, ["0x" + case.hash.hex(), "0x0"]) in node.calls
    node.methods[method] = "0x7e01"
    with pytest.raises(WrongBlock):
        read(node, lambda source: source.block(case.hash))


@pytest.mark.parametrize("answer", [None, refuse(-32601, "no"), refuse(1, "no")])
def test_unknown_type_is_named_if_it_is_not_to_be_had(
    node: UpstreamServer, answer: Any
):
    case, _ = with_unknown_type()
    del node.methods["debug_getRawBlock"]
    node.methods["eth_getBlockByHash"] = case.document
    node.methods["eth_getRawTransactionByBlockHashAndIndex"] = answer
    with pytest.raises(UnknownTransactionType, match="126") as caught:
        read(node, lambda source: source.block(case.hash))
    assert caught.value.type == 126


# Places of blocks


def ref(case: Case) -> BlockRef:
    header = decode_block(case.raw).header
    return BlockRef(header.number, header.hash, header.parent_hash, header.timestamp)


def test_heads_by_their_tags(node: UpstreamServer, scheme: str):
    tags = {"latest": PLAIN[2], "safe": PLAIN[1], "finalized": PLAIN[0]}
    node.methods["eth_getBlockByNumber"] = lambda tag, full: tags[tag].document

    async def scenario(source: BlockSource) -> None:
        assert await source.head() == ref(PLAIN[2])
        for tag, case in tags.items():
            assert await source.head(tag) == ref(case)

    read(node, scenario, node.url(scheme))


@pytest.mark.parametrize(
    "answer",
    [
        None,
        refuse(-32000, "safe block not found"),
        refuse(-39001, "Unknown block"),
    ],
)
def test_unresolvable_tags_are_none(node: UpstreamServer, answer: Any):
    node.methods["eth_getBlockByNumber"] = answer
    for tag in ("safe", "finalized"):
        assert read(node, lambda source, tag=tag: source.head(tag)) is None


def test_other_errors_of_tags_are_raised(node: UpstreamServer):
    node.methods["eth_getBlockByNumber"] = NOT_FOUND
    with pytest.raises(UpstreamError):
        read(node, lambda source: source.head())
    node.methods["eth_getBlockByNumber"] = refuse(-32603, "internal error")
    with pytest.raises(UpstreamError):
        read(node, lambda source: source.head("safe"))


def test_block_by_its_number(node: UpstreamServer):
    assert read(node, lambda source: source.at(3)) == ref(OURS[2])
    node.methods["eth_getBlockByNumber"] = OURS[3].document
    with pytest.raises(WrongBlock, match="number 4, not 3"):
        read(node, lambda source: source.at(3))


def test_blocks_by_their_numbers_in_a_batch(node: UpstreamServer, scheme: str):
    async def scenario(source: BlockSource) -> None:
        found = await source.at_each([2, 1, 10**6, 3])
        assert found == [ref(OURS[1]), ref(OURS[0]), None, ref(OURS[2])]
        assert await source.at_each([]) == []

    read(node, scenario, node.url(scheme))
    node.methods["eth_getBlockByNumber"] = OURS[3].document
    with pytest.raises(WrongBlock, match="number 4, not 3"):
        read(node, lambda source: source.at_each([4, 3]))
    node.methods["eth_getBlockByNumber"] = refuse(PRUNED, "pruned")
    with pytest.raises(UpstreamError, match="pruned"):
        read(node, lambda source: source.at_each([4, 3]))


@pytest.mark.parametrize(
    "name", ["hash", "parentHash", "number", "timestamp", "stateRoot"]
)
def test_place_is_proved_by_the_header(node: UpstreamServer, name: str):
    document = PLAIN[0].document
    node.methods["eth_getBlockByNumber"] = document | {name: other(document[name])}
    with pytest.raises(WrongBlock, match="the header's hash is"):
        read(node, lambda source: source.head())
