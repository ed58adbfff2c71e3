"""Filters that clients poll, at a service with several worker processes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

from evm.blocks import Block
from evm.hexadecimal import to_hex
from keys.services import set_allowlist
from nodeapi.filters import changes
from tests.nodeapi.test_filters import amounts
from tests.support import chains
from tests.support.live import Api, Live, api_key_of, live_service, request
from tests.support.log_filters import UNKNOWN_ADDRESS
from tests.support.node_sockets import open_socket
from tests.support.tokens import ALICE, BOB, GENESIS, Tokens
from tests.support.waiting import wait_until

NOT_FOUND = (-32000, "filter not found")
ROOM = 2000
"""Bytes of a batch's response: the logs of one block."""


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    with live_service(workers=2) as live:
        yield live


@pytest.fixture(scope="module")
def narrow(module_db: None) -> Iterator[Live]:
    """Serve with little room for the response to a batch."""
    with live_service(env={"NODEAPI_MAX_BATCH_RESPONSE_BYTES": str(ROOM)}) as live:
        yield live


class Net(Tokens):
    """A chain that is imported as a network of its own."""

    numbers = count()

    def __init__(self) -> None:
        super().__init__()
        self.slug = f"net{next(self.numbers)}"
        self.grow(self.chain, 1, amount=1)
        self.follow([], self.chain.blocks)

    def follow(self, apis: Sequence[Api], blocks: Sequence[Block]) -> None:
        """Import blocks, and wait until all workers have the last one."""
        chains.import_blocks(self.slug, GENESIS, blocks)
        self.head = to_hex(blocks[-1].header.hash)
        for api in apis:
            self.wait_for_head(api)

    def wait_for_head(self, api: Api) -> None:
        latest = request("eth_getBlockByNumber", "latest", False)

        def is_known() -> bool:
            response = api.send(latest)
            if response.status_code == 404:  # the worker does not know the network
                return False
            hash_: str = response.json()["result"]["hash"]
            return hash_ == self.head

        wait_until(is_known)

    @contextmanager
    def served(self, live: Live, key: str = "") -> Iterator[Api]:
        """Yield a client of a service that has the network."""
        with live.api(self.slug, key) as api:
            self.wait_for_head(api)
            yield api

    @contextmanager
    def served_twice(self, live: Live) -> Iterator[list[Api]]:
        """Yield a connection to each of the two workers."""
        with live.each_worker(self.slug, live.new_key()) as apis:
            for api in apis:
                self.wait_for_head(api)
            yield apis


@pytest.fixture
def net() -> Net:
    return Net()


def test_changes_are_reported_once_by_whichever_worker_is_asked(
    live: Live, net: Net
) -> None:
    with net.served_twice(live) as (first, second):
        logs = first.result("eth_newFilter", {"address": to_hex(net.token)})
        others = second.result("eth_newFilter", {"address": UNKNOWN_ADDRESS})
        blocks = second.result("eth_newBlockFilter")
        for name in (logs, others, blocks):
            assert first.result("eth_getFilterChanges", name) == []
        added = net.grow(net.chain, 2, amount=5)
        net.follow([first, second], added)
        found = second.result("eth_getFilterChanges", logs)
        assert amounts(found) == [(5, False)] * 4
        span = {"fromBlock": hex(added[0].header.number)}
        assert found == first.result("eth_getLogs", span)
        hashes = [to_hex(block.header.hash) for block in added]
        assert first.result("eth_getFilterChanges", blocks) == hashes
        for name in (logs, others, blocks):
            assert first.result("eth_getFilterChanges", name) == []
            assert second.result("eth_uninstallFilter", name) is True
            assert first.result("eth_uninstallFilter", name) is False
            assert first.error("eth_getFilterChanges", name) == NOT_FOUND


