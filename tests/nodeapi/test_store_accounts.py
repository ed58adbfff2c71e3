"""Accounts and code after a block, read from rows."""

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
from nodeapi.models import AccountVersion, Block, Code
from tests.nodeapi.test_store_states import at
from tests.support.rows import (
    add_block,
    hash_of,
    make_network,
    set_account,
    set_diff,
    set_head,
)
from tests.support.serving import Serving, serving

pytestmark = pytest.mark.django_db(transaction=True)

ALICE, TOKEN, NOBODY = b"A" * 20, b"T" * 20, b"N" * 20
CODE, LATER_CODE = b"\x60\x00", b"\xef\x01\x00" + b"d" * 20
ROOT = b"R" * 32
RICH = AccountValue(2**64 - 1, 2**256 - 1, EMPTY_CODE_HASH, None)


def plain(nonce: int, balance: int) -> AccountValue:
    return AccountValue(nonce, balance, EMPTY_CODE_HASH, None)


def contract(nonce: int, code: bytes) -> AccountValue:
    return AccountValue(nonce, 0, keccak(code), ROOT)


@pytest.fixture
def network() -> Network:
    """Five canonical blocks and a branch of two side blocks that leaves at block 2.

    Alice has transactions in blocks 1 and 3, and her account is gone from block 4 on.
    The token exists from block 1 on, and has other code from block 3 on.
    """
    network = make_network()
    names = ["zero", "one", "two", "three", "four"]
    for number, name in enumerate(names):
        add_block(network, name, number, names[number - 1] if number else "")
    for code in (CODE, LATER_CODE):
        Code.objects.create(hash=keccak(code), code=code)
    set_account(network, ALICE, {0: RICH, 1: plain(1, 10), 3: plain(2, 30), 4: None})
    set_account(network, TOKEN, {1: contract(1, CODE), 3: contract(1, LATER_CODE)})
    three = add_block(network, "side-3", 3, "two", is_canonical=False)
    four = add_block(network, "side-4", 4, "side-3", is_canonical=False)
    set_diff(three, {}, {ALICE: plain(2, 33), NOBODY: plain(0, 1)})
    set_diff(four, {}, {NOBODY: None, TOKEN: contract(2, LATER_CODE)})
    set_head(network, "four", 4)
    return network


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
def test_account_is_the_newest_at_or_below_the_block(
    network: Network, settings: Any, cache_bytes: int
) -> None:
    settings.NODEAPI_CACHE_BYTES = cache_bytes
    expected = [
        ("zero", RICH, b""),
        ("one", plain(1, 10), CODE),
        ("two", plain(1, 10), CODE),
        ("three", plain(2, 30), LATER_CODE),
        ("four", None, LATER_CODE),
    ]
    with serving() as running:
        for _ in range(2):
            for number, (name, value, its_code) in enumerate(expected):
                for block in (at(number), at(name), at(name, True)):
                    assert account(running, network, ALICE, block) == stored(value)
                    assert code(running, network, TOKEN, block) == its_code
                    assert code(running, network, ALICE, block) == b""
                    assert account(running, network, NOBODY, block) is None
                    assert code(running, network, NOBODY, block) == b""


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
    with serving() as running:
        for tag in ("latest", "pending", "safe", "finalized"):
            assert account(running, network, ALICE, at(tag)) is None
        assert account(running, network, ALICE, at("earliest")) == stored(RICH)


def test_side_block_has_its_branch_on_top_of_where_it_leaves(network: Network) -> None:
    expected: dict[tuple[str, bytes], AccountValue | None] = {
        ("side-3", ALICE): plain(2, 33),
        ("side-3", NOBODY): plain(0, 1),
        ("side-3", TOKEN): contract(1, CODE),
        ("side-4", ALICE): plain(2, 33),
        ("side-4", NOBODY): None,
        ("side-4", TOKEN): contract(2, LATER_CODE),
    }
    with serving() as running:
        for _ in range(2):
            for (name, address), value in expected.items():
                found = account(running, network, address, at(name))
                assert found == stored(value)
        assert code(running, network, TOKEN, at("side-3")) == CODE
        assert code(running, network, TOKEN, at("side-4")) == LATER_CODE
        for read in (account, code):
            with pytest.raises(NotCanonical):
                read(running, network, ALICE, at("side-3", True))


