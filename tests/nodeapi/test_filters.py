"""Filters that clients poll, in this process."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from django.conf import settings

from evm.blocks import Block
from jsonrpc.stream import ResultTooLarge
from networks.models import Network
from networks.services import add_upstream
from nodeapi.errors.logs import TooManyFilters
from nodeapi.errors.relay import TooManyRelayedCalls
from nodeapi.filters import changes, filters
from nodeapi.filters.storage import BLOCKS, FilterState, FilterStorage
from nodeapi.logs.filter import LogFilter, LogSelection
from nodeapi.relay import bounds
from tests.support import chains, copies
from tests.support.serving import Serving, serving
from tests.support.tokens import GENESIS, Tokens
from tests.support.upstream_server import refuse, running_upstream
from tests.support.waiting import in_time

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def tokens() -> Tokens:
    """Return a chain, imported as the network `net`."""
    tokens = Tokens()
    tokens.grow(tokens.chain, 1, amount=1)
    copies.chain("net", GENESIS, tokens.chain.blocks)
    return tokens


def amounts(logs: Sequence[Any]) -> list[tuple[int, bool]]:
    """Return the amounts that logs transfer, and whether they were removed."""
    return [(int(log["data"], 16), log["removed"]) for log in logs]


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
            assert found[0]["blockHash"] == "0x" + block.header.hash.hex()
        assert orjson.loads(running.ask(*poll)) == []


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