def test_reorganisation_reports_removed_logs_and_then_new_ones(
    live: Live, net: Net
) -> None:
    short, long = net.chain.fork(), net.chain.fork()
    with net.served(live) as api:
        logs, blocks = api.result("eth_newFilter", {}), api.result("eth_newBlockFilter")
        removed = net.grow(short, 2, amount=5)
        net.follow([api], removed)
        before = api.result("eth_getFilterChanges", logs)
        api.result("eth_getFilterChanges", blocks)
        added = net.grow(long, 3, amount=6)
        net.follow([api], added)
        found = api.result("eth_getFilterChanges", logs)
        assert amounts(found) == [(5, True)] * 4 + [(6, False)] * 6
        assert found[:4] == [{**log, "removed": True} for log in before]
        hashes = [to_hex(block.header.hash) for block in added]
        assert api.result("eth_getFilterChanges", blocks) == hashes


def test_many_blocks_are_read_through_the_index(live: Live, net: Net) -> None:
    with net.served(live) as api:
        wanted = {"topics": [None, None, to_hex(bytes(12) + BOB.address)]}
        name = api.result("eth_newFilter", wanted)
        added = net.grow(net.chain, changes.SINGLE_BLOCKS + 1, amount=7)
        net.follow([api], added)
        found = api.result("eth_getFilterChanges", name)
        assert amounts(found) == [(7, False)] * len(added)


def test_range_of_a_filter_limits_what_is_reported(live: Live, net: Net) -> None:
    with net.served(live) as api:
        head = int(api.result("eth_blockNumber"), 16)
        span = {"fromBlock": hex(head + 2), "toBlock": hex(head + 2)}
        name = api.result("eth_newFilter", span)
        net.follow([api], net.grow(net.chain, 3, amount=8))
        found = api.result("eth_getFilterChanges", name)
        assert {log["blockNumber"] for log in found} == {hex(head + 2)}
        # The result contains all matching logs, reported or not.
        assert api.result("eth_getFilterLogs", name) == found
        everything = api.result("eth_newFilter", {"fromBlock": "earliest"})
        stored = api.result("eth_getLogs", {"fromBlock": "0x0"})
        assert api.result("eth_getFilterLogs", everything) == stored
        assert api.result("eth_getFilterChanges", everything) == []


def test_criteria_that_select_no_new_block_are_rejected(live: Live, net: Net) -> None:
    wrong_range = "invalid block range params"
    rejected: list[tuple[Any, str]] = [
        ({"fromBlock": "pending"}, "pending logs are not supported"),
        ({"toBlock": "pending"}, "pending logs are not supported"),
        ({"toBlock": "0x1"}, wrong_range),
        ({"fromBlock": "0x2", "toBlock": "0x1"}, wrong_range),
        ({"fromBlock": "0x2", "toBlock": "earliest"}, wrong_range),
        ({"fromBlock": "safe"}, wrong_range),
        ({"address": 1}, "invalid argument 0: invalid addresses in query"),
    ]
    with net.served(live) as api:
        for criteria, message in rejected:
            assert api.error("eth_newFilter", criteria) == (-32602, message)


def test_filter_belongs_to_its_key_and_network(live: Live, net: Net) -> None:
    secret, other = live.new_key(), Net()
    with (
        net.served(live, secret) as api,
        other.served(live, secret) as elsewhere,
        net.served(live) as stranger,
    ):
        logs, blocks = api.result("eth_newFilter", {}), api.result("eth_newBlockFilter")
        for one in (stranger, elsewhere):
            assert one.error("eth_getFilterChanges", logs) == NOT_FOUND
            assert one.error("eth_getFilterLogs", logs) == NOT_FOUND
            assert one.result("eth_uninstallFilter", logs) is False
        assert api.error("eth_getFilterLogs", blocks) == NOT_FOUND
        for unknown in ("", "0x12", "0x" + "1" * 1000):
            assert api.error("eth_getFilterChanges", unknown) == NOT_FOUND
        assert api.error("eth_getFilterChanges", None) == (
            -32602,
            "missing value for required argument 0",
        )
        assert api.error("eth_getFilterChanges", 1) == (
            -32602,
            "invalid argument 0: json: cannot unmarshal number into Go value of type "
            "rpc.ID",
        )
        assert api.result("eth_getFilterChanges", logs) == []