def test_block_that_is_not_there_is_an_error(network: Network) -> None:
    beta = make_network("beta")
    cases: list[tuple[Network, BlockReference, type[Exception]]] = [
        (network, at("nowhere"), HeaderForHashNotFound),
        (network, at("nowhere", True), HeaderForHashNotFound),
        (network, at(5), HeaderNotFound),
        (network, at(2**63 - 1), HeaderNotFound),
        (beta, at("one"), HeaderForHashNotFound),
        (beta, at("latest"), HeaderNotFound),
        (beta, at(0), HeaderNotFound),
    ]
    with serving() as running:
        for where, block, error in cases:
            for read in (account, code):
                with pytest.raises(error):
                    read(running, where, ALICE, block)


def test_account_at_a_hash_is_read_once(network: Network) -> None:
    with serving() as running:
        assert account(running, network, ALICE, at("one")) == stored(plain(1, 10))
        AccountVersion.objects.all().delete()
        store = running.service.store
        found = running.at_once(store.account, network.pk, ALICE, at("one"))
        assert found == stored(plain(1, 10))


def test_latest_account_follows_the_head(network: Network) -> None:
    with serving() as running:
        directory = running.service.directory
        assert account(running, network, ALICE, at("latest")) is None
        add_block(network, "five", 5, "four")
        set_account(network, ALICE, {5: plain(0, 50)})
        set_head(network, "five", 5)
        running.until(lambda: directory.get(network.pk).head_number == 5)
        assert account(running, network, ALICE, at("latest")) == stored(plain(0, 50))
        assert account(running, network, ALICE, at(4)) is None


def test_reorganisation_changes_numbers_and_never_hashes(network: Network) -> None:
    with serving() as running:
        directory = running.service.directory
        assert account(running, network, ALICE, at(3)) == stored(plain(2, 30))
        # Block 3 is exchanged with its sibling, and block 4 becomes a side block.
        canonical = Block.objects.filter(hash__in=[hash_of("three"), hash_of("four")])
        canonical.update(is_canonical=False)
        three = Block.objects.get(hash=hash_of("three"))
        set_diff(three, {}, {ALICE: plain(2, 30)})
        AccountVersion.objects.filter(block_number__gte=3).delete()
        Block.objects.filter(hash=hash_of("side-3")).update(is_canonical=True)
        set_account(network, ALICE, {3: plain(2, 33)})
        set_head(network, "side-3", 3)
        running.until(lambda: directory.get(network.pk).head_number == 3)
        assert account(running, network, ALICE, at(3)) == stored(plain(2, 33))
    with serving() as running:  # with nothing cached
        assert account(running, network, ALICE, at("three")) == stored(plain(2, 30))
        assert account(running, network, ALICE, at("side-3")) == stored(plain(2, 33))


def test_random_histories_are_read_as_they_were_written(network: Network) -> None:
    rng = random.Random(7)
    for number in range(5, 25):
        add_block(network, f"b{number}", number, f"b{number - 1}")
    model: dict[tuple[bytes, int], AccountValue | None] = {}
    values = [None, RICH, plain(0, 0), plain(1, 10**18), contract(1, CODE)]
    for index in range(100, 120):
        address, history = bytes([index]) * 20, {}
        current: AccountValue | None = None
        for number in range(25):
            if rng.random() < 0.3:
                current = history[number] = rng.choice(values)
            model[address, number] = stored(current)
        set_account(network, address, history)
    set_head(network, "b24", 24)
    with serving() as running:
        store = running.service.store
        asked = rng.sample(sorted(model), 300)
        found = running.ask_all(
            *((store.account, network.pk, who, at(number)) for who, number in asked)
        )
        assert found == [model[key] for key in asked]
