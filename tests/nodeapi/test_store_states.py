"""Slots, accounts and code after a block, read from rows."""

from __future__ import annotations

import random
from typing import Any

import pytest

from evm.changes import AccountValue
from evm.headers import EMPTY_TRIE_ROOT
from evm.signatures import keccak
from evm.world import EMPTY_CODE_HASH
from networks.models import Network
from nodeapi.encoding import BlockReference
from nodeapi.errors.blocks import HeaderForHashNotFound, HeaderNotFound, NotCanonical
from nodeapi.models import AccountVersion, Block, Code, StorageVersion
from tests.support.rows import (
    add_block,
    hash_of,
    make_network,
    set_account,
    set_diff,
    set_head,
    set_storage,
)
from tests.support.serving import Serving, serving

pytestmark = pytest.mark.django_db(transaction=True)

ALICE, TOKEN, OTHER, NOBODY = b"A" * 20, b"T" * 20, b"O" * 20, b"N" * 20
HUGE = 2**256 - 1
CODE, LATER_CODE = b"\x60\x00", b"\xef\x01\x00" + b"d" * 20
ROOT = b"R" * 32
RICH = AccountValue(2**64 - 1, HUGE, EMPTY_CODE_HASH, None)


def plain(nonce: int, balance: int) -> AccountValue:
    return AccountValue(nonce, balance, EMPTY_CODE_HASH, None)


def contract(nonce: int, code: bytes) -> AccountValue:
    return AccountValue(nonce, 0, keccak(code), ROOT)


@pytest.fixture
def network() -> Network:
    """Five canonical blocks and a branch of two side blocks that leaves at block 2.

    Slot 0 of the token holds 10 from block 1, 30 from block 3, nothing from block 4. The
    token exists from block 1 on, and has other code from block 3 on. Alice has
    transactions in blocks 1 and 3, and her account is gone from block 4 on.
    """
    network = make_network()
    names = ["zero", "one", "two", "three", "four"]
    for number, name in enumerate(names):
        add_block(network, name, number, names[number - 1] if number else "")
    set_storage(network, TOKEN, 0, {1: 10, 3: 30, 4: 0})
    set_storage(network, TOKEN, HUGE, {0: HUGE})
    set_storage(network, OTHER, 0, {2: 7})
    for code in (CODE, LATER_CODE):
        Code.objects.create(hash=keccak(code), code=code)
    set_account(network, ALICE, {0: RICH, 1: plain(1, 10), 3: plain(2, 30), 4: None})
    set_account(network, TOKEN, {1: contract(1, CODE), 3: contract(1, LATER_CODE)})
    three = add_block(network, "side-3", 3, "two", is_canonical=False)
    four = add_block(network, "side-4", 4, "side-3", is_canonical=False)
    set_diff(
        three,
        {TOKEN: {0: 33, 1: 34}, OTHER: {5: 35}},
        {ALICE: plain(2, 33), NOBODY: plain(0, 1)},
    )
    set_diff(four, {TOKEN: {1: 0}}, {NOBODY: None, TOKEN: contract(2, LATER_CODE)})
    set_head(network, "four", 4)
    return network


def at(block: int | str, require_canonical: bool = False) -> BlockReference:
    """Return a reference by number, by tag or by a block's name."""
    if isinstance(block, int):
        return BlockReference(number=block)
    if block in ("latest", "earliest", "pending", "safe", "finalized"):
        return BlockReference(tag=block)
    return BlockReference(hash=hash_of(block), require_canonical=require_canonical)


def value(
    running: Serving,
    network: Network,
    address: bytes,
    slot: int,
    block: BlockReference,
) -> int:
    word = running.ask(
        running.service.store.storage_at, network.pk, address, slot, block
    )
    assert isinstance(word, bytes)
    assert len(word) == 32
    return int.from_bytes(word)


def account(
    running: Serving, network: Network, address: bytes, block: BlockReference
) -> AccountValue | None:
    found: AccountValue | None = running.ask(
        running.service.store.account, network.pk, address, block
    )
    return found


def code(
    running: Serving, network: Network, address: bytes, block: BlockReference
) -> bytes:
    found = running.ask(running.service.store.code, network.pk, address, block)
    assert isinstance(found, bytes)
    return found


def stored(value: AccountValue | None) -> AccountValue | None:
    """Return an account as the store returns it."""
    if value is None:
        return None
    return value._replace(storage_root=value.storage_root or EMPTY_TRIE_ROOT)


