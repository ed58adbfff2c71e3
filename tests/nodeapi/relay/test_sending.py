from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest

from keys.allowlists import make_allowlists
from nodeapi.relay import bounds
from nodeapi.sending.decoding import decode_submission
from tests.nodeapi.relay.node import ALICE, GRANT, HASH, RAW, SEND, UNKNOWN, read
from tests.nodeapi.sending.cases import INVALID, TO, VALID
from tests.support.upstream_server import hang_up, hold, refuse, status
from tests.support.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


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
        third = read(await node.start("eth_getTransactionByHash", UNKNOWN))
        for upstream in node.upstreams:
            await asyncio.to_thread(upstream.release)
        return third, [read(each) for each in await asyncio.gather(*pending)]

    refused, answers = node.running.ask(flood)
    error = refused["error"]
    assert (error["code"], error["data"]["reason"]) == (
        -32005,
        "too_many_relayed_calls",
    )
    assert [each["result"] for each in answers] == [HASH, HASH]


async def _await(later: Any) -> Any:
    return await later
