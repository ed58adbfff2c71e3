"""The pending block, and pending transactions with their nonces."""

from __future__ import annotations

import pytest

from nodeapi.relay import relay
from nodeapi.sending.decoding import decode_submission
from nodeapi.sending.rules import MAX_BLOBS
from tests.nodeapi.relay.node import (
    ALICE,
    GENESIS,
    HASH,
    PENDING_BLOCK,
    PENDING_TRANSACTION,
    RAW,
    UNKNOWN,
    Node,
    followed,
)
from tests.nodeapi.sending.cases import VALID, with_sidecar
from tests.support import chains
from tests.support.upstream_server import hang_up, refuse, status

pytestmark = pytest.mark.django_db(transaction=True)


# The pending block


def test_pending_block_is_an_upstreams_with_null_where_it_is_not_known_yet(node):
    node.all_methods(eth_getBlockByNumber=PENDING_BLOCK)
    nulls = dict.fromkeys(("hash", "logsBloom", "nonce", "number"))
    total = node.result("eth_getBlockByNumber", "latest", False)["totalDifficulty"]
    expected = {**PENDING_BLOCK, **nulls, "totalDifficulty": total}
    full = node.result("eth_getBlockByNumber", "pending", True)
    assert full == {**expected, "transactions": [PENDING_TRANSACTION]}
    hashes = node.result("eth_getBlockByNumber", "pending", False)
    assert hashes == {**expected, "transactions": [HASH]}
    not_in_header = ("totalDifficulty", "size", "uncles", "transactions")
    header = {name: v for name, v in expected.items() if name not in not_in_header}
    assert node.result("eth_getHeaderByNumber", "pending") == header
    assert node.result("eth_getBlockTransactionCountByNumber", "pending") == "0x1"
    assert node.result("eth_getUncleCountByBlockNumber", "pending") == "0x0"
    assert node.result("eth_getUncleByBlockNumberAndIndex", "pending", "0x0") is None
    method = "eth_getTransactionByBlockNumberAndIndex"
    assert node.result(method, "pending", "0x0") == PENDING_TRANSACTION
    assert node.result(method, "pending", "0x1") is None


def reads(node: Node) -> list[int]:
    """Return the number of reads of the pending block from each upstream."""
    return [
        upstream.calls.count(("eth_getBlockByNumber", ["pending", True]))
        for upstream in node.upstreams
    ]


def test_pending_block_is_read_once_for_each_head(node, blocks):
    node.all_methods(eth_getBlockByNumber=PENDING_BLOCK)
    for _ in range(3):
        node.result("eth_getBlockByNumber", "pending", False)
        node.result("eth_getBlockByNumber", "pending", True)
    assert reads(node) == [1, 0]
    chains.import_blocks("live", GENESIS, [blocks.block()])
    node.running.ask(node.running.service.directory.refresh)
    node.result("eth_getBlockByNumber", "pending", True)
    assert reads(node) == [2, 0]


def test_pending_block_is_read_again_after_a_moment(monkeypatch, blocks):
    monkeypatch.setattr(relay, "PENDING_SECONDS", 0.0)
    with followed() as node:
        node.all_methods(eth_getBlockByNumber=PENDING_BLOCK)
        for expected in (1, 2):
            node.result("eth_getBlockByNumber", "pending", True)
            assert reads(node) == [expected, 0]


