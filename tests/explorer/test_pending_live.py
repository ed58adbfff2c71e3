"""Pending transactions on pages of a running service, read from an upstream."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http import HTTPStatus
from threading import Thread
from typing import Any

import pytest

from abi.addresses import checksummed
from abi.definitions import parse_definition
from evm.transactions import Transaction
from explorer.abi_views import upload_abi
from explorer.abis import Abis
from explorer.pending import PendingReader, shown
from keys.models import User
from networks.services import add_upstream
from tests.support.followed import ALICE, FollowedChain
from tests.support.live import Live, live_service
from tests.support.pages import Visit
from tests.support.upstream_node import UpstreamNode, running_node
from tests.support.waiting import wait_until

CREATION = {
    "type": "0x0",
    "from": f"0x{'11' * 20}",
    "to": None,
    "nonce": "0x1",
    "value": "0x0",
    "gas": "0x5208",
    "gasPrice": "0x7",
    "input": "0x6000",
}

RECEIVER = bytes.fromhex("ab" * 20)


@pytest.fixture(scope="module")
def node() -> Iterator[UpstreamNode]:
    with running_node() as running:
        yield running


@pytest.fixture(scope="module")
def chain(module_db: None, node: UpstreamNode) -> FollowedChain:
    chain = FollowedChain()
    chain.grow(2)
    add_upstream(network=chain.network, url=node.url)
    return chain


@pytest.fixture(scope="module")
def live(chain: FollowedChain) -> Iterator[Live]:
    with live_service() as running:
        yield running


@pytest.fixture
def visit(live: Live) -> Iterator[Visit]:
    user, _ = User.objects.get_or_create(email="boss@example.org", is_staff=True)
    visit = Visit(live.base_url, user)
    yield visit
    visit.close()


def as_json(transaction: Transaction, **changes: Any) -> dict[str, Any]:
    """Return a transaction object as a node returns it for a pending transaction."""
    return {
        "hash": f"0x{transaction.hash.hex()}",
        "blockHash": None,
        "type": "0x2",
        "from": f"0x{ALICE.address.hex()}",
        "to": f"0x{RECEIVER.hex()}",
        "nonce": hex(transaction.nonce),
        "value": hex(15 * 10**17),
        "gas": hex(50_000),
        "maxFeePerGas": hex(3 * 10**9),
        "gasPrice": hex(10**9),
        "input": "0xa9059cbb0000",
        **changes,
    }


def test_pending_transactions_are_counted_and_shown(
    visit: Visit, node: UpstreamNode, chain: FollowedChain
) -> None:
    transaction = chain.builder.send(ALICE, RECEIVER, b"", gas=50_000)
    pending = as_json(transaction)
    name = pending["hash"]
    node.answers["eth_getBlockByNumber"] = {
        "number": "0x3",
        "difficulty": "0x0",
        "transactions": [pending, {**pending, "hash": f"0x{'12' * 32}"}],
    }
    node.answers["eth_getTransactionByHash"] = lambda wanted: (
        pending if wanted == name else None
    )
    # A page waits for an upstream only for a moment.
    count = "<dt>pending</dt><dd>2 transactions</dd>"
    wait_until(lambda: count in visit.get("/explore/live/").text)

    page = visit.get(f"/explore/live/tx/{name}").text
    assert '<span class="badge pending"' in page
    for part in (checksummed(RECEIVER), "0xa9059cbb<", "1.5 ether", "3 gwei", "50,000"):
        assert part in page
    unknown = visit.get(f"/explore/live/tx/0x{'34' * 32}")
    assert unknown.status_code == HTTPStatus.NOT_FOUND
    in_block = visit.get(f"/explore/live/tx/{name}?block=0x{'34' * 32}")
    assert in_block.status_code == HTTPStatus.NOT_FOUND

    chain.grow(1, transactions=0)
    page = visit.get(f"/explore/live/tx/{name}").text
    assert "badge pending" not in page
    assert '<span class="badge latest"' in page


def test_an_upstream_that_does_not_respond_hides_no_page(
    visit: Visit, node: UpstreamNode
) -> None:
    node.answers["eth_getBlockByNumber"] = "nonsense"
    page = wait_until(
        lambda: (
            page
            if "<dt>pending" not in (page := visit.get("/explore/live/").text)
            else ""
        )
    )
    assert "Latest blocks" in page


def test_an_upstream_that_fails_after_the_page_was_sent_logs_nothing(
    visit: Visit, node: UpstreamNode
) -> None:
    """The log is checked when the service ends."""
    sent = threading.Event()

    def late(*_: object) -> str:
        sent.wait(60)
        return "nonsense"

    def page_that_asked() -> str:
        asked = len(node.calls)
        page = visit.get("/explore/live/").text
        return page if len(node.calls) > asked else ""

    node.answers["eth_getBlockByNumber"] = late
    assert "<dt>pending" not in wait_until(page_that_asked)
    sent.set()
    node.answers["eth_getBlockByNumber"] = {"difficulty": "0x0", "transactions": []}
    wait_until(lambda: "0 transactions" in visit.get("/explore/live/").text)


def test_pages_do_not_wait_each_time_for_an_upstream_that_is_slow() -> None:
    """A reader has a timeout, after which it does not ask the upstream for a while."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    asked: list[int] = []
    ended = threading.Event()

    class Slow:
        upstreams = ("one",)

        async def pending_block(self, network: object, payer: int) -> None:
            asked.append(payer)
            try:
                await asyncio.sleep(3600)
            finally:
                ended.set()

        def get(self, network_id: int) -> Slow:
            return self

    try:
        reader = PendingReader(Slow(), Slow(), loop)
        assert [reader.count(1) for _ in range(3)] == [None] * 3
        assert len(asked) == 1
        assert ended.wait(60)  # the request was cancelled
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.mark.parametrize(
    "change",
    [
        *({"value": "much"}, {"from": None}, {"type": 2}, {"input": "0x0"}),
        *({"gas": []}, {"to": "<b>"}),
    ],
)
def test_a_malformed_object_is_not_shown(change: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        shown(b"\1" * 32, {**CREATION, **change})


def test_uploaded_definitions_name_a_pending_call(chain: FollowedChain) -> None:
    user, _ = User.objects.get_or_create(email="pets@example.org")
    upload_abi(
        network=chain.network,
        user=user,
        name="Pets",
        address=RECEIVER,
        text='[{"type":"function","name":"feed","inputs":[]}]',
    )
    data = f"0x{parse_definition('function feed()').key.hex()}"
    abis = Abis(chain.network, user)
    pets, others = (
        shown(b"\1" * 32, {**CREATION, "to": to, "input": data}, abis)
        for to in (f"0x{RECEIVER.hex()}", f"0x{'cd' * 20}")
    )
    assert pets.call is not None
    assert pets.call.name == "feed"
    assert others.call is None


def test_a_creation_has_neither_receiver_nor_selector() -> None:
    found = shown(b"\1" * 32, CREATION)
    assert (found.to, found.selector, found.type) == ("", "", "0, legacy")
    assert found.fee == "0.000000007 gwei"
