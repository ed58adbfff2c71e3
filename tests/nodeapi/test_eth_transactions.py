from __future__ import annotations

import orjson
import pytest

from tests.nodeapi.test_methods import error, result
from tests.support import edge

BLOCK_HASH = "0x" + edge.BLOCK_HASH.hex()
SIDE_HASH = "0x" + edge.SIDE_HASH.hex()
TRANSACTION_HASH = "0x" + edge.TRANSACTION_HASH.hex()
UNKNOWN_HASH = "0x" + "12" * 32

TRANSACTION = orjson.loads(edge.TRANSACTION)
RECEIPT = orjson.loads(edge.RECEIPT)


def test_transaction_and_receipt_are_found_by_hash():
    assert result("eth_getTransactionByHash", TRANSACTION_HASH) == TRANSACTION
    assert result("eth_getTransactionReceipt", TRANSACTION_HASH) == RECEIPT
    assert result("eth_getTransactionByHash", UNKNOWN_HASH) is None
    assert result("eth_getTransactionReceipt", UNKNOWN_HASH) is None


def test_transaction_is_found_by_number_or_tag_and_position():
    method = "eth_getTransactionByBlockNumberAndIndex"
    assert result(method, "latest", "0x2") == TRANSACTION
    assert result(method, "0x5", "0x2") == TRANSACTION
    assert result(method, "0x5", "0x3") is None
    assert result(method, "0x6", "0x2") is None


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("latest", [RECEIPT]),
        ("0x5", [RECEIPT]),
        ("0x6", None),
        ({"blockNumber": "0x5"}, [RECEIPT]),
        (BLOCK_HASH, [RECEIPT]),
        (SIDE_HASH, []),
        (UNKNOWN_HASH, None),
        ({"blockHash": SIDE_HASH}, []),
        ({"blockHash": BLOCK_HASH, "requireCanonical": True}, [RECEIPT]),
        ({"blockHash": SIDE_HASH, "requireCanonical": True}, None),
        ({"blockHash": UNKNOWN_HASH, "requireCanonical": True}, None),
    ],
)
def test_receipts_of_a_block_are_found_however_it_is_named(block, expected):
    assert result("eth_getBlockReceipts", block) == expected


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("eth_getBlockTransactionCount", "0x3"),
        ("eth_getUncleCount", "0x2"),
    ],
)
def test_transactions_and_uncles_are_counted(method, expected):
    block = "Block" if "Uncle" in method else ""
    assert result(f"{method}By{block}Hash", BLOCK_HASH) == expected
    assert result(f"{method}By{block}Number", "0x5") == expected
    assert result(f"{method}By{block}Number", "latest") == expected
    assert result(f"{method}By{block}Hash", UNKNOWN_HASH) is None
    assert result(f"{method}By{block}Number", "0x6") is None


@pytest.mark.parametrize(
    "method",
    [
        "eth_getTransactionByHash",
        "eth_getTransactionReceipt",
        "eth_getBlockReceipts",
        "eth_getBlockTransactionCountByHash",
        "eth_getUncleCountByBlockNumber",
        "eth_getTransactionByBlockNumberAndIndex",
    ],
)
def test_argument_is_required(method):
    assert error(method) == (-32602, "missing value for required argument 0")