def test_pending_block_is_read_from_another_upstream_if_one_fails(node):
    first, second = node.upstreams
    first.fault = hang_up
    second.methods["eth_getBlockByNumber"] = PENDING_BLOCK
    assert node.result("eth_getBlockTransactionCountByNumber", "pending") == "0x1"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (refuse(-32000, "not now", "x"), (-32000, "not now")),
        ({"number": "0x3"}, (-32000, "pending block is not available")),
        ([1], (-32000, "pending block is not available")),
        *(
            (answer, (-32000, "pending block is not available"))
            for answer in (
                PENDING_BLOCK | {"gasLimit": hex(2**63)},
                PENDING_BLOCK | {"difficulty": "0x" + "f" * 65},
                PENDING_BLOCK | {"withdrawals": [{"amount": hex(2**64)}]},
                PENDING_BLOCK
                | {"transactions": [PENDING_TRANSACTION | {"nonce": hex(2**64)}]},
            )
        ),
    ],
)
def test_pending_block_that_no_upstream_has_is_an_error(node, answer, expected):
    node.all_methods(eth_getBlockByNumber=answer)
    error = node.error("eth_getBlockByNumber", "pending", False)
    assert (error["code"], error["message"]) == expected


def test_absent_pending_block_is_null(node):
    node.all_methods(eth_getBlockByNumber=None)
    assert node.result("eth_getBlockByNumber", "pending", False) is None
    assert node.result("eth_getBlockTransactionCountByNumber", "pending") is None


def test_pending_block_is_the_head_without_upstreams(node):
    latest = node.result("eth_getBlockByNumber", "latest", True, network="files")
    pending = node.result("eth_getBlockByNumber", "pending", True, network="files")
    assert pending == latest
    assert latest["number"] == "0x2"


# Pending transactions


def test_pending_transaction_is_found_at_any_upstream(node):
    mined = {**PENDING_TRANSACTION, "blockHash": UNKNOWN, "blockNumber": "0x9"}
    first, second = node.upstreams
    first.methods["eth_getTransactionByHash"] = None
    second.methods["eth_getTransactionByHash"] = mined
    assert node.result("eth_getTransactionByHash", HASH) == PENDING_TRANSACTION
    first.fault = hang_up
    other = {**mined, "hash": UNKNOWN}
    second.methods["eth_getTransactionByHash"] = other
    found = node.result("eth_getTransactionByHash", UNKNOWN)
    assert found == {**PENDING_TRANSACTION, "hash": UNKNOWN}


@pytest.mark.parametrize(
    "lie",
    [
        {"nonce": hex(2**64)},
        {"value": "0x" + "f" * 65},
        {"gas": 21000},
        {"authorizationList": [{"nonce": hex(2**64)}]},
        {"authorizationList": 5},
    ],
)
def test_pending_transaction_with_a_number_that_is_too_large_is_absent(node, lie):
    lies = PENDING_TRANSACTION | lie
    node.all_methods(eth_getTransactionByHash=lies, txpool_content={})
    assert node.result("eth_getTransactionByHash", HASH) is None


def test_encoding_of_a_pending_transaction_is_read_from_any_upstream(node):
    get = "eth_getRawTransactionByHash"
    first, second = node.upstreams
    node.all_methods(eth_getTransactionByHash=PENDING_TRANSACTION)
    first.methods[get] = "0x" + VALID["legacy"].hex()
    second.methods[get] = "0x" + RAW.hex()
    assert node.result(get, HASH) == "0x" + RAW.hex()
    second.methods[get] = refuse(-32601, "what")
    assert node.result(get, HASH) == "0x"


def test_encoding_of_a_pending_blob_transaction_has_its_sidecar(node):
    raw = with_sidecar(blobs=MAX_BLOBS, commitments=MAX_BLOBS, proofs=128 * MAX_BLOBS)
    name = "0x" + decode_submission(raw).transaction.hash.hex()
    node.all_methods(
        eth_getTransactionByHash={**PENDING_TRANSACTION, "hash": name},
        eth_getRawTransactionByHash="0x" + raw.hex(),
    )
    for method in ("eth_getRawTransactionByHash", "debug_getRawTransaction"):
        assert node.result(method, name) == "0x" + raw.hex()


def test_encoding_is_not_asked_for_without_the_transaction(node):
    node.all_methods(eth_getTransactionByHash=None)
    assert node.result("eth_getRawTransactionByHash", HASH) == "0x"
    for upstream in node.upstreams:
        assert upstream.count("eth_getRawTransactionByHash") == 0


