from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import orjson
import pytest

from networks.models import Network
from networks.services import add_upstream, replace_upstreams
from nodeapi.feeds import pending
from tests.support.rows import add_block, make_network, set_head
from tests.support.serving import Serving, serving
from tests.support.upstream_server import UpstreamServer, refuse, running_upstream

pytestmark = pytest.mark.django_db(transaction=True)

KIND = "newPendingTransactions"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POLL_SECONDS", "CHECK_SECONDS", "RETRY_SECONDS"):
        monkeypatch.setattr(pending, name, 0.05)


@pytest.fixture
def network() -> Network:
    network = make_network()
    add_block(network, "zero", 0)
    set_head(network, "zero", 0)
    return network


@pytest.fixture
def upstream() -> Iterator[UpstreamServer]:
    with running_upstream() as running:
        running.methods["eth_blockNumber"] = "0x0"
        yield running


def name(number: int) -> str:
    return f"0x{number:064x}"


def as_json(number: int) -> bytes:
    return orjson.dumps(name(number))


def subscribe(running: Serving, network: Network, *, full: bool = False) -> Any:
    """Subscribe. Return a list of the reports, and the function that unsubscribes."""
    found: list[bytes] = []
    feed = running.service.pending_feed
    return found, running.ask(feed.subscribe, network.pk, found.append, full)


def serve_objects(upstream: UpstreamServer) -> None:
    """Have an upstream return an object for every hash."""
    upstream.methods["eth_getTransactionByHash"] = lambda found: {
        **{"hash": found, "blockHash": name(1), "blockNumber": "0x1"},
        "transactionIndex": "0x0",
    }


def test_one_subscription_serves_all_subscribers(network, upstream):
    add_upstream(network=network, url=upstream.url("ws"))
    with serving() as running:
        one, end_one = subscribe(running, network)
        two, end_two = subscribe(running, network)
        running.until(lambda: sum(map(len, upstream.sockets.values())) == 1)
        for number in (1, 2, 2):
            assert upstream.notify(KIND, name(number)) == 1
        upstream.notify(KIND, {"not": "a hash"})
        upstream.notify(KIND, name(3))
        expected = [as_json(number) for number in (1, 2, 3)]
        running.until(lambda: one == two == expected)
        running.ask(end_one)
        running.ask(end_one)
        upstream.notify(KIND, name(4))
        running.until(lambda: two == [*expected, as_json(4)])
        assert one == expected
        assert upstream.count("eth_subscribe") == 1
        running.ask(end_two)
        running.until(lambda: not any(upstream.sockets.values()))


def test_objects_have_null_for_their_place_in_a_block(network, upstream):
    serve_objects(upstream)
    add_upstream(network=network, url=upstream.url("ws"))
    with serving() as running:
        hashes, _ = subscribe(running, network)
        objects, _ = subscribe(running, network, full=True)
        running.until(lambda: any(upstream.sockets.values()))
        for number in (1, 2):
            upstream.notify(KIND, name(number))
        running.until(lambda: len(objects) == 2)
        nulls = dict.fromkeys(
            ("blockHash", "blockNumber", "blockTimestamp", "transactionIndex")
        )
        assert [orjson.loads(each) for each in objects] == [
            {"hash": name(number), **nulls} for number in (1, 2)
        ]
        assert hashes == [as_json(1), as_json(2)]


def test_upstream_over_http_is_polled(network, upstream):
    numbers = count(1)
    serve_objects(upstream)
    upstream.methods["eth_newPendingTransactionFilter"] = "0xf"
    upstream.methods["eth_getFilterChanges"] = lambda _: [name(next(numbers))]
    upstream.methods["eth_uninstallFilter"] = True
    add_upstream(network=network, url=upstream.url("http"))
    with serving() as running:
        hashes, end = subscribe(running, network)
        running.until(lambda: len(hashes) >= 3)
        assert hashes[:3] == [as_json(number) for number in (1, 2, 3)]
        assert upstream.count("eth_newPendingTransactionFilter") == 1
        # The node does not know the filter any more, as after a restart.
        upstream.methods["eth_getFilterChanges"] = refuse(-32000, "filter not found")
        running.until(lambda: upstream.count("eth_newPendingTransactionFilter") > 1)
        upstream.methods["eth_getFilterChanges"] = lambda _: [name(next(numbers))]
        known = len(hashes)
        running.until(lambda: len(hashes) > known)
        running.ask(end)
        running.until(lambda: upstream.count("eth_uninstallFilter") >= 2)


def test_another_upstream_takes_over(network, upstream):
    add_upstream(network=network, url=upstream.url("ws"))
    with running_upstream() as second, serving() as running:
        second.methods["eth_blockNumber"] = "0x0"
        add_upstream(network=network, url=second.url("ws"))
        running.ask(running.service.directory.refresh)
        hashes, _ = subscribe(running, network)
        running.until(lambda: any(upstream.sockets.values()))
        upstream.notify(KIND, name(1))
        running.until(lambda: hashes == [as_json(1)])
        upstream.handshake = 503, {}
        upstream.drop()
        running.until(lambda: any(second.sockets.values()))
        for number in (1, 2):  # the first one was reported before
            second.notify(KIND, name(number))
        running.until(lambda: hashes == [as_json(1), as_json(2)])


def test_new_upstream_replaces_a_removed_one(network, upstream):
    with running_upstream() as second, serving() as running:
        second.methods["eth_blockNumber"] = "0x0"
        hashes, _ = subscribe(running, network)
        for server in (upstream, second):
            replace_upstreams(network=network, urls=[server.url("ws")])
            running.ask(running.service.directory.refresh)
            running.until(lambda: any(server.sockets.values()))  # noqa: B023
        running.until(lambda: not any(upstream.sockets.values()))
        second.notify(KIND, name(1))
        running.until(lambda: hashes == [as_json(1)])
