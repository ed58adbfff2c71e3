"""Long trace records are read in parts, in bounded memory, during other changes."""

from __future__ import annotations

import asyncio
import os
import time
from functools import cache

import pytest
from django.db import connection

from jsonrpc.stream import Stream
from networks.models import Network
from nodeapi.errors.traces import TraceTooLarge
from nodeapi.models import Block
from postgres.errors import Unavailable
from tests.support.reading import (
    MEBIBYTE,
    PROXY,
    SHORT,
    TOKEN,
    calls_of,
    digits,
    prestates_of,
    read,
    recorded_network,
)
from tests.support.records import Recorded, add_recorded_block
from tests.support.rows import hash_of
from tests.support.serving import serving

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def network() -> Network:
    return recorded_network()


@cache
def long_block() -> list[Recorded]:
    """Return transactions of all lengths that are read in different ways."""
    code = os.urandom(100_000)
    return [
        Recorded("small", codes=[TOKEN]),
        Recorded("zeros", output=b"0" * 3 * MEBIBYTE),
        Recorded("random", output=digits(1_500_000), codes=[code, PROXY, code[1:]]),
        *(Recorded(f"s{i}", output=digits(2_000), codes=[TOKEN]) for i in range(700)),
        Recorded("data", data=os.urandom(300_000)),
        Recorded("middle", output=digits(200_000), codes=[code] * 20),
    ]


def test_a_long_answer_is_streamed_as_it_would_be_put_together(
    network: Network,
) -> None:
    transactions = long_block()
    add_recorded_block(network, "one", 1, transactions)
    with serving() as running:
        answer = read(running, "block_trace", network, hash_of("one"), "calls")
        assert answer == calls_of(transactions)
        answer = read(running, "block_trace", network, hash_of("one"), "prestate")
        assert answer == prestates_of(transactions)
        for index in (1, 2, len(transactions) - 1):
            for kind, expected in (
                ("calls", transactions[index].calls(index)),
                ("prestate", transactions[index].prestate()),
            ):
                answer = read(
                    running, "transaction_trace", network, hash_of("one"), index, kind
                )
                assert answer == expected


def test_a_long_answer_with_too_large_a_transaction_never_begins(
    network: Network,
) -> None:
    transactions = [*long_block(), Recorded("huge", too_large=True)]
    add_recorded_block(network, "one", 1, transactions)
    with serving() as running, pytest.raises(TraceTooLarge):
        read(running, "block_trace", network, hash_of("one"), "calls")


def test_many_long_answers_at_the_same_time(network: Network) -> None:
    transactions = long_block()
    add_recorded_block(network, "one", 1, transactions)
    expected = calls_of(transactions)

    with serving() as running:

        async def answer() -> bytes:
            store = running.service.store
            stream = await store.block_trace(network.pk, hash_of("one"), "calls")
            assert isinstance(stream, Stream)
            return b"".join([chunk async for chunk in stream])

        for found in running.ask_all(*[(answer,)] * 8):
            assert found == expected


def resident_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_and_turns_do_not_grow_with_the_answer(network: Network) -> None:
    block = [
        Recorded("zeros", output=b"0" * 60 * MEBIBYTE),
        Recorded("random", output=digits(30 * MEBIBYTE)),
        *(Recorded(f"s{i}", output=digits(20_000)) for i in range(600)),
    ]
    add_recorded_block(network, "one", 1, block)
    del block
    longest_turn = turns = most = size = 0.0

    async def watch() -> None:
        nonlocal longest_turn, turns, most
        while True:
            before = time.thread_time()  # processor time, not wall time
            await asyncio.sleep(0)
            turn = time.thread_time() - before
            longest_turn, turns = max(longest_turn, turn), turns + turn
            most = max(most, resident_bytes())

    with serving() as running:

        async def answer() -> None:
            nonlocal size
            watcher = asyncio.create_task(watch())
            await asyncio.sleep(0)
            store = running.service.store
            stream = await store.block_trace(network.pk, hash_of("one"), "calls")
            assert isinstance(stream, Stream)
            async for chunk in stream:
                size += len(chunk)
                await asyncio.sleep(0)
            watcher.cancel()

        running.ask(answer)  # threads and buffers exist by now
        size, most, before = 0, 0, resident_bytes()
        longest_turn = turns = 0
        running.ask(answer)
    assert size > 100 * MEBIBYTE
    assert most - before < 32 * MEBIBYTE
    assert longest_turn < turns / 4, "the event loop was held up"


def test_an_outage_is_reported_while_nothing_was_sent(network: Network) -> None:
    add_recorded_block(network, "one", 1, SHORT)
    with serving() as running:
        running.ask(running.service.connections.close)
        for method, rest in (
            ("block_trace", (hash_of("one"), "calls")),
            ("transaction_trace", (hash_of("one"), 0, "prestate")),
            ("find_transaction", (SHORT[0].hash,)),
            ("receipt", (SHORT[0].hash,)),
            ("block_receipts", (hash_of("one"),)),
            ("raw_block", (hash_of("one"),)),
            ("trace_sizes", (hash_of("one"),)),
        ):
            with pytest.raises(Unavailable):
                read(running, method, network, *rest)


def test_records_that_go_while_they_are_read_break_the_answer(
    network: Network,
) -> None:
    block = add_recorded_block(network, "one", 1, long_block())
    with serving() as running:

        async def answer() -> None:
            store = running.service.store
            stream = await store.block_trace(network.pk, hash_of("one"), "calls")
            assert isinstance(stream, Stream)
            async for _ in stream:
                await asyncio.to_thread(_delete, block)

        with pytest.raises(Unavailable):
            running.ask(answer)


def _delete(block: Block) -> None:
    Block.objects.filter(pk=block.pk).delete()
    connection.close()