def test_transaction_of_a_block_is_not_asked_for(node, blocks):
    (transaction,) = blocks.blocks[-1].transactions
    name = "0x" + transaction.hash.hex()
    found = node.result("eth_getTransactionByHash", name)
    assert found["blockNumber"] == "0x2"
    for upstream in node.upstreams:
        assert upstream.count("eth_getTransactionByHash") == 0


def test_absence_is_remembered_until_the_transaction_is_sent(node):
    node.all_methods(eth_getTransactionByHash=None, eth_sendRawTransaction=HASH)
    for _ in range(3):
        assert node.result("eth_getTransactionByHash", HASH) is None
    assert [each.count("eth_getTransactionByHash") for each in node.upstreams] == [1, 1]
    node.send()
    node.all_methods(eth_getTransactionByHash=PENDING_TRANSACTION)
    assert node.result("eth_getTransactionByHash", HASH) == PENDING_TRANSACTION


@pytest.mark.parametrize(
    "answer",
    [{"hash": UNKNOWN}, {"hash": 5}, {}, [], "0x", refuse(-32000, "what"), 7],
)
def test_wrong_transaction_is_none(node, answer):
    node.all_methods(eth_getTransactionByHash=answer)
    assert node.result("eth_getTransactionByHash", HASH) is None


def test_transactions_are_unknown_while_no_upstream_responds(node):
    for upstream in node.upstreams:
        upstream.fault = hang_up
    assert node.result("eth_getTransactionByHash", HASH) is None


def test_pending_nonce_is_the_highest_of_all_upstreams(node):
    first, second = node.upstreams
    first.methods.update(eth_getTransactionCount="0x5")
    second.methods.update(eth_getTransactionCount="0x7")
    address = "0x" + ALICE.address.hex()
    assert node.result("eth_getTransactionCount", address, "pending") == "0x7"
    stored = node.result("eth_getTransactionCount", address, "latest")
    assert stored == node.result("eth_getTransactionCount", address)
    assert int(stored, 16) < 5
    # A transaction can be sent at any time, so nothing is cached.
    second.methods.update(eth_getTransactionCount="0x8")
    assert node.result("eth_getTransactionCount", address, "pending") == "0x8"


def test_pending_nonce_is_not_below_that_of_the_head(node, blocks):
    node.all_methods(eth_getTransactionCount="0x0")
    sender = blocks.blocks[-1].transactions[0].sender
    address = "0x" + sender.hex()
    stored = node.result("eth_getTransactionCount", address, "latest")
    assert int(stored, 16) > 0
    assert node.result("eth_getTransactionCount", address, "pending") == stored


def test_pending_nonce_is_that_of_the_upstreams_that_answer(node):
    first, second = node.upstreams
    second.methods.update(eth_getTransactionCount="0x7")
    address = "0x" + ALICE.address.hex()
    for fault in (hang_up, status(500)):
        first.fault = fault
        assert node.result("eth_getTransactionCount", address, "pending") == "0x7"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (refuse(-32000, "no state"), {"code": -32000, "message": "no state"}),
        (7, {"code": -32000, "message": "pending state is not available"}),
    ],
)
def test_pending_nonce_that_no_upstream_has_is_an_error(node, answer, expected):
    node.all_methods(eth_getTransactionCount=answer)
    address = "0x" + ALICE.address.hex()
    assert node.error("eth_getTransactionCount", address, "pending") == expected


def test_pending_nonce_is_that_of_the_head_without_upstreams(node):
    address = "0x" + ALICE.address.hex()
    at_head, pending = (
        node.result("eth_getTransactionCount", address, tag, network="files")
        for tag in ("latest", "pending")
    )
    assert pending == at_head


def test_peers_are_the_upstreams(node):
    assert node.result("net_peerCount") == "0x2"
    assert node.result("net_peerCount", network="files") == "0x0"