@pytest.mark.parametrize("cache_bytes", [0, 2**20])
def test_value_is_the_newest_at_or_below_the_block(
    network: Network, settings: Any, cache_bytes: int
) -> None:
    settings.NODEAPI_CACHE_BYTES = cache_bytes
    expected = [
        ("zero", 0, RICH, b""),
        ("one", 10, plain(1, 10), CODE),
        ("two", 10, plain(1, 10), CODE),
        ("three", 30, plain(2, 30), LATER_CODE),
        ("four", 0, None, LATER_CODE),
    ]
    with serving() as running:
        for _ in range(2):
            for number, (name, word, alice, its_code) in enumerate(expected):
                for block in (at(number), at(name), at(name, True)):
                    assert value(running, network, TOKEN, 0, block) == word
                    assert account(running, network, ALICE, block) == stored(alice)
                    assert code(running, network, TOKEN, block) == its_code
                    assert code(running, network, ALICE, block) == b""
                    assert account(running, network, NOBODY, block) is None
                    assert code(running, network, NOBODY, block) == b""


def test_slots_are_distinguished_by_address_number_and_network(
    network: Network,
) -> None:
    beta = make_network("beta")
    add_block(beta, "zero", 0)
    set_head(beta, "zero", 0)
    set_storage(beta, TOKEN, 0, {0: 99})
    with serving() as running:
        assert value(running, network, TOKEN, HUGE, at("latest")) == HUGE
        assert value(running, network, TOKEN, HUGE - 1, at("latest")) == 0
        assert value(running, network, OTHER, 0, at("latest")) == 7
        assert value(running, network, b"X" * 20, 0, at("latest")) == 0
        assert value(running, beta, TOKEN, 0, at("latest")) == 99
        assert value(running, network, TOKEN, 0, at("earliest")) == 0


def test_code_is_read_together_with_its_account(
    network: Network, queries: list[bytes]
) -> None:
    with serving() as running:
        assert code(running, network, TOKEN, at("one")) == CODE
        assert len([sql for sql in queries if b"nodeapi_code" in sql]) == 1
        store = running.service.store
        found = running.at_once(store.code, network.pk, TOKEN, at("one"))
        assert found == CODE
        # The account at another block is read, and the code of its hash is cached.
        assert account(running, network, TOKEN, at("two")) == contract(1, CODE)
        assert code(running, network, TOKEN, at("two")) == CODE
    assert len([sql for sql in queries if b"nodeapi_code" in sql]) == 1


def test_code_that_is_not_cached_with_its_account_is_read(
    network: Network, settings: Any
) -> None:
    settings.NODEAPI_CACHE_BYTES = 600  # one account, without its code
    with serving() as running:
        for _ in range(2):
            assert account(running, network, TOKEN, at("one")) == contract(1, CODE)
            assert code(running, network, TOKEN, at("one")) == CODE


def test_tags_name_the_blocks_of_the_forkchoice(network: Network) -> None:
    set_head(
        network, "four", 4, safe_hash=hash_of("three"), finalized_hash=hash_of("one")
    )
    accounts = {"earliest": RICH, "safe": plain(2, 30), "finalized": plain(1, 10)}
    with serving() as running:
        results = {
            tag: value(running, network, TOKEN, 0, at(tag))
            for tag in ("earliest", "latest", "pending", "safe", "finalized")
        }
        for tag in results:
            found = account(running, network, ALICE, at(tag))
            assert found == stored(accounts.get(tag))
    assert results == {
        "earliest": 0,
        "latest": 0,
        "pending": 0,
        "safe": 30,
        "finalized": 10,
    }


def test_side_block_has_its_branch_on_top_of_where_it_leaves(network: Network) -> None:
    expected = {
        ("side-3", TOKEN, 0): 33,
        ("side-3", TOKEN, 1): 34,
        ("side-3", OTHER, 5): 35,
        ("side-3", OTHER, 0): 7,
        ("side-3", TOKEN, HUGE): HUGE,
        ("side-4", TOKEN, 0): 33,
        ("side-4", TOKEN, 1): 0,
        ("side-4", OTHER, 5): 35,
        ("side-4", OTHER, 0): 7,
        ("side-4", OTHER, 9): 0,
    }
    accounts: dict[tuple[str, bytes], AccountValue | None] = {
        ("side-3", ALICE): plain(2, 33),
        ("side-3", NOBODY): plain(0, 1),
        ("side-3", TOKEN): contract(1, CODE),
        ("side-4", ALICE): plain(2, 33),
        ("side-4", NOBODY): None,
        ("side-4", TOKEN): contract(2, LATER_CODE),
    }
    with serving() as running:
        for _ in range(2):
            for (name, address, slot), result in expected.items():
                assert value(running, network, address, slot, at(name)) == result
            for (name, address), its_account in accounts.items():
                found = account(running, network, address, at(name))
                assert found == stored(its_account)
        assert code(running, network, TOKEN, at("side-3")) == CODE
        assert code(running, network, TOKEN, at("side-4")) == LATER_CODE
        slots = [
            (address, slot) for name, address, slot in expected if name == "side-4"
        ]
        words = running.ask(
            running.service.store.storage_values, network.pk, slots, at("side-4")
        )
        assert [int.from_bytes(word) for word in words] == [33, 0, 35, 7, 0]


