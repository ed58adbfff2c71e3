"""Trace records are read unchanged, and for the right transactions."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any

import pytest
from django.db import transaction

from evm.tracers.derived import RecordedTransaction
from evm.tracers.record import unpack
from jsonrpc.errors import ServiceUnavailable
from networks.models import Network
from nodeapi.documents.receipts import receipt_document
from nodeapi.errors.traces import TraceTooLarge
from nodeapi.models import Block
from nodeapi.store.derived import TraceSizes
from nodeapi.store.traces import SHORT_BYTES
from nodeapi.store.transactions import Place
from tests.support.reading import (
    MEBIBYTE,
    SHORT,
    calls_of,
    digits,
    prestates_of,
    read,
    recorded_network,
)
from tests.support.records import Recorded, add_recorded_block, entries
from tests.support.rows import hash_of, make_network, set_head
from tests.support.serving import serving

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def network() -> Network:
    return recorded_network()


def test_a_block_has_one_entry_for_each_transaction_in_order(network: Network) -> None:
    add_recorded_block(network, "one", 1, SHORT)
    with serving() as running:
        for _ in range(2):  # read, then cached
            for kind, expected in (
                ("calls", calls_of(SHORT)),
                ("prestate", prestates_of(SHORT)),
            ):
                answer = read(running, "block_trace", network, hash_of("one"), kind)
                assert answer == expected


def test_a_read_trace_is_kept(network: Network) -> None:
    block = add_recorded_block(network, "one", 1, SHORT)
    with serving() as running:
        store = running.service.store
        arguments = (network.pk, hash_of("one"), "calls")
        first = running.ask(store.block_trace, *arguments)
        single = running.ask(store.transaction_trace, *arguments[:2], 1, "calls")
        Block.objects.filter(pk=block.pk).delete()
        assert running.at_once(store.block_trace, *arguments) is first
        kept = running.at_once(store.transaction_trace, *arguments[:2], 1, "calls")
        assert kept is single


def test_a_part_of_a_block_ends_where_the_block_ends(network: Network) -> None:
    add_recorded_block(network, "one", 1, SHORT)
    with serving() as running:

        def part(first: int, last: int) -> Any:
            return read(
                running, "block_trace", network, hash_of("one"), "calls", first, last
            )

        assert part(1, 1) == calls_of(SHORT[1:2], 1)
        assert part(1, 99) == calls_of(SHORT[1:], 1)
        assert part(3, 99) == b"[]"


def test_a_block_without_transactions_has_no_entries(network: Network) -> None:
    with serving() as running:
        for kind in ("calls", "prestate"):
            answer = read(running, "block_trace", network, hash_of("zero"), kind)
            assert answer == b"[]"
        assert read(running, "block_receipts", network, hash_of("zero")) == b"[]"


def test_an_unknown_block_is_asked_for_again(network: Network) -> None:
    with serving() as running:
        for method in ("block_trace", "transaction_trace"):
            rest = ("calls",) if method == "block_trace" else (0, "calls")
            assert read(running, method, network, hash_of("one"), *rest) is None
        add_recorded_block(network, "one", 1, SHORT)
        answer = read(running, "block_trace", network, hash_of("one"), "calls")
        assert answer == calls_of(SHORT)


def test_a_transaction_is_found_at_its_place(network: Network) -> None:
    add_recorded_block(network, "one", 1, SHORT)
    with serving() as running:

        def single(index: int, kind: str) -> Any:
            return read(
                running, "transaction_trace", network, hash_of("one"), index, kind
            )

        assert single(2, "calls") == SHORT[2].calls(2)
        assert single(2, "prestate") == SHORT[2].prestate()
        assert single(3, "calls") is None
        assert single(2**31, "calls") is None


def test_a_side_block_is_traced_as_any_other(network: Network) -> None:
    add_recorded_block(network, "one", 1, SHORT)
    add_recorded_block(network, "side", 1, SHORT[1:], is_canonical=False)
    with serving() as running:
        answer = read(running, "block_trace", network, hash_of("side"), "calls")
        assert answer == calls_of(SHORT[1:])
        place = read(running, "find_transaction", network, SHORT[1].hash)
        assert place == Place(hash_of("one"), 1, 1)


def test_a_reorganisation_moves_transactions_whatever_was_kept(
    network: Network,
) -> None:
    add_recorded_block(network, "one", 1, SHORT)
    add_recorded_block(network, "side", 1, SHORT[1:], is_canonical=False)
    set_head(network, "one", 1)
    with serving() as running:
        for method in ("find_transaction", "receipt", "transaction_by_hash"):
            assert read(running, method, network, SHORT[1].hash) is not None
        assert read(running, "find_transaction", network, SHORT[0].hash) is not None
        with transaction.atomic():
            Block.objects.filter(hash=hash_of("one")).update(is_canonical=False)
            Block.objects.filter(hash=hash_of("side")).update(is_canonical=True)
            set_head(network, "side", 1)
        directory = running.service.directory
        running.until(lambda: directory.get(network.pk).head_hash == hash_of("side"))
        place = read(running, "find_transaction", network, SHORT[1].hash)
        assert place == Place(hash_of("side"), 1, 0)
        assert read(running, "find_transaction", network, SHORT[0].hash) is None
        assert read(running, "receipt", network, SHORT[0].hash) is None
        assert read(running, "transaction_by_hash", network, SHORT[0].hash) is None
        moved = read(running, "transaction_by_hash", network, SHORT[1].hash)
        assert moved == SHORT[1].document(0)
        # Results by block hash are still available.
        answer = read(running, "block_trace", network, hash_of("one"), "calls")
        assert answer == calls_of(SHORT)


def test_receipts_are_completed_with_their_transactions(network: Network) -> None:
    add_recorded_block(network, "one", 1, SHORT)
    expected = [
        receipt_document(one.stored_receipt(), one.document(index))
        for index, one in enumerate(SHORT)
    ]
    with serving() as running:
        for _ in range(2):
            for one, receipt in zip(SHORT, expected, strict=True):
                assert read(running, "receipt", network, one.hash) == receipt
            answer = read(running, "block_receipts", network, hash_of("one"))
            assert answer == b"[" + b",".join(expected) + b"]"
        assert read(running, "block_receipts", network, hash_of("none")) is None


def test_receipts_of_a_large_block_are_streamed(network: Network) -> None:
    many = [Recorded(f"t{i}", logs=digits(800)) for i in range(1_000)]
    add_recorded_block(network, "one", 1, many)
    expected = [
        receipt_document(one.stored_receipt(), one.document(index))
        for index, one in enumerate(many)
    ]
    with serving() as running:
        answer = read(running, "block_receipts", network, hash_of("one"))
    assert len(answer) > SHORT_BYTES
    assert answer == b"[" + b",".join(expected) + b"]"


def test_what_was_too_much_to_be_recorded_is_reported(network: Network) -> None:
    transactions = [SHORT[1], Recorded("huge", too_large=True), SHORT[0]]
    add_recorded_block(network, "one", 1, transactions)
    with serving() as running:
        with pytest.raises(TraceTooLarge, match="trace record of transaction 1 "):
            read(running, "block_trace", network, hash_of("one"), "calls")
        with pytest.raises(TraceTooLarge, match="trace record of transaction 1 "):
            read(running, "transaction_trace", network, hash_of("one"), 1, "calls")
        answer = read(running, "block_trace", network, hash_of("one"), "calls", 2, 2)
        assert answer == calls_of(SHORT[:1], 2)
        answer = read(running, "block_trace", network, hash_of("one"), "prestate")
        assert answer == prestates_of(transactions)


class Lengths:
    """A derivation whose results are the lengths of each part, which all differ."""

    def __init__(self, *needs: str) -> None:
        self.needs = frozenset(needs)
        self.name = f"lengths {sorted(needs)}"
        self.made = 0

    def derive(
        self, transaction: RecordedTransaction, codes: Mapping[bytes, bytes]
    ) -> bytes:
        self.made += 1
        parts = [transaction.calls, transaction.prestate, transaction.details]
        lengths = [len(unpack(part)) if part else None for part in parts]
        return repr([transaction.index, *lengths]).encode()


def test_derived_answers_read_what_they_need_and_are_kept(network: Network) -> None:
    block = [SHORT[0], Recorded("long", output=digits(100_000), details=b"x" * 50_000)]
    add_recorded_block(network, "one", 7, block)
    with serving() as running:
        calls, nothing = Lengths("calls"), Lengths()
        answers = [
            read(running, "derived_block_trace", network, hash_of("one"), derivation)
            for derivation in (calls, nothing, calls, nothing)
        ]
        assert calls.made == nothing.made == 2
        sizes = [len(unpack(one.packed_calls)) for one in block]
        assert answers[0] == answers[2]
        assert answers[0] == entries(
            [
                (block[0], repr([0, sizes[0], None, 7]).encode()),
                (block[1], repr([1, sizes[1], None, 50_000]).encode()),
            ]
        )
        assert answers[1] == answers[3]
        assert answers[1] == entries(
            [
                (block[0], repr([0, None, None, 7]).encode()),
                (block[1], repr([1, None, None, 50_000]).encode()),
            ]
        )
        arguments = (hash_of("one"), 1, calls)
        single = read(running, "derived_transaction_trace", network, *arguments)
        assert single == repr([1, sizes[1], None, 50_000]).encode()
        arguments = (hash_of("one"), 2, calls)
        assert read(running, "derived_transaction_trace", network, *arguments) is None


class Long:
    """A derivation with long results."""

    name = "long"
    needs = frozenset[str]()

    def derive(self, transaction: RecordedTransaction, codes: object) -> bytes:
        return b'"%s"' % (b"%d" % transaction.index * 100_000)


def test_long_derived_answers_are_streamed(network: Network) -> None:
    block = [Recorded(f"t{index}") for index in range(30)]
    add_recorded_block(network, "one", 7, block)
    with serving() as running:
        answer = read(running, "derived_block_trace", network, hash_of("one"), Long())
        assert answer == entries(
            [(one, b'"%s"' % (b"%d" % i * 100_000)) for i, one in enumerate(block)]
        )


def test_long_answers_that_are_not_read_are_limited(network: Network) -> None:
    block = [Recorded(f"t{index}") for index in range(30)]
    add_recorded_block(network, "one", 7, block)
    with serving() as running:
        store, arguments = running.service.store, (hash_of("one"), Long())

        async def kept() -> Any:
            return await store.derived_block_trace(network.pk, *arguments)

        waiting = running.ask(kept)
        assert store.spooled.bytes > waiting.size - MEBIBYTE > 0
        store.spooled.limit = MEBIBYTE
        with pytest.raises(ServiceUnavailable):
            running.ask(kept)
        running.ask(waiting.aclose)
        del waiting
        gc.collect()
        assert store.spooled.bytes == 0
        store.spooled.limit = 2 * len(block) * 200_000
        assert len(read(running, "derived_block_trace", network, *arguments))


def test_sizes_are_reported(network: Network) -> None:
    add_recorded_block(network, "one", 1, SHORT)
    calls = [len(one.calls(index)) for index, one in enumerate(SHORT)]
    prestates = [len(one.prestate()) for one in SHORT]
    with serving() as running:
        assert read(running, "trace_sizes", network, hash_of("none")) is None
        found = read(running, "trace_sizes", network, hash_of("one"))
        assert found == TraceSizes(
            3, sum(calls), sum(prestates), max(calls + prestates)
        )
        found = read(running, "trace_sizes", network, hash_of("one"), 1, 1)
        assert found == TraceSizes(
            3, calls[1], prestates[1], max(calls[1], prestates[1])
        )
        found = read(running, "trace_sizes", network, hash_of("zero"))
        assert found == TraceSizes(0, 0, 0, 0)


def test_networks_never_mix(network: Network) -> None:
    add_recorded_block(network, "one", 1, SHORT)
    other = make_network("beta")
    with serving() as running:
        answer = read(running, "block_trace", other, hash_of("one"), "calls")
        assert answer is None
        assert read(running, "find_transaction", other, SHORT[0].hash) is None
        assert read(running, "receipt", other, SHORT[0].hash) is None
        assert read(running, "raw_transaction", other, SHORT[0].hash) is None


def test_a_block_by_number_or_tag(network: Network) -> None:
    add_recorded_block(network, "one", 1, SHORT)
    add_recorded_block(network, "two", 2, [])
    set_head(network, "two", 2, safe_hash=hash_of("one"))
    with serving() as running:
        for name, asked in (
            ("zero", "earliest"),
            ("one", 1),
            ("one", "safe"),
            ("two", "latest"),
            ("two", 2),
        ):
            found = read(running, "canonical_hash", network, asked)
            assert found == hash_of(name), asked
        assert read(running, "canonical_hash", network, 3) is None
