"""Otterscan's methods, compared with results of other methods, over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from evm.blocks import decode_block
from tests.support import sample
from tests.support.live import Api

RAW_BLOCKS = sample.raw_blocks()
BLOCKS = [decode_block(raw) for raw in RAW_BLOCKS]
HEAD = len(BLOCKS)
UNKNOWN = "0x" + "12" * 32
PLAIN = {"tracer": "callTracer"}
FLAT = {"tracer": "flatCallTracer"}

Json = dict[str, Any]


@pytest.fixture(scope="module")
def names() -> list[str]:
    """Return the hashes of all transactions, in order."""
    return [f"0x{each.hash.hex()}" for block in BLOCKS for each in block.transactions]


@pytest.fixture(scope="module")
def trees(api: Api, names: list[str]) -> list[Json]:
    """Return the call tree of each transaction."""
    return api.results(("debug_traceTransaction", name, PLAIN) for name in names)


def frames(call: Json, depth: int = 0) -> Iterator[tuple[Json, int]]:
    yield call, depth
    for inner in call.get("calls", ()):
        yield from frames(inner, depth + 1)


def test_level_and_code(api: Api) -> None:
    assert api.result("ots_getApiLevel") == 8
    created = api.results(
        ("eth_getTransactionReceipt", f"0x{each.hash.hex()}")
        for block in BLOCKS
        for each in block.transactions
        if not each.to
    )
    contracts = [each["contractAddress"] for each in created]
    for contract in contracts:
        code = api.result("eth_getCode", contract, "latest")
        assert api.result("ots_hasCode", contract) is (code != "0x")
        assert api.result("ots_hasCode", contract, 0) is False
        assert api.result("ots_hasCode", contract, "latest") is (code != "0x")
    assert api.error("ots_hasCode", contracts[0], HEAD + 1) == (
        -32000,
        "header not found",
    )


def test_trace_lists_the_call_frames(
    api: Api, names: list[str], trees: list[Json]
) -> None:
    found = api.results(("ots_traceTransaction", name) for name in names)
    flat = api.results(("debug_traceTransaction", name, FLAT) for name in names)
    deepest = 0
    for tree, entries, shown in zip(trees, found, flat, strict=True):
        assert len(entries) == len(shown)
        frame_of = {
            (each["type"], depth, each["from"], each["input"], each.get("output", "0x"))
            for each, depth in frames(tree)
        }
        for entry, place in zip(entries, shown, strict=True):
            assert entry["depth"] == len(place["traceAddress"])
            deepest = max(deepest, entry["depth"])
            sender = place["action"].get("from", place["action"].get("address"))
            assert entry["from"] == sender
            kind = entry["type"]
            assert (entry["value"] is None) is (kind in ("STATICCALL", "DELEGATECALL"))
            if kind != "SELFDESTRUCT":
                key = (kind, entry["depth"], sender, entry["input"], entry["output"])
                assert key in frame_of
    assert deepest > 1
    code, _ = api.error("ots_traceTransaction", UNKNOWN)
    assert code == -32000


def test_internal_operations_are_below_the_first_frame(
    api: Api, names: list[str], trees: list[Json]
) -> None:
    kinds = {"CALL": 0, "SELFDESTRUCT": 1, "CREATE": 2, "CREATE2": 3}
    found = api.results(("ots_getInternalOperations", name) for name in names)
    seen = set()
    for tree, operations in zip(trees, found, strict=True):
        expected = [
            {
                "type": kinds[each["type"]],
                "from": each["from"],
                "to": each.get("to", "0x" + "00" * 20),
                "value": each.get("value", "0x0"),
            }
            for each, depth in frames(tree)
            if depth
            and each["type"] in kinds
            and (each["type"] != "CALL" or each["value"] != "0x0")
        ]
        assert operations == expected
        seen |= {each["type"] for each in operations}
    assert seen == {0, 1, 2, 3}


def test_error_is_the_data_of_a_revert(
    api: Api, names: list[str], trees: list[Json]
) -> None:
    found = api.results(("ots_getTransactionError", name) for name in names)
    expected = [
        tree.get("output", "0x") if tree.get("error") == "execution reverted" else "0x"
        for tree in trees
    ]
    assert found == expected
    assert set(expected) > {"0x"}


def test_block_details_have_fees_and_issuance(api: Api) -> None:
    for number in range(HEAD + 1):
        block = api.result("eth_getBlockByNumber", hex(number), False)
        details = api.result("ots_getBlockDetails", number)
        name = block["hash"]
        assert api.result("ots_getBlockDetailsByHash", name) == details
        count = len(block.pop("transactions"))
        assert details["block"] == {
            **block,
            "logsBloom": None,
            "transactionCount": count,
        }
        receipts = api.result("eth_getBlockReceipts", hex(number))
        fees = sum(
            int(each["effectiveGasPrice"], 16) * int(each["gasUsed"], 16)
            for each in receipts
        )
        assert int(details["totalFees"], 16) == fees
        paid = [
            (each["action"]["rewardType"], int(each["action"]["value"], 16))
            for each in api.result("trace_block", hex(number)) or []
            if each["type"] == "reward"
        ]
        issuance = details["issuance"]
        assert int(issuance["issuance"], 16) == sum(value for _, value in paid)
        assert int(issuance["uncleReward"], 16) == sum(
            value for kind, value in paid if kind == "uncle"
        )
    assert api.result("ots_getBlockDetails", HEAD + 1) is None
    assert api.result("ots_getBlockDetailsByHash", UNKNOWN) is None


def test_pages_of_a_block_begin_at_its_end(api: Api) -> None:
    busiest = max(BLOCKS, key=lambda block: len(block.transactions))
    number = busiest.header.number
    block = api.result("eth_getBlockByNumber", hex(number), True)
    receipts = api.result("eth_getBlockReceipts", hex(number))
    count = len(receipts)
    assert count > 5
    found: list[Json] = []
    shown: list[Json] = []
    for page in range(-(-count // 4) + 1):
        part = api.result("ots_getBlockTransactions", number, page, 4)
        found = part["fullblock"]["transactions"] + found
        shown = part["receipts"] + shown
        assert part["fullblock"]["transactionCount"] == count
    assert found == [
        {**each, "input": each["input"][:10]} for each in block["transactions"]
    ]
    assert shown == [{**each, "logs": None, "logsBloom": None} for each in receipts]
    assert api.result("ots_getBlockTransactions", HEAD + 1, 0, 4) is None
    assert api.error("ots_getBlockTransactions", number, 0, 256) == (
        -32602,
        "invalid argument 2: json: cannot unmarshal number 256 into Go value of type "
        "uint8",
    )


def test_searches_find_every_transaction_with_an_address(api: Api) -> None:
    places: dict[str, list[str]] = {}
    for block in BLOCKS:
        for trace in api.result("trace_block", hex(block.header.number)):
            name, action = trace["transactionHash"], trace["action"]
            ends = [action.get(each) for each in ("from", "to", "address")]
            ends.append(action.get("refundAddress"))
            ends.append((trace.get("result") or {}).get("address"))
            for account in filter(None, ends if name else []):
                if name not in places.setdefault(account, []):
                    places[account].append(name)
    busy = sorted(places, key=lambda account: -len(places[account]))[:12]
    for account in [*busy, *list(places)[:8]]:
        newest = places[account][::-1]
        first = api.result("ots_searchTransactionsBefore", account, 0, 25)
        assert first["firstPage"] is True
        backward, page = list(first["txs"]), first
        while not page["lastPage"]:
            below = int(page["txs"][-1]["blockNumber"], 16)
            page = api.result("ots_searchTransactionsBefore", account, below, 3)
            assert page["firstPage"] is False
            backward += page["txs"]
        by_block = [(each["blockNumber"], each["hash"]) for each in backward]
        assert [name for _, name in by_block] == newest
        page = api.result("ots_searchTransactionsAfter", account, 0, 3)
        assert page["lastPage"] is True
        forward = page["txs"]
        while not page["firstPage"]:
            above = int(page["txs"][0]["blockNumber"], 16)
            page = api.result("ots_searchTransactionsAfter", account, hex(above), 3)
            forward = page["txs"] + forward
        assert forward == backward
        for transaction, receipt in zip(first["txs"], first["receipts"], strict=True):
            name = transaction["hash"]
            assert transaction == api.result("eth_getTransactionByHash", name)
            assert receipt == {
                **api.result("eth_getTransactionReceipt", name),
                "timestamp": int(transaction["blockTimestamp"], 16),
            }
    nobody = api.result("ots_searchTransactionsBefore", "0x" + "ab" * 20, 0, 25)
    assert nobody == {"txs": [], "receipts": [], "firstPage": True, "lastPage": True}
    assert api.error("ots_searchTransactionsAfter", busy[0], 0, 26) == (
        -32000,
        "max allowed page size: 25",
    )


def test_transactions_are_found_by_sender_and_nonce(api: Api) -> None:
    for block in BLOCKS:
        for each in block.transactions:
            sender = f"0x{each.sender.hex()}"
            found = api.result("ots_getTransactionBySenderAndNonce", sender, each.nonce)
            assert found == f"0x{each.hash.hex()}"
    last = BLOCKS[-1].transactions or BLOCKS[0].transactions
    sender = f"0x{last[0].sender.hex()}"
    unused = int(api.result("eth_getTransactionCount", sender, "latest"), 16)
    assert api.result("ots_getTransactionBySenderAndNonce", sender, unused) is None
    assert api.result("ots_getTransactionBySenderAndNonce", "0x" + "ab" * 20, 0) is None


def test_creators_are_those_of_the_newest_creation(api: Api) -> None:
    creators: dict[str, Json] = {}
    for block in BLOCKS:
        for trace in api.result("trace_block", hex(block.header.number)):
            made = (trace.get("result") or {}).get("address")
            if made is not None:
                creators[made] = {
                    "hash": trace["transactionHash"],
                    "creator": trace["action"]["from"],
                }
    asked = 0
    for contract, expected in creators.items():
        has_code = api.result("ots_hasCode", contract)
        found = api.result("ots_getContractCreator", contract)
        assert found == (expected if has_code else None)
        asked += has_code
    assert asked > 3
    assert api.result("ots_getContractCreator", "0x" + "ab" * 20) is None


def test_headers_are_blocks_without_their_bodies(api: Api) -> None:
    for number in (0, 1, HEAD):
        block = api.result("eth_getBlockByNumber", hex(number), False)
        for name in ("size", "transactions", "uncles", "withdrawals"):
            block.pop(name, None)
        block.pop("totalDifficulty", None)
        assert api.result("erigon_getHeaderByNumber", number) == block
        assert api.result("erigon_getHeaderByHash", block["hash"]) == block
    assert api.result("erigon_getHeaderByNumber", HEAD + 1) is None