def test_side_block_is_refused_where_a_canonical_one_is_required(
    network: Network,
) -> None:
    with serving() as running:
        store = running.service.store
        assert value(running, network, TOKEN, 0, at("side-3")) == 33
        for method, arguments in (
            (store.storage_at, (network.pk, TOKEN, 0, at("side-3", True))),
            (store.storage_values, (network.pk, [(TOKEN, 0)], at("side-3", True))),
            (store.account, (network.pk, ALICE, at("side-3", True))),
            (store.code, (network.pk, ALICE, at("side-3", True))),
            (store.state_hash, (network.pk, at("side-3", True))),
        ):
            with pytest.raises(NotCanonical, match="hash is not currently canonical"):
                running.ask(method, *arguments)


def test_block_that_is_not_there_is_an_error(network: Network) -> None:
    beta = make_network("beta")
    cases: list[tuple[Network, BlockReference, type[Exception]]] = [
        (network, at("nowhere"), HeaderForHashNotFound),
        (network, at("nowhere", True), HeaderForHashNotFound),
        (network, at(5), HeaderNotFound),
        (network, at(2**63 - 1), HeaderNotFound),
        (beta, at("one"), HeaderForHashNotFound),
        (beta, at("latest"), HeaderNotFound),
        (beta, at("earliest"), HeaderNotFound),
        (beta, at(0), HeaderNotFound),
    ]
    with serving() as running:
        store = running.service.store
        for where, block, error in cases:
            for method, arguments in (
                (store.storage_at, (where.pk, TOKEN, 0, block)),
                (store.storage_values, (where.pk, [(TOKEN, 0)], block)),
                (store.storage_values, (where.pk, [], block)),
                (store.account, (where.pk, ALICE, block)),
                (store.code, (where.pk, ALICE, block)),
                (store.state_hash, (where.pk, block)),
            ):
                with pytest.raises(error):
                    running.ask(method, *arguments)


def test_state_is_named_by_its_block(network: Network) -> None:
    with serving() as running:
        store = running.service.store
        for block, name in (
            (at(2), "two"),
            (at("latest"), "four"),
            (at("earliest"), "zero"),
            (at("side-4"), "side-4"),
            (at("one", True), "one"),
        ):
            found = running.ask(store.state_hash, network.pk, block)
            assert found == hash_of(name)


def test_many_slots_are_of_one_block_and_in_order(network: Network) -> None:
    slots = [(TOKEN, 0), (OTHER, 0), (TOKEN, HUGE), (TOKEN, 0), (OTHER, 1)]
    with serving() as running:
        store = running.service.store
        assert running.ask(store.storage_values, network.pk, [], at(1)) == []
        for block in (at(3), at("three"), at("three", True)):
            words = running.ask(store.storage_values, network.pk, slots, block)
            assert [int.from_bytes(word) for word in words] == [30, 7, HUGE, 30, 0]


def test_many_slots_are_one_query(network: Network, queries: list[bytes]) -> None:
    with serving() as running:
        store = running.service.store
        slots = [(TOKEN, slot) for slot in range(1024)]
        words = running.ask(store.storage_values, network.pk, slots, at("three"))
        assert int.from_bytes(words[0]) == 30
        assert not any(map(int.from_bytes, words[1:]))
    assert len([sql for sql in queries if b"nodeapi_storageversion" in sql]) == 1


