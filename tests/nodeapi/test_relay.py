"""Requests that upstreams answer: sent and pending transactions, the pending block."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson
import pytest
from django.utils import timezone

from jsonrpc.answers import Reply
from jsonrpc.dispatch import Dispatcher, Limits
from keys.allowlists import make_allowlists
from keys.grants import Grant
from keys.permits import NO_PERMITS
from networks.models import Network
from networks.services import add_upstream
from nodeapi.methods import registry
from nodeapi.methods.context import Context
from nodeapi.models import FollowerStatus
from nodeapi.relay import bounds, relay
from nodeapi.sending.decoding import decode_submission
from nodeapi.sending.rules import MAX_BLOBS
from samples.builder import ChainBuilder
from samples.schedules import from_genesis, make_genesis
from samples.signers import Signer
from tests.nodeapi.sending.cases import CHAIN_ID, INVALID, TO, VALID, with_sidecar
from tests.support import chains, copies
from tests.support.serving import Serving, serving
from tests.support.upstream_server import (
    UpstreamServer,
    hang_up,
    hold,
    refuse,
    running_upstream,
    status,
)
from tests.support.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)

ALICE = Signer("alice")
SEND = "eth_sendRawTransaction"
RAW = VALID["dynamic fee"]
HASH = "0x" + decode_submission(RAW).transaction.hash.hex()
GRANT = Grant(1, "customer", None, NO_PERMITS, None)
UNKNOWN = "0x" + "12" * 32

PENDING_TRANSACTION = {
    **{"hash": HASH, "type": "0x2", "nonce": "0x0", "from": "0x" + "a1" * 20},
    **{"blockHash": None, "blockNumber": None, "transactionIndex": None},
    "blockTimestamp": None,
}
"""A pending transaction as this service returns it. In geth's, members name a block."""
PENDING_BLOCK = {
    **{"number": "0x3", "hash": "0x" + "aa" * 32, "nonce": None, "miner": None},
    **{"logsBloom": "0x" + "00" * 256, "difficulty": "0x0", "uncles": []},
    "transactions": [
        {
            **PENDING_TRANSACTION,
            **{"blockHash": "0x" + "aa" * 32, "blockNumber": "0x3"},
            "transactionIndex": "0x0",
        }
    ],
    "size": "0x300",
}


class Node:
    """A service with a followed network `live`, and a network `files`."""

    def __init__(self, running: Serving, upstreams: list[UpstreamServer]) -> None:
        self.running = running
        self.upstreams = upstreams
        self.dispatcher = Dispatcher(registry, Limits(), {})

    grant = GRANT

    def start(self, method: str, *params: Any, network: str = "live") -> Any:
        """Return the response to a call, as an awaitable."""
        service = self.running.service
        view = service.directory.by_slug(network)
        assert view is not None
        context = Context(b"1", self.grant, view, service.store, relay=service.relay)
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.dispatcher.respond(orjson.dumps(call), context)

    def answer(self, method: str, *params: Any, network: str = "live") -> Any:
        found = self.running.ask(lambda: self.start(method, *params, network=network))
        return _read(found)

    def result(self, method: str, *params: Any, network: str = "live") -> Any:
        return self.answer(method, *params, network=network)["result"]

    def error(self, method: str, *params: Any, network: str = "live") -> Any:
        return self.answer(method, *params, network=network)["error"]

    def send(self, raw: bytes = RAW) -> Any:
        """Return the response to a sent transaction."""
        return self.answer(SEND, "0x" + raw.hex())

    def sent(self) -> list[int]:
        """Return the number of transactions that each upstream has received."""
        return [upstream.count(SEND) for upstream in self.upstreams]

    def all_methods(self, **methods: Any) -> None:
        """Make all upstreams return the same result."""
        for upstream in self.upstreams:
            upstream.methods.update(methods)


def _read(found: Any) -> Any:
    return orjson.loads(found.body if isinstance(found, Reply) else bytes(found))


GENESIS = make_genesis(
    chain_id=CHAIN_ID,
    first_blocks=from_genesis("osaka"),
    alloc={"0x" + ALICE.address.hex(): {"balance": hex(10**21)}},
)


@pytest.fixture
def blocks() -> ChainBuilder:
    """Return a chain of two blocks in Osaka, the second one with a transaction."""
    builder = ChainBuilder(GENESIS)
    builder.block()
    builder.send(ALICE, ALICE.address, value=1)
    builder.block()

    def import_chains() -> None:
        for slug in ("live", "files"):
            chains.import_blocks(slug, GENESIS, builder.blocks)

    copies.once("networks of the relay", import_chains)
    return builder


