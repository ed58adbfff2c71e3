"""The results of `TraceSearch` equal those of filtering all traces of the chain."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson
import psycopg
import pytest

from networks.models import Network
from nodeapi.chain.database import importer_connection
from nodeapi.errors.blocks import NotCanonical
from nodeapi.errors.traces import TraceTooLarge
from nodeapi.models import Block
from nodeapi.tracing.trace_filter import TraceFilter, TraceSearch
from tests.support import chains, copies, sample

Trace = dict[str, Any]
HEAD = len(sample.raw_blocks())


@pytest.fixture(scope="module")
def connection(module_db: None) -> Iterator[psycopg.Connection[Any]]:
    copies.sample_chain()
    with importer_connection() as connection:
        yield connection


def search(connection: psycopg.Connection[Any], wanted: TraceFilter) -> list[Trace]:
    network = Network.objects.get(slug="sample").pk
    block = Block.objects.get(network=network, number=wanted.last, is_canonical=True)
    parts: list[bytes] = []
    with connection.transaction():
        search = TraceSearch(connection, network, bytes(block.hash), wanted)
        search.run(parts.append)
    found: list[Trace] = orjson.loads(b"".join(parts))
    return found


@pytest.fixture(scope="module")
def everything(connection: psycopg.Connection[Any]) -> list[Trace]:
    """Return all traces of the chain."""
    return search(connection, TraceFilter(first=0, last=HEAD))


def ends(trace: Trace) -> tuple[str | None, str | None]:
    """Return sender and recipient of a trace."""
    action = trace["action"]
    if trace["type"] == "create":
        return action["from"], (trace.get("result") or {}).get("address")
    if trace["type"] == "suicide":
        return action["address"], action["refundAddress"]
    if trace["type"] == "reward":
        return None, action["author"]
    return action["from"], action["to"]


def address(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def test_every_account_is_found_in_all_its_traces(
    connection: psycopg.Connection[Any], everything: list[Trace]
) -> None:
    kinds = {trace["type"] for trace in everything}
    assert kinds == {"call", "create", "suicide", "reward"}
    senders = {sender for sender, _ in map(ends, everything) if sender}
    recipients = {to for _, to in map(ends, everything) if to}
    assert len(senders) > 5 and len(recipients) > 20
    for account in senders:
        wanted = TraceFilter(first=0, last=HEAD, senders=frozenset({address(account)}))
        expected = [trace for trace in everything if ends(trace)[0] == account]
        assert search(connection, wanted) == expected
    for account in recipients:
        wanted = TraceFilter(
            first=0, last=HEAD, recipients=frozenset({address(account)})
        )
        expected = [trace for trace in everything if ends(trace)[1] == account]
        assert search(connection, wanted) == expected


@pytest.mark.parametrize("needs_both", [False, True])
def test_senders_and_recipients_are_combined(
    connection: psycopg.Connection[Any], everything: list[Trace], needs_both: bool
) -> None:
    chance = random.Random(7)
    pairs = [ends(trace) for trace in everything]
    for _ in range(40):
        some = chance.sample(pairs, 3)
        senders = {sender for sender, _ in some if sender}
        recipients = {recipient for _, recipient in some if recipient}
        if not senders or not recipients:
            continue
        first = chance.randrange(HEAD)
        last = chance.randrange(first, HEAD + 1)
        wanted = TraceFilter(
            first=first,
            last=last,
            senders=frozenset(map(address, senders)),
            recipients=frozenset(map(address, recipients)),
            needs_both=needs_both,
        )
        combine = all if needs_both else any
        expected = [
            trace
            for trace, (sender, recipient) in zip(everything, pairs, strict=True)
            if first <= trace["blockNumber"] <= last
            and combine([sender in senders, recipient in recipients])
        ]
        assert search(connection, wanted) == expected


def test_pages_are_parts_of_the_whole(
    connection: psycopg.Connection[Any], everything: list[Trace]
) -> None:
    account, _ = ends(everything[-1])
    assert account is not None
    wanted = TraceFilter(first=0, last=HEAD, senders=frozenset({address(account)}))
    whole = search(connection, wanted)
    assert len(whole) > 4
    pages = [
        search(connection, replace(wanted, after=start, count=3))
        for start in range(0, len(whole), 3)
    ]
    assert [trace for page in pages for trace in page] == whole
    assert search(connection, replace(wanted, after=len(whole))) == []
    assert search(connection, replace(wanted, count=0)) == []


def test_search_refuses_a_block_that_is_not_canonical(
    connection: psycopg.Connection[Any],
) -> None:
    network = Network.objects.get(slug="sample").pk
    wanted = TraceFilter(first=0, last=HEAD)
    with pytest.raises(NotCanonical), connection.transaction():
        TraceSearch(connection, network, bytes(32), wanted).run(lambda _: None)


def test_transactions_without_trace_records_are_not_left_out(module_db: None) -> None:
    """They may match, which can't be determined without a record."""
    chains.import_blocks(
        "unrecorded",
        sample.genesis(),
        sample.raw_blocks()[:20],
        record_limit_bytes=None,
    )
    network = Network.objects.get(slug="unrecorded").pk
    block = Block.objects.get(network=network, number=20)
    wanted = TraceFilter(first=0, last=20, recipients=frozenset({b"\xab" * 20}))
    with (
        importer_connection() as connection,
        pytest.raises(TraceTooLarge),
        connection.transaction(),
    ):
        TraceSearch(connection, network, bytes(block.hash), wanted).run(lambda _: None)