def test_state_at_a_hash_is_read_once(network: Network) -> None:
    with serving() as running:
        assert value(running, network, TOKEN, 0, at("three")) == 30
        assert account(running, network, ALICE, at("three")) == stored(plain(2, 30))
        StorageVersion.objects.all().delete()
        AccountVersion.objects.all().delete()
        store = running.service.store
        for _ in range(2):
            word = running.at_once(store.storage_at, network.pk, TOKEN, 0, at("three"))
            assert int.from_bytes(word) == 30
            found = running.at_once(store.account, network.pk, ALICE, at("three"))
            assert found == stored(plain(2, 30))


def test_latest_state_follows_the_head(network: Network) -> None:
    with serving() as running:
        directory = running.service.directory
        assert value(running, network, TOKEN, 0, at("latest")) == 0
        assert account(running, network, ALICE, at("latest")) is None
        add_block(network, "five", 5, "four")
        set_storage(network, TOKEN, 0, {5: 50})
        set_account(network, ALICE, {5: plain(0, 50)})
        set_head(network, "five", 5)
        running.until(lambda: directory.get(network.pk).head_number == 5)
        assert value(running, network, TOKEN, 0, at("latest")) == 50
        assert value(running, network, TOKEN, 0, at(4)) == 0
        assert account(running, network, ALICE, at("latest")) == stored(plain(0, 50))
        assert account(running, network, ALICE, at(4)) is None


def test_reorganisation_changes_numbers_and_never_hashes(network: Network) -> None:
    with serving() as running:
        directory = running.service.directory
        before = {
            name: (
                value(running, network, TOKEN, 0, at(name)),
                account(running, network, ALICE, at(name)),
            )
            for name in ("three", "four", "side-3", "side-4")
        }
        assert value(running, network, TOKEN, 0, at(3)) == 30
        # The branch becomes canonical, with the statements of the importer.
        canonical = Block.objects.filter(hash__in=[hash_of("three"), hash_of("four")])
        canonical.update(is_canonical=False)
        three, four = canonical.order_by("number")
        set_diff(three, {TOKEN: {0: 30}}, {ALICE: plain(2, 30)})
        set_diff(four, {TOKEN: {0: 0}}, {ALICE: None})
        for versions in (StorageVersion, AccountVersion):
            versions.objects.filter(block_number__gte=3).delete()
        Block.objects.filter(hash__in=[hash_of("side-3"), hash_of("side-4")]).update(
            is_canonical=True
        )
        set_storage(network, TOKEN, 0, {3: 33})
        set_storage(network, TOKEN, 1, {3: 34, 4: 0})
        set_account(network, ALICE, {3: plain(2, 33)})
        set_head(network, "side-4", 4)
        running.until(lambda: directory.get(network.pk).head_hash == hash_of("side-4"))
        assert value(running, network, TOKEN, 0, at(3)) == 33
        assert value(running, network, TOKEN, 0, at("latest")) == 33
        assert account(running, network, ALICE, at(3)) == stored(plain(2, 33))
    with serving() as running:  # with nothing cached
        for name, (word, alice) in before.items():
            assert value(running, network, TOKEN, 0, at(name)) == word
            assert account(running, network, ALICE, at(name)) == alice


def test_random_histories_are_read_as_they_were_written(network: Network) -> None:
    rng = random.Random(7)
    for number in range(5, 25):
        add_block(network, f"b{number}", number, f"b{number - 1}")
    words: dict[tuple[int, int], int] = {}
    accounts: dict[tuple[bytes, int], AccountValue | None] = {}
    values = [None, RICH, plain(0, 0), plain(1, 10**18), contract(1, CODE)]
    for index in range(100, 120):
        address, word, alice = bytes([index]) * 20, 0, None
        slots: dict[int, int] = {}
        history: dict[int, AccountValue | None] = {}
        for number in range(25):
            if rng.random() < 0.3:
                word = slots[number] = rng.choice([0, 1, 2**64, HUGE])
            if rng.random() < 0.3:
                alice = history[number] = rng.choice(values)
            words[index, number] = word
            accounts[address, number] = stored(alice)
        set_storage(network, TOKEN, index, slots)
        set_account(network, address, history)
    set_head(network, "b24", 24)
    with serving() as running:
        store, pk = running.service.store, network.pk
        asked = rng.sample(sorted(words), 300)
        found = running.ask_all(
            *((store.storage_at, pk, TOKEN, slot, at(number)) for slot, number in asked)
        )
        assert [int.from_bytes(word) for word in found] == [words[k] for k in asked]
        named = rng.sample(sorted(accounts), 300)
        found = running.ask_all(
            *((store.account, pk, who, at(number)) for who, number in named)
        )
        assert found == [accounts[key] for key in named]