def test_key_with_contracts_filters_these_only(live: Live, net: Net) -> None:
    secret, address = live.new_key(), to_hex(net.token)
    set_allowlist(api_key=api_key_of(secret), kind="contract", values=[address])
    with net.served(live, secret) as api:
        wait_until(lambda: api.send(request("eth_newFilter", {})).status_code == 403)
        assert api.result("eth_newFilter", {"address": address})


def test_allowlist_that_has_become_stricter_applies_to_existing_filters(
    live: Live, net: Net
) -> None:
    secret, address = live.new_key(), to_hex(net.token)
    with net.served(live, secret) as api:
        allowed = api.result("eth_newFilter", {"address": address})
        name = api.result("eth_newFilter", {})
        set_allowlist(api_key=api_key_of(secret), kind="contract", values=[address])
        for method in ("eth_getFilterChanges", "eth_getFilterLogs"):
            wait_until(lambda: api.send(request(method, name)).status_code == 403)  # noqa: B023  # called at once
            assert api.result(method, allowed) is not None


def test_transactions_of_the_local_pool_are_reported(live: Live, net: Net) -> None:
    chain = net.chain.fork()
    sent = [chain.send(ALICE, BOB.address, value=value) for value in (1, 2)]
    with net.served_twice(live) as (first, second):
        assert first.result("eth_sendRawTransaction", to_hex(sent[0].raw))
        names = second.result("eth_newPendingTransactionFilter")
        objects = first.result("eth_newPendingTransactionFilter", True)
        assert first.result("eth_getFilterChanges", names) == []
        assert first.result("eth_sendRawTransaction", to_hex(sent[1].raw))
        assert first.result("eth_getFilterChanges", names) == [to_hex(sent[1].hash)]
        (found,) = second.result("eth_getFilterChanges", objects)
        assert (found["hash"], found["blockHash"]) == (to_hex(sent[1].hash), None)
        assert second.result("eth_getFilterChanges", names) == []


def test_events_without_room_in_their_batch_are_left_to_the_next_poll(
    narrow: Live, net: Net
) -> None:
    with net.served(narrow) as api:
        logs, blocks = api.result("eth_newFilter", {}), api.result("eth_newBlockFilter")
        added = net.grow(net.chain, 3, amount=5)
        net.follow([api], added)
        polls = [request("eth_getFilterChanges", name) for name in (logs, blocks)]
        long = request("eth_getBlockByNumber", "latest", True)
        answers = api.send([long, long, *polls]).json()
        assert [each["error"]["message"] for each in answers[-2:]] == 2 * [
            "response too large"
        ]
        found = []
        while len(found) < 6:  # there is room for the logs of one block only
            answer, _ = api.send([polls[0], request("eth_chainId")]).json()
            assert amounts(answer["result"]) == [(5, False)] * 2
            found += answer["result"]
        span = {"fromBlock": hex(added[0].header.number)}
        assert found == api.result("eth_getLogs", span)
        hashes = [to_hex(block.header.hash) for block in added]
        assert api.result("eth_getFilterChanges", blocks) == hashes


def test_events_that_a_socket_can_not_send_are_left_to_the_next_poll(
    narrow: Live, net: Net
) -> None:
    async def poll(name: str) -> list[Any]:
        async with await open_socket(narrow, key, net.slug) as node:
            return [await node.ask("eth_getFilterChanges", name) for _ in range(3)]

    key = narrow.new_key()
    with net.served(narrow, key) as api:
        name = api.result("eth_newFilter", {})
        added = net.grow(net.chain, 3, amount=5)
        net.follow([api], added)
        answers = asyncio.run(poll(name))
        assert [amounts(logs) for logs in answers] == 3 * [[(5, False)] * 2]
        assert api.result("eth_getFilterChanges", name) == []