@pytest.fixture
def node(blocks: ChainBuilder, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    """Return a service whose caches do not expire during a test."""
    monkeypatch.setattr(relay, "PENDING_SECONDS", 600.0)
    with followed() as node:
        yield node


@contextmanager
def followed() -> Iterator[Node]:
    """Yield a service with two upstreams, over HTTP and over a WebSocket."""
    with running_upstream() as first, running_upstream() as second:
        network = Network.objects.get(slug="live")
        add_upstream(network=network, url=first.url("http"))
        add_upstream(network=network, url=second.url("ws"))
        with serving() as running:
            yield Node(running, [first, second])


# Sending


@pytest.mark.parametrize("name", VALID)
def test_transaction_is_sent_to_every_upstream(node, name):
    node.all_methods(eth_sendRawTransaction=HASH)
    expected = decode_submission(VALID[name]).transaction.hash
    assert node.send(VALID[name])["result"] == "0x" + expected.hex()
    node.running.until(lambda: node.sent() == [1, 1])
    for upstream in node.upstreams:
        assert (SEND, ["0x" + VALID[name].hex()]) in upstream.calls


@pytest.mark.parametrize(
    "message",
    [
        "already known",
        "AlreadyKnown",
        "Known transaction",
        "transaction already imported",
    ],
)
def test_transaction_that_upstreams_have_already_is_accepted(node, message):
    node.all_methods(eth_sendRawTransaction=refuse(-32000, message))
    assert node.send()["result"] == HASH


def test_one_upstream_is_enough_and_the_others_get_it_too(node):
    first, second = node.upstreams
    first.fault = hold
    first.methods[SEND] = refuse(-32000, "nonce too low")
    second.methods[SEND] = HASH
    assert node.send()["result"] == HASH
    node.running.until(lambda: node.sent() == [1, 1])
    first.release()


def test_first_upstreams_error_is_returned_unchanged(node):
    first, second = node.upstreams
    data = {"txHash": HASH, "reasons": ["x", 1, None]}
    first.methods[SEND] = refuse(3, "replacement transaction underpriced", data)
    second.methods[SEND] = refuse(-32000, "nonce too low")
    assert node.send()["error"] == {
        **{"code": 3, "message": "replacement transaction underpriced", "data": data},
    }
    assert node.sent() == [1, 1]
    first.methods[SEND] = refuse(-32601, "the method is not available")
    assert node.send()["error"] == {"code": -32000, "message": "nonce too low"}
    first.fault = status(503)
    assert node.send()["error"] == {"code": -32000, "message": "nonce too low"}


def test_no_answer_of_any_upstream_is_an_error_of_its_own(node):
    for upstream in node.upstreams:
        upstream.fault = hang_up
    error = node.send()["error"]
    assert (error["code"], error["data"]["reason"]) == (
        -32603,
        "upstreams_unavailable",
    )
    assert "may have been accepted" in error["message"]


@pytest.mark.parametrize("name", ["another chain", "too little gas", "no sidecar"])
def test_invalid_transaction_reaches_no_upstream(node, name):
    raw, text = INVALID[name]
    assert node.send(raw)["error"] == {"code": -32000, "message": text}
    assert node.send(b"\x02")["error"] == {
        "code": -32000,
        "message": "typed transaction too short",
    }
    assert node.sent() == [0, 0]


def test_recipient_has_to_be_in_the_allowlist_of_contracts(node):
    node.all_methods(eth_sendRawTransaction=HASH)
    for contract, is_allowed in ((TO, True), (ALICE.address, False)):
        allowlists = make_allowlists([("contract", "0x" + contract.hex())])
        node.grant = replace(GRANT, allowlists=allowlists)
        answer = node.send()
        if is_allowed:
            assert answer["result"] == HASH
        else:
            assert answer["error"]["data"]["reason"] == "contract_not_allowed"
        creation = node.send(VALID["creation"])
        assert creation["error"]["data"]["reason"] == "contract_not_allowed"
    node.running.until(lambda: node.sent() == [1, 1])


def test_log_has_the_hash_and_nothing_else_of_a_transaction(node, caplog):
    caplog.set_level(logging.DEBUG)
    node.all_methods(eth_sendRawTransaction=HASH)
    node.send()
    assert f"relayed transaction {HASH} to live" in caplog.text
    assert RAW.hex() not in caplog.text
    for upstream in node.upstreams:
        assert upstream.url("http").rpartition("/")[2] not in caplog.text


def test_bounds_are_limited(node, monkeypatch):
    monkeypatch.setattr(bounds, "MAX_CALLS_OF_KEY", 2)
    for upstream in node.upstreams:
        upstream.fault = hold
        upstream.methods[SEND] = HASH

    async def flood() -> tuple[Any, list[Any]]:
        pending = [
            asyncio.ensure_future(_await(node.start(SEND, "0x" + RAW.hex())))
            for _ in range(2)
        ]
        await until(lambda: sum(node.sent()) == 4)
        third = _read(await node.start("eth_getTransactionByHash", UNKNOWN))
        for upstream in node.upstreams:
            await asyncio.to_thread(upstream.release)
        return third, [_read(each) for each in await asyncio.gather(*pending)]

    refused, answers = node.running.ask(flood)
    error = refused["error"]
    assert (error["code"], error["data"]["reason"]) == (
        -32005,
        "too_many_relayed_calls",
    )
    assert [each["result"] for each in answers] == [HASH, HASH]


async def _await(later: Any) -> Any:
    return await later


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


# Tags and progress


@pytest.mark.parametrize("tag", ["safe", "finalized"])
def test_unknown_tag_is_geths_error_on_a_network_with_upstreams(node, tag):
    expected = {"code": -32000, "message": f"{tag} block not found"}
    assert node.error("eth_getBlockByNumber", tag, False) == expected
    address = "0x" + "a1" * 20
    assert node.error("eth_getStorageAt", address, "0x0", tag) == expected
    assert node.error("eth_getBlockReceipts", tag) == expected
    assert node.error("debug_getRawBlock", tag) == expected
    # Otherwise, both are the head.
    block = node.result("eth_getBlockByNumber", tag, False, network="files")
    assert block["number"] == "0x2"


def test_known_tags_name_their_blocks(node, blocks):
    safe, head = blocks.blocks[-2:]
    Network.objects.filter(slug="live").update(
        safe_hash=head.header.hash, finalized_hash=safe.header.hash
    )
    node.running.ask(node.running.service.directory.refresh)
    for tag, number in (("safe", "0x2"), ("finalized", "0x1")):
        found = node.result("eth_getBlockByNumber", tag, False)
        assert found["number"] == number


def follower(**fields: Any) -> None:
    """Write the status of the follower of `live`."""
    network = Network.objects.get(slug="live")
    now = timezone.now()
    FollowerStatus.objects.update_or_create(
        network=network,
        defaults={"process_started_at": now, "updated_at": now, **fields},
    )


def test_syncing_is_geths_object_while_blocks_are_missing(node):
    assert node.result("eth_syncing") is False
    follower(best_number=5, starting_number=1)
    assert node.result("eth_syncing") is False
    follower(best_number=6, starting_number=1)
    found = node.result("eth_syncing")
    assert found.pop("startingBlock") == "0x1"
    assert found.pop("currentBlock") == "0x2"
    assert found.pop("highestBlock") == "0x6"
    assert set(found.values()) == {"0x0"}
    assert len(found) == 15
    follower(best_number=2, starting_number=None)
    assert node.result("eth_syncing") is False


@pytest.mark.parametrize(
    "fields",
    [
        {"best_number": None},
        {"best_number": 2, "updated_at": timezone.now() - timedelta(seconds=40)},
    ],
    ids=["no upstream responds", "the follower is silent"],
)
def test_syncing_while_it_is_unknown_what_is_missing(node, fields):
    follower(starting_number=None, **fields)
    found = node.result("eth_syncing")
    assert (found["startingBlock"], found["highestBlock"]) == ("0x2", "0x2")
    assert node.result("eth_syncing", network="files") is False


# Removed upstreams


def test_changed_upstreams_are_used_at_once(node):
    node.all_methods(eth_sendRawTransaction=HASH)
    node.send()
    node.running.until(lambda: node.sent() == [1, 1])
    Network.objects.get(slug="live").upstreams.all()[0].delete()
    node.running.ask(node.running.service.directory.refresh)
    node.send()
    assert node.sent() == [1, 2]


# Transaction pools

POOL = {"pending": {"0x" + "Ab" * 20: {"7": PENDING_TRANSACTION}}, "queued": {}}


@pytest.mark.parametrize(
    ("method", "params", "found"),
    [
        ("txpool_status", [], {"pending": "0x1", "queued": "0x0"}),
        ("txpool_content", [], POOL),
        ("txpool_contentFrom", ["0x" + "ab" * 20], {"pending": {}, "queued": {}}),
        ("txpool_inspect", [], {"pending": {}, "queued": {"0x": {"1": "text"}}}),
    ],
)
def test_pool_is_that_of_the_first_upstream_that_offers_it(node, method, params, found):
    first, second = node.upstreams
    first.methods[method] = refuse(-32601, f"the method {method} does not exist")
    second.methods[method] = found
    assert node.result(method, *params) == found
    assert (method, params) in second.calls
    first.fault = hang_up
    assert node.result(method, *params) == found


def test_pool_that_no_upstream_offers_is_an_error(node):
    first, second = node.upstreams
    first.methods["txpool_status"] = refuse(-32601, "unknown method")
    second.methods["txpool_status"] = refuse(-32000, "not now", [1])
    expected = {"code": -32000, "message": "not now", "data": [1]}
    assert node.error("txpool_status") == expected
    for upstream in node.upstreams:
        upstream.fault = hang_up
    expected = {"code": -32000, "message": "transaction pool is not available"}
    assert node.error("txpool_content") == expected


def test_receipt_is_waited_for_after_sending_to_upstreams(node, blocks):
    (sent,) = blocks.blocks[-1].transactions
    node.all_methods(eth_sendRawTransaction=HASH)
    receipt = node.result("eth_sendRawTransactionSync", "0x" + sent.raw.hex(), None)
    assert receipt["blockNumber"] == "0x2"
    assert node.error("eth_sendRawTransactionSync", "0x" + RAW.hex(), 20) == {
        "code": 4,
        "message": "The transaction was added to the transaction pool but wasn't "
        "processed in 20ms",
        "data": HASH,
    }
