from __future__ import annotations

from typing import Any

import pytest

from networks.models import Network
from nodeapi.models import Block
from postgres.errors import Unavailable
from tests.support.rows import (
    add_block,
    document,
    hash_of,
    make_network,
    set_head,
)
from tests.support.serving import Serving, changes_unknown, serving

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def network() -> Network:
    """Store blocks 0 to 3, and a side block 3."""
    network = make_network()
    add_block(network, "zero", 0)
    add_block(network, "one", 1, "zero", transactions=["a", "b", "c"])
    add_block(network, "two", 2, "one")
    add_block(network, "three", 3, "two", transactions=["d"])
    add_block(network, "side", 3, "two", is_canonical=False, transactions=["e"])
    set_head(network, "three", 3)
    return network


def by_hash(
    running: Serving,
    network: Network,
    name: str,
    full: bool = False,
    difficulty: bool = True,
) -> Any:
    store = running.service.store
    return running.ask(store.block_by_hash, network.pk, hash_of(name), full, difficulty)


def by_number(
    running: Serving, network: Network, number: int | str, full: bool = False
) -> Any:
    store = running.service.store
    return running.ask(store.block_by_number, network.pk, number, full, True)


def test_block_is_found_by_hash_canonical_or_not(network: Network) -> None:
    with serving() as running:
        assert by_hash(running, network, "one") == document("one", 1, '"a","b","c"')
        assert by_hash(running, network, "two") == document("two", 2)
        assert by_hash(running, network, "side") == document("side", 3, '"e"')
        assert by_hash(running, network, "none") is None


def test_full_block_has_its_transactions_in_order(network: Network) -> None:
    with serving() as running:
        full = by_hash(running, network, "one", full=True)
        assert full == document("one", 1, '{"name":"a"},{"name":"b"},{"name":"c"}')
        assert by_hash(running, network, "two", full=True) == document("two", 2)


@pytest.mark.parametrize("full", [False, True])
def test_total_difficulty_is_left_out_on_wish(network: Network, full: bool) -> None:
    transactions = '{"name":"d"}' if full else '"d"'
    expected = document("three", 3, transactions, difficulty=False)
    with serving() as running:
        for _ in range(2):  # read, then cached
            assert by_hash(running, network, "three", full, False) == expected
            assert by_hash(running, network, "three", full, True) != expected
        store = running.service.store
        for number in (3, "latest"):
            found = running.ask(store.block_by_number, network.pk, number, full, False)
            assert found == expected


def test_block_is_read_once_and_then_answered_at_once(network: Network) -> None:
    with serving() as running:
        store = running.service.store
        first = by_hash(running, network, "one")
        Block.objects.filter(hash=hash_of("one")).delete()
        arguments = (network.pk, hash_of("one"), False, True)
        assert running.at_once(store.block_by_hash, *arguments) is first


def test_unknown_block_is_asked_for_again(network: Network) -> None:
    with serving() as running:
        assert by_hash(running, network, "four") is None
        add_block(network, "four", 4, "three")
        assert by_hash(running, network, "four") == document("four", 4)


def test_without_a_cache_everything_is_read(
    network: Network, settings: pytest.FixtureRequest
) -> None:
    settings.NODEAPI_CACHE_BYTES = 0  # type: ignore[attr-defined]
    with serving() as running:
        assert by_hash(running, network, "one") is not None
        assert by_number(running, network, 1) is not None
        assert by_number(running, network, 2) == document("two", 2)
        Block.objects.filter(hash=hash_of("one")).delete()
        assert by_hash(running, network, "one") is None
        assert by_number(running, network, 1) is None


def test_networks_never_mix(network: Network) -> None:
    other = make_network("beta")
    add_block(other, "zero", 0, transactions=["x"])
    set_head(other, "zero", 0)
    with serving() as running:
        assert by_hash(running, other, "zero") == document("zero", 0, '"x"')
        assert by_hash(running, network, "zero") == document("zero", 0)
        assert by_hash(running, other, "one") is None
        assert by_number(running, other, 1) is None
        assert by_number(running, other, "latest") == document("zero", 0, '"x"')


def test_block_is_found_by_number_and_tag(network: Network) -> None:
    set_head(
        network, "three", 3, safe_hash=hash_of("two"), finalized_hash=hash_of("one")
    )
    names: dict[int | str, str] = {
        0: "zero",
        1: "one",
        2: "two",
        3: "three",
        "earliest": "zero",
        "latest": "three",
        "pending": "three",
        "safe": "two",
        "finalized": "one",
    }
    with serving() as running:
        for _ in range(2):
            for number, name in names.items():
                found = by_number(running, network, number)
                assert found == by_hash(running, network, name), number
        assert by_number(running, network, 4) is None
        assert by_number(running, network, 2**63 - 1) is None
        assert running.ask(running.service.store.head_number, network.pk) == 3


