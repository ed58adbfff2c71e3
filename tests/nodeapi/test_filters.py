"""Filters that clients poll, at a service with several worker processes."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
import pytest
from django.conf import settings

from evm.blocks import Block
from jsonrpc.stream import ResultTooLarge
from keys.services import set_allowlist
from networks.models import Network
from networks.services import add_upstream
from nodeapi.errors.logs import TooManyFilters
from nodeapi.errors.relay import TooManyRelayedCalls
from nodeapi.filters import changes, filters
from nodeapi.filters.storage import BLOCKS, FilterState, FilterStorage
from nodeapi.logs.filter import LogFilter, LogSelection
from nodeapi.relay import bounds
from tests.support import chains, copies
from tests.support.live import Api, Live, api_key_of, live_service, request
from tests.support.log_filters import UNKNOWN_ADDRESS
from tests.support.node_sockets import open_socket
from tests.support.serving import Serving, serving
from tests.support.tokens import ALICE, BOB, GENESIS, Tokens
from tests.support.upstream_server import refuse, running_upstream
from tests.support.waiting import in_time, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

NOT_FOUND = (-32000, "filter not found")


def text(value: bytes) -> str:
    return "0x" + value.hex()


@pytest.fixture
def tokens() -> Tokens:
    """Return a chain, imported as the network `net`."""
    tokens = Tokens()
    tokens.grow(tokens.chain, 1, amount=1)
    copies.chain("net", GENESIS, tokens.chain.blocks)
    return tokens


@pytest.fixture
def live(tokens: Tokens) -> Iterator[Live]:
    with live_service(workers=2) as live:
        yield live


def follow(apis: Sequence[Api], blocks: Sequence[Block]) -> None:
    """Import blocks, and wait until all workers have the last one."""
    chains.import_blocks("net", GENESIS, blocks)
    head = text(blocks[-1].header.hash)
    for api in apis:
        wait_until(
            lambda: api.result("eth_getBlockByNumber", "latest", False)["hash"] == head  # noqa: B023  # called at once
        )


def amounts(logs: Sequence[Any]) -> list[tuple[int, bool]]:
    """Return the amounts that logs transfer, and whether they were removed."""
    return [(int(log["data"], 16), log["removed"]) for log in logs]


def test_changes_are_reported_once_by_whichever_worker_is_asked(
    tokens: Tokens, live: Live
) -> None:
    with live.each_worker("net", live.new_key()) as (first, second):
        logs = first.result("eth_newFilter", {"address": text(tokens.token)})
        others = second.result("eth_newFilter", {"address": UNKNOWN_ADDRESS})
        blocks = second.result("eth_newBlockFilter")
        for name in (logs, others, blocks):
            assert first.result("eth_getFilterChanges", name) == []
        added = tokens.grow(tokens.chain, 2, amount=5)
        follow([first, second], added)
        found = second.result("eth_getFilterChanges", logs)
        assert amounts(found) == [(5, False)] * 4
        span = {"fromBlock": hex(added[0].header.number)}
        assert found == first.result("eth_getLogs", span)
        hashes = [text(block.header.hash) for block in added]
        assert first.result("eth_getFilterChanges", blocks) == hashes
        for name in (logs, others, blocks):
            assert first.result("eth_getFilterChanges", name) == []
            assert second.result("eth_uninstallFilter", name) is True
            assert first.result("eth_uninstallFilter", name) is False
            assert first.error("eth_getFilterChanges", name) == NOT_FOUND


def test_reorganisation_reports_removed_logs_and_then_new_ones(
    tokens: Tokens, live: Live
) -> None:
    short, long = tokens.chain.fork(), tokens.chain.fork()
    with live.api("net") as api:
        logs, blocks = api.result("eth_newFilter", {}), api.result("eth_newBlockFilter")
        removed = tokens.grow(short, 2, amount=5)
        follow([api], removed)
        before = api.result("eth_getFilterChanges", logs)
        api.result("eth_getFilterChanges", blocks)
        added = tokens.grow(long, 3, amount=6)
        follow([api], added)
        found = api.result("eth_getFilterChanges", logs)
        assert amounts(found) == [(5, True)] * 4 + [(6, False)] * 6
        assert found[:4] == [{**log, "removed": True} for log in before]
        hashes = [text(block.header.hash) for block in added]
        assert api.result("eth_getFilterChanges", blocks) == hashes


def test_many_blocks_are_read_through_the_index(tokens: Tokens, live: Live) -> None:
    with live.api("net") as api:
        wanted = {"topics": [None, None, text(bytes(12) + BOB.address)]}
        name = api.result("eth_newFilter", wanted)
        added = tokens.grow(tokens.chain, changes.SINGLE_BLOCKS + 1, amount=7)
        follow([api], added)
        found = api.result("eth_getFilterChanges", name)
        assert amounts(found) == [(7, False)] * len(added)


def test_range_of_a_filter_limits_what_is_reported(tokens: Tokens, live: Live) -> None:
    with live.api("net") as api:
        head = int(api.result("eth_blockNumber"), 16)
        span = {"fromBlock": hex(head + 2), "toBlock": hex(head + 2)}
        name = api.result("eth_newFilter", span)
        follow([api], tokens.grow(tokens.chain, 3, amount=8))
        found = api.result("eth_getFilterChanges", name)
        assert {log["blockNumber"] for log in found} == {hex(head + 2)}
        # The result contains all matching logs, reported or not.
        assert api.result("eth_getFilterLogs", name) == found
        everything = api.result("eth_newFilter", {"fromBlock": "earliest"})
        stored = api.result("eth_getLogs", {"fromBlock": "0x0"})
        assert api.result("eth_getFilterLogs", everything) == stored
        assert api.result("eth_getFilterChanges", everything) == []


@pytest.mark.parametrize(
    ("criteria", "message"),
    [
        ({"fromBlock": "pending"}, "pending logs are not supported"),
        ({"toBlock": "pending"}, "pending logs are not supported"),
        ({"toBlock": "0x1"}, "invalid block range params"),
        ({"fromBlock": "0x2", "toBlock": "0x1"}, "invalid block range params"),
        ({"fromBlock": "0x2", "toBlock": "earliest"}, "invalid block range params"),
        ({"fromBlock": "safe"}, "invalid block range params"),
        ({"address": 1}, "invalid argument 0: invalid addresses in query"),
    ],
)
def test_criteria_that_select_no_new_block_are_rejected(
    criteria: Any, message: str, tokens: Tokens
) -> None:
    with live_service() as live, live.api("net") as api:
        assert api.error("eth_newFilter", criteria) == (-32602, message)


def test_filter_belongs_to_its_key_and_network(tokens: Tokens, live: Live) -> None:
    chains.import_blocks("other", GENESIS, tokens.chain.blocks)
    secret = live.new_key()
    with (
        live.api("net", secret) as api,
        live.api("other", secret) as elsewhere,
        live.api("net") as stranger,
    ):
        logs, blocks = api.result("eth_newFilter", {}), api.result("eth_newBlockFilter")
        for one in (stranger, elsewhere):
            assert one.error("eth_getFilterChanges", logs) == NOT_FOUND
            assert one.error("eth_getFilterLogs", logs) == NOT_FOUND
            assert one.result("eth_uninstallFilter", logs) is False
        assert api.error("eth_getFilterLogs", blocks) == NOT_FOUND
        for unknown in ("", "0x12", "0x" + "1" * 1000, None):
            assert api.error("eth_getFilterChanges", unknown) == NOT_FOUND
        assert api.error("eth_getFilterChanges", 1) == (
            -32602,
            "invalid argument 0: json: cannot unmarshal number into Go value of type "
            "rpc.ID",
        )
        assert api.result("eth_getFilterChanges", logs) == []


def test_key_with_contracts_filters_these_only(tokens: Tokens, live: Live) -> None:
    secret, address = live.new_key(), text(tokens.token)
    set_allowlist(api_key=api_key_of(secret), kind="contract", values=[address])
    with live.api("net", secret) as api:
        wait_until(lambda: api.send(request("eth_newFilter", {})).status_code == 403)
        assert api.result("eth_newFilter", {"address": address})


def test_allowlist_that_has_become_stricter_applies_to_existing_filters(
    tokens: Tokens, live: Live
) -> None:
    secret, address = live.new_key(), text(tokens.token)
    with live.api("net", secret) as api:
        allowed = api.result("eth_newFilter", {"address": address})
        name = api.result("eth_newFilter", {})
        set_allowlist(api_key=api_key_of(secret), kind="contract", values=[address])
        for method in ("eth_getFilterChanges", "eth_getFilterLogs"):
            wait_until(lambda: api.send(request(method, name)).status_code == 403)  # noqa: B023  # called at once
            assert api.result(method, allowed) is not None


def test_transactions_of_the_local_pool_are_reported(
    tokens: Tokens, live: Live
) -> None:
    chain = tokens.chain.fork()
    sent = [chain.send(ALICE, BOB.address, value=value) for value in (1, 2)]
    with live.each_worker("net", live.new_key()) as (first, second):
        assert first.result("eth_sendRawTransaction", text(sent[0].raw))
        names = second.result("eth_newPendingTransactionFilter")
        objects = first.result("eth_newPendingTransactionFilter", True)
        assert first.result("eth_getFilterChanges", names) == []
        assert first.result("eth_sendRawTransaction", text(sent[1].raw))
        assert first.result("eth_getFilterChanges", names) == [text(sent[1].hash)]
        (found,) = second.result("eth_getFilterChanges", objects)
        assert (found["hash"], found["blockHash"]) == (text(sent[1].hash), None)
        assert second.result("eth_getFilterChanges", names) == []


def test_pending_transactions_of_an_upstream_are_reported(
    tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = Network.objects.get(slug="net")
    hashes = ["0x" + f"{number:064x}" for number in range(3)]
    with running_upstream() as upstream, serving() as running:
        upstream.methods["eth_newPendingTransactionFilter"] = "0xf"
        upstream.methods["eth_getFilterChanges"] = hashes[:2]
        add_upstream(network=network, url=upstream.url("http"))
        running.ask(running.service.directory.refresh)
        (view,) = running.service.directory.all()
        service = running.service

        async def add() -> str:
            return await service.filters.add_pending(view, 7, is_full=False)

        name = running.ask(add)
        poll = (service.filters.poll, view, 7, name, everything, 7, 2**30)
        assert orjson.loads(running.ask(*poll)) == hashes[:2]
        # The upstream has lost the filter: the next poll creates another one.
        upstream.methods["eth_getFilterChanges"] = refuse(-32000, "filter not found")
        assert orjson.loads(running.ask(*poll)) == []
        upstream.methods["eth_getFilterChanges"] = hashes[2:]
        assert orjson.loads(running.ask(*poll)) == hashes[2:]
        assert upstream.count("eth_newPendingTransactionFilter") == 2
        # The upstream reports each event once. Those that do not fit are kept.
        with pytest.raises(ResultTooLarge):
            running.ask(*poll[:-1], 10)
        upstream.methods["eth_getFilterChanges"] = hashes[:1]
        assert orjson.loads(running.ask(*poll)) == hashes[2:]
        assert orjson.loads(running.ask(*poll)) == hashes[:1]
        monkeypatch.setattr(bounds, "MAX_CALLS_OF_KEY", 0)
        for call in (poll, (add,)):
            with pytest.raises(TooManyRelayedCalls):
                running.ask(*call)


def test_filter_expires_unless_it_is_polled() -> None:
    owner = secrets.randbits(60)
    state = FilterState(network_id=1, kind=BLOCKS).encode()

    async def expire() -> None:
        storage = FilterStorage(settings.REDIS_URL, expiry=1.5, max_filters=2)
        try:
            polled, other = (
                await storage.add(owner, state),
                await storage.add(owner, state),
            )
            with pytest.raises(TooManyFilters):
                await storage.add(owner, state)
            assert await storage.add(owner + 1, state)

            async def is_gone() -> bool:
                assert await storage.replace(owner, polled, state, state)
                return await storage.read(owner, other) is None

            while not await is_gone():
                await asyncio.sleep(0.005)
            assert await storage.read(owner, polled) == state
            # An expired filter no longer counts.
            assert await storage.add(owner, state)
            assert not await storage.replace(owner, other, state, state)
        finally:
            await storage.close()

    asyncio.run(in_time(expire()))


def test_states_of_the_filters_of_a_key_have_a_maximum_size() -> None:
    owner = secrets.randbits(60)
    state = FilterState(network_id=1, kind=BLOCKS).encode()

    async def add() -> None:
        storage = FilterStorage(settings.REDIS_URL, max_bytes=2 * len(state))
        try:
            first = await storage.add(owner, state)
            await storage.add(owner, state)
            with pytest.raises(TooManyFilters, match=f"{2 * len(state)} bytes"):
                await storage.add(owner, state)
            assert await storage.add(owner + 1, state)
            assert await storage.remove(owner, first)
            assert await storage.add(owner, state)
        finally:
            await storage.close()

    asyncio.run(in_time(add()))


def test_poll_that_is_overtaken_is_repeated(tokens: Tokens) -> None:
    """Of two concurrent polls, each log is in exactly one result."""
    with serving() as running:
        poll = polling(running)
        take_over(running, tokens.grow(tokens.chain, 2, amount=9))
        answers = running.ask_all(poll, poll)
        assert sorted(map(len, answers))[0] == len(b"[]")
        assert sum(answer.count(b'"removed":false') for answer in answers) == 4


@pytest.mark.parametrize("max_logs", [1, 5])
def test_poll_reports_more_logs_than_a_search_returns(
    tokens: Tokens, max_logs: int
) -> None:
    with serving() as running:
        running.service.store.max_logs = max_logs
        poll = polling(running)
        added = tokens.grow(tokens.chain, changes.SINGLE_BLOCKS + 4, amount=9)
        take_over(running, added)
        numbers = [block.header.number for block in added for _ in range(2)]
        found = orjson.loads(running.ask(*poll))
        assert [int(log["blockNumber"], 16) for log in found] == numbers
        assert orjson.loads(running.ask(*poll)) == []


def test_long_answer_is_continued_by_the_next_poll(
    tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    short, long = tokens.chain.fork(), tokens.chain.fork()
    with serving() as running:
        poll = polling(running)
        take_over(running, tokens.grow(short, 2, amount=5))
        before = orjson.loads(running.ask(*poll))
        assert amounts(before) == [(5, False)] * 4
        added = tokens.grow(long, 3, amount=6)
        take_over(running, added)
        monkeypatch.setattr(filters, "POLL_BYTES", 1)
        # The blocks of the former chain are reported in one result.
        found = orjson.loads(running.ask(*poll))
        assert found == [{**log, "removed": True} for log in before]
        for block in added:
            found = orjson.loads(running.ask(*poll))
            assert amounts(found) == [(6, False)] * 2
            assert found[0]["blockHash"] == text(block.header.hash)
        assert orjson.loads(running.ask(*poll)) == []


def test_events_without_room_in_their_batch_are_left_to_the_next_poll(
    tokens: Tokens,
) -> None:
    env = {"NODEAPI_MAX_BATCH_RESPONSE_BYTES": "2000"}
    with live_service(env=env) as live, live.api("net") as api:
        logs, blocks = api.result("eth_newFilter", {}), api.result("eth_newBlockFilter")
        added = tokens.grow(tokens.chain, 3, amount=5)
        follow([api], added)
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
        hashes = [text(block.header.hash) for block in added]
        assert api.result("eth_getFilterChanges", blocks) == hashes


def test_events_that_a_socket_can_not_send_are_left_to_the_next_poll(
    tokens: Tokens,
) -> None:
    async def poll(name: str) -> list[Any]:
        async with await open_socket(live, key, "net") as node:
            return [await node.ask("eth_getFilterChanges", name) for _ in range(3)]

    env = {"NODEAPI_MAX_BATCH_RESPONSE_BYTES": "2000"}
    with live_service(env=env) as live:
        key = live.new_key()
        with live.api("net", key) as api:
            name = api.result("eth_newFilter", {})
            added = tokens.grow(tokens.chain, 3, amount=5)
            follow([api], added)
            answers = asyncio.run(poll(name))
            assert [amounts(logs) for logs in answers] == 3 * [[(5, False)] * 2]
            assert api.result("eth_getFilterChanges", name) == []


def test_filter_stays_before_logs_that_do_not_fit(tokens: Tokens) -> None:
    with serving() as running:
        poll = polling(running)
        take_over(running, tokens.grow(tokens.chain, 2, amount=9))
        for _ in range(2):
            with pytest.raises(ResultTooLarge, match="at most 100 are possible; "):
                running.ask(*poll[:-1], 100)
        assert amounts(orjson.loads(running.ask(*poll))) == [(9, False)] * 4


def polling(running: Serving, room: int = 2**30) -> tuple[Any, ...]:
    """Create a filter of all logs, and return the call that polls it.

    room: bytes that the answer may have.
    """
    service = running.service
    (network,) = service.directory.all()
    name = running.ask(service.filters.add_logs, network, 7, {"topics": []})
    return service.filters.poll, network, 7, name, everything, 7, room


def take_over(running: Serving, blocks: Sequence[Block]) -> None:
    """Import blocks, and wait until the service has the new head."""
    chains.import_blocks("net", GENESIS, blocks)
    running.ask(running.service.subscriber.catch_up)
    running.ask(running.service.directory.refresh)


def everything(criteria: dict[str, Any]) -> LogSelection:
    """Return a selection of all logs."""
    return LogSelection(LogFilter(None, ()))
