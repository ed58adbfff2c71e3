"""Tags, progress, changed upstreams, and transaction pools of followed networks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from networks.models import Network
from nodeapi.models import FollowerStatus
from tests.nodeapi.relay.node import HASH, PENDING_TRANSACTION, RAW
from tests.support.upstream_server import hang_up, refuse

pytestmark = pytest.mark.django_db(transaction=True)


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
    assert len(found) == 19
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