def test_safe_and_finalized_are_the_head_without_a_forkchoice(
    network: Network,
) -> None:
    with serving() as running:
        for tag in ("safe", "finalized"):
            assert by_number(running, network, tag) == document("three", 3, '"d"')


def test_number_is_remembered_under_its_head_alone(network: Network) -> None:
    with serving() as running:
        store, directory = running.service.store, running.service.directory
        arguments = (network.pk, 2, False, True)
        assert running.ask(store.block_by_number, *arguments) == document("two", 2)
        assert running.at_once(store.block_by_number, *arguments) == document("two", 2)
        Block.objects.filter(hash=hash_of("two")).update(is_canonical=False)
        add_block(network, "two-b", 2, "one")
        add_block(network, "three-b", 4, "two-b")
        set_head(network, "three-b", 4)
        running.until(lambda: directory.get(network.pk).head_number == 4)
        assert by_number(running, network, 2) == document("two-b", 2)
        assert by_number(running, network, "latest") == document("three-b", 4)


def test_number_read_under_a_head_not_yet_announced_is_not_taken_for_the_old_ones(
    network: Network,
) -> None:
    with serving() as running:
        store, directory = running.service.store, running.service.directory
        # The database changes to another branch. The notification arrives later.
        Block.objects.filter(number__gte=2).update(is_canonical=False)
        add_block(network, "two-b", 2, "one")
        add_block(network, "three-b", 3, "two-b")
        Network.objects.update(head_hash=hash_of("three-b"))
        assert by_number(running, network, 2) == document("two-b", 2)
        # The head moves back before the process has received an event.
        Block.objects.filter(hash__in=[hash_of("two-b"), hash_of("three-b")]).update(
            is_canonical=False
        )
        Block.objects.filter(hash__in=[hash_of("two"), hash_of("three")]).update(
            is_canonical=True
        )
        set_head(network, "three", 3)
        assert running.ask(directory.reread, network.pk).head_hash == hash_of("three")
        assert running.ask(
            store.block_by_number, network.pk, 2, False, True
        ) == document("two", 2)


def test_new_head_without_a_notification_is_found(
    network: Network,
) -> None:
    with serving() as running:
        directory = running.service.directory
        add_block(network, "four", 4, "three")
        Network.objects.update(head_number=4, head_hash=hash_of("four"))
        assert directory.get(network.pk).head_number == 3
        assert by_number(running, network, 4) == document("four", 4)
        assert directory.get(network.pk).head_number == 4


def test_while_changes_may_be_unknown_tags_follow_the_database(
    network: Network,
) -> None:
    with serving() as running:
        assert by_number(running, network, "latest") == document("three", 3, '"d"')
        with changes_unknown(running):
            add_block(network, "four", 4, "three")
            set_head(network, "four", 4)
            assert by_number(running, network, "latest") == document("four", 4)
            assert running.ask(running.service.store.head_number, network.pk) == 4


def test_network_without_blocks_has_none() -> None:
    empty = make_network("empty")
    with serving() as running:
        for number in ("latest", "earliest", "pending", "safe", "finalized", 0, 1):
            assert by_number(running, empty, number) is None
        with pytest.raises(Unavailable, match="no blocks"):
            running.ask(running.service.store.head_number, empty.pk)


def transaction(running: Serving, network: Network, name: str, index: int) -> Any:
    store = running.service.store
    return running.ask(
        store.transaction_by_block_hash_and_index, network.pk, hash_of(name), index
    )


def test_transaction_is_found_by_its_place(network: Network) -> None:
    with serving() as running:
        for _ in range(2):
            found = [transaction(running, network, "one", i) for i in range(4)]
            assert found == [b'{"name":"a"}', b'{"name":"b"}', b'{"name":"c"}', None]
        assert transaction(running, network, "side", 0) == b'{"name":"e"}'
        assert transaction(running, network, "none", 0) is None
        assert transaction(running, make_network("beta"), "one", 0) is None


@pytest.mark.parametrize("index", [2**31 - 1, 2**31, 2**63, 2**64 - 1])
def test_place_beyond_any_block_has_no_transaction(
    network: Network, index: int
) -> None:
    with serving() as running:
        assert transaction(running, network, "one", index) is None


def test_requests_of_one_moment_are_answered_each_with_its_own(
    network: Network,
) -> None:
    with serving() as running:
        store = running.service.store
        names = ["zero", "one", "two", "three", "side", "none"] * 10
        answers = running.ask_all(
            *((store.block_by_hash, network.pk, hash_of(n), False, True) for n in names)
        )
        assert answers == [by_hash(running, network, name) for name in names]
