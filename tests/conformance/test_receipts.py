"""Receipts of the recorded chain, compared with the receipt roots of the headers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from eth._utils.address import generate_contract_address

from evm.blocks import Block
from evm.hexadecimal import to_hex
from evm.receipts import Log, Receipt
from evm.trie import ordered_root
from tests.support import chains, execution_apis
from tests.support.live import Api, live_service


@pytest.fixture(scope="module")
def api(module_db: None) -> Iterator[Api]:
    chains.import_blocks("hive", execution_apis.genesis(), execution_apis.raw_blocks())
    with live_service() as live, live.api() as api:
        yield api


@pytest.fixture(scope="module")
def blocks() -> list[Block]:
    return execution_apis.blocks()


@pytest.fixture(scope="module")
def receipts(api: Api, blocks: list[Block]) -> list[list[dict[str, Any]]]:
    """Return the receipts of each block."""
    return api.results(
        ("eth_getBlockReceipts", to_hex(block.header.hash)) for block in blocks
    )


def decoded(document: dict[str, Any]) -> Receipt:
    """Convert a receipt object to the receipt of the consensus rules."""

    def number(name: str) -> int:
        return int(document[name], 16)

    def data(value: str) -> bytes:
        return bytes.fromhex(value[2:])

    return Receipt(
        type=number("type"),
        status=number("status") if "status" in document else None,
        state_root=data(document["root"]) if "root" in document else None,
        cumulative_gas_used=number("cumulativeGasUsed"),
        gas_used=number("gasUsed"),
        bloom=number("logsBloom"),
        logs=[
            Log(
                data(log["address"]), tuple(map(data, log["topics"])), data(log["data"])
            )
            for log in document["logs"]
        ],
    )


def test_receipts_have_the_root_that_the_header_promises(blocks, receipts) -> None:
    seen = set()
    for block, documents in zip(blocks, receipts, strict=True):
        found = [decoded(document) for document in documents]
        root = ordered_root([receipt.encode() for receipt in found])
        assert root == block.header.receipts_root, block.header.number
        used = 0
        for receipt in found:
            used += receipt.gas_used
            assert receipt.cumulative_gas_used == used
            seen |= {receipt.type, "status" if receipt.state_root is None else "root"}
        assert used == block.header.gas_used
    assert seen >= {0, 1, 2, 3, 4, "status"}


def test_receipt_says_of_its_transaction_what_the_transaction_says(
    api: Api, blocks, receipts
) -> None:
    hashes = [to_hex(t.hash) for block in blocks for t in block.transactions]
    alone = api.results(("eth_getTransactionReceipt", each) for each in hashes)
    assert alone == [document for documents in receipts for document in documents]
    sent = api.results(("eth_getTransactionByHash", each) for each in hashes)
    for document, transaction in zip(alone, sent, strict=True):
        for name in ("blockHash", "blockNumber", "transactionIndex", "type", "from"):
            assert document[name] == transaction[name]
        assert document["to"] == transaction["to"]
        assert document["transactionHash"] == transaction["hash"]
        assert document["effectiveGasPrice"] == transaction["gasPrice"]
        assert ("blobGasUsed" in document) == (document["type"] == "0x3")
        if transaction["to"] is None:
            sender = bytes.fromhex(transaction["from"][2:])
            made = generate_contract_address(sender, int(transaction["nonce"], 16))
            assert document["contractAddress"] == to_hex(made)
        else:
            assert document["contractAddress"] is None


def test_logs_are_numbered_through_their_block(blocks, receipts) -> None:
    count = 0
    for block, documents in zip(blocks, receipts, strict=True):
        logs = [(d, log) for d in documents for log in d["logs"]]
        for index, (document, log) in enumerate(logs):
            assert log["logIndex"] == hex(index)
            assert log["blockTimestamp"] == hex(block.header.timestamp)
            assert log["removed"] is False
            for name in ("blockHash", "blockNumber", "transactionHash"):
                assert log[name] == document[name]
            assert log["transactionIndex"] == document["transactionIndex"]
        count += len(logs)
    assert count > 10


def test_transaction_is_the_same_by_its_hash_and_by_its_place(
    api: Api, blocks: list[Block]
) -> None:
    for block in blocks[-20:]:
        number, name = hex(block.header.number), to_hex(block.header.hash)
        hashes = [to_hex(transaction.hash) for transaction in block.transactions]
        by_hash = api.results(("eth_getTransactionByHash", each) for each in hashes)
        by_number, by_block = (
            api.results((method, where, hex(i)) for i in range(len(hashes)))
            for method, where in (
                ("eth_getTransactionByBlockNumberAndIndex", number),
                ("eth_getTransactionByBlockHashAndIndex", name),
            )
        )
        assert by_hash == by_number == by_block
        for kind, where in (("Hash", name), ("Number", number)):
            count = api.result(f"eth_getBlockTransactionCountBy{kind}", where)
            assert count == hex(len(hashes))
            assert api.result(f"eth_getUncleCountByBlock{kind}", where) == "0x0"


def test_receipts_of_a_block_are_the_same_by_its_number_and_tag(
    api: Api, blocks: list[Block], receipts: list[Any]
) -> None:
    numbers = [hex(block.header.number) for block in blocks]
    assert api.results(("eth_getBlockReceipts", n) for n in numbers) == receipts
    assert api.result("eth_getBlockReceipts", "latest") == receipts[-1]
    assert api.result("eth_getBlockReceipts", "earliest") == []
    above = hex(blocks[-1].header.number + 1)
    for unknown in (above, "0x" + "12" * 32):
        assert api.result("eth_getBlockReceipts", unknown) is None
