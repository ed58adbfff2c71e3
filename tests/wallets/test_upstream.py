from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator

import pytest

from tests.support.upstream_node import (
    PATH,
    Refused,
    UpstreamNode,
    hang_up,
    refuse,
    running_node,
    sleep,
)
from tests.support.upstream_server import running_upstream
from wallets import upstream
from wallets.signing.transactions import GasPrices, read_transaction
from wallets.upstream import Upstream, UpstreamRefused, UpstreamUnavailable

SENDER = "0x" + "a1" * 20
TRANSFER = read_transaction({"from": SENDER, "to": SENDER, "value": "0x1"})
CALL = read_transaction({"from": SENDER, "to": SENDER, "data": "0x12345678"})


@pytest.fixture(scope="module")
def server() -> Iterator[UpstreamNode]:
    with running_node() as running:
        yield running


@pytest.fixture
def node(server: UpstreamNode) -> UpstreamNode:
    server.__init__(server.url)  # type: ignore[misc]  # as new
    return server


def ask(node: UpstreamNode, method: str, *arguments: object):
    return asyncio.run(getattr(Upstream(node.url), method)(*arguments))


def test_headers_are_sent(node: UpstreamNode):
    asked = Upstream(node.url, {"X-Key": "SECRET", "content-type": "text/plain"})
    assert asyncio.run(asked.chain_id()) == 1
    assert node.headers["X-Key"] == "SECRET"
    assert node.headers.get_all("Content-Type") == ["application/json"]
    assert "SECRET" not in repr(asked)


def test_what_gas_costs(node: UpstreamNode):
    assert ask(node, "prices") == GasPrices(7 * 10**9, 10**9)
    node.answers["eth_maxPriorityFeePerGas"] = refuse(-32601, "no such method")
    assert ask(node, "prices") == GasPrices(7 * 10**9, 10**9)
    node.base_fee = None
    assert ask(node, "prices") == GasPrices(None, 8 * 10**9)


def test_estimates_get_a_margin_unless_they_are_exact(node: UpstreamNode):
    assert ask(node, "gas", TRANSFER) == 21_000
    assert ask(node, "gas", CALL) == 50_000
    assert node.calls == ["eth_estimateGas"] * 2
    given = read_transaction({"from": SENDER, "to": SENDER, "gas": "0x5208"})
    assert ask(node, "gas", given) == 21_000
    assert len(node.calls) == 2


def test_errors_are_passed_on_as_they_are(node: UpstreamNode):
    node.answers["eth_estimateGas"] = refuse(3, "execution reverted: no", "0x08c3")
    with pytest.raises(UpstreamRefused) as caught:
        ask(node, "gas", CALL)
    error = caught.value
    assert (error.code, error.message, error.data) == (
        *(3, "execution reverted: no"),
        "0x08c3",
    )
    node.answers["eth_estimateGas"] = refuse(3, "x" * 10_000, "y" * 10_000)
    with pytest.raises(UpstreamRefused) as caught:
        ask(node, "gas", CALL)
    assert (len(caught.value.message), caught.value.data) == (500, None)
    node.answers["eth_estimateGas"] = refuse(3, "no\0no", "0\0")
    with pytest.raises(UpstreamRefused) as caught:
        ask(node, "gas", CALL)
    # The database can't store zero characters, but has to store a transaction's outcome.
    assert (caught.value.message, caught.value.data) == ("no\ufffdno", "0\ufffd")


def test_transaction_that_it_has_already_is_well(node: UpstreamNode):
    node.answers["eth_sendRawTransaction"] = refuse(-32000, "already known")
    ask(node, "send", b"\x01")
    node.answers["eth_sendRawTransaction"] = refuse(-32000, "nonce too low")
    with pytest.raises(UpstreamRefused, match="nonce too low"):
        ask(node, "send", b"\x01")


@pytest.mark.parametrize(
    "answer",
    [None, 5, "5", "0x", hex(2**64), "0x" + "f" * 65, [], "x" * 2 * 2**20, hang_up],
    ids=lambda answer: answer.__name__ if callable(answer) else repr(answer)[:9],
)
def test_what_is_no_answer_is_none(node: UpstreamNode, answer):
    node.answers["eth_chainId"] = answer
    with pytest.raises(UpstreamUnavailable):
        ask(node, "chain_id")


@pytest.mark.parametrize(
    ("method", "name", "arguments"),
    [
        ("nonce", "eth_getTransactionCount", ["0x" + "11" * 20]),
        ("gas", "eth_estimateGas", [CALL]),
        ("prices", "eth_maxPriorityFeePerGas", []),
    ],
)
def test_number_that_no_transaction_can_have_is_none(
    node: UpstreamNode, method: str, name: str, arguments: list
):
    node.answers[name] = hex(2**128)
    with pytest.raises(UpstreamUnavailable, match="exceeds"):
        ask(node, method, *arguments)


@pytest.mark.parametrize("error", [5, {}, {"code": "x", "message": "y"}, {"code": 1}])
def test_error_that_is_none_is_no_answer(node: UpstreamNode, error):
    def answer() -> None:
        raise Refused(error)

    node.answers["eth_chainId"] = answer
    with pytest.raises(UpstreamUnavailable):
        ask(node, "chain_id")


def test_node_that_takes_its_time_is_given_up(node: UpstreamNode, monkeypatch):
    monkeypatch.setattr(upstream, "CALL_SECONDS", 0.2)
    node.answers["eth_chainId"] = sleep
    with pytest.raises(UpstreamUnavailable):
        ask(node, "chain_id")


def test_node_that_is_not_there_is_away():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}{PATH}"
        with pytest.raises(UpstreamUnavailable):
            asyncio.run(Upstream(url).chain_id())


@pytest.mark.parametrize("url", ["http://[::/x", "http://a b/", "ftp://localhost/"])
def test_address_that_is_none_is_away(url):
    with pytest.raises(UpstreamUnavailable):
        asyncio.run(Upstream(url).chain_id())


def test_node_may_be_asked_over_a_websocket():
    with running_upstream() as server:
        server.methods["eth_chainId"] = "0x5"
        assert asyncio.run(Upstream(server.ws_url, {"X-Key": "a"}).chain_id()) == 5
        assert server.headers["x-key"] == "a"


def test_address_is_in_no_log_and_no_error(node: UpstreamNode, caplog):
    caplog.set_level(logging.DEBUG)
    ask(node, "chain_id")
    node.answers["eth_chainId"] = hang_up
    with pytest.raises(UpstreamUnavailable) as caught:
        ask(node, "chain_id")
    logged = caplog.text + repr(caught.value) + repr(Upstream(node.url))
    assert PATH not in logged
