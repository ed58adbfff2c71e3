"""Reads of a sparse state: a value, proved absent, or unknown, and never a zero instead."""

from __future__ import annotations

from typing import Any

import pytest
from eth_typing import Address, Hash32

from evm.changes import AccountValue
from evm.proved_state import Keys, ProvedValues, UnknownValues
from evm.world import EMPTY_CODE_HASH
from networks.models import Network
from nodeapi.encoding import BlockReference
from nodeapi.models import AccountVersion
from nodeapi.proofs.unknown import UnknownPast
from tests.nodeapi.test_store_states import at
from tests.support.rows import (
    add_block,
    make_network,
    set_account,
    set_diff,
    set_head,
    set_storage,
)
from tests.support.serving import Serving, serving

pytestmark = pytest.mark.django_db(transaction=True)

TOKEN, PLAIN, ABSENT, STRANGER, LATER = (
    Address(letter.encode() * 20) for letter in "TPASL"
)
VALUE = AccountValue(1, 5, EMPTY_CODE_HASH, None)
ROOT = Hash32(b"R" * 32)
CHECKPOINT = 1


@pytest.fixture
def network() -> Network:
    """Three blocks since the checkpoint, two below it, and a side block after block 2.

    The token has storage: slot 0 was proved as 10, slot 1 as zero, slot 2 was written.
    Another account is proved to be without storage, one to be absent, and one that was
    absent has slots since block 2.
    """
    network = make_network(checkpoint_number=CHECKPOINT)
    for number in range(4):
        add_block(network, f"b{number}", number, f"b{number - 1}" if number else "")
    with_storage = VALUE._replace(storage_root=ROOT)
    set_account(network, TOKEN, {CHECKPOINT: with_storage, 3: with_storage})
    set_account(network, PLAIN, {CHECKPOINT: VALUE})
    set_account(network, ABSENT, {CHECKPOINT: None})
    set_account(network, LATER, {CHECKPOINT: None, 2: with_storage})
    set_storage(network, TOKEN, 0, {CHECKPOINT: 10})
    set_storage(network, TOKEN, 1, {CHECKPOINT: 0})
    set_storage(network, TOKEN, 2, {CHECKPOINT: 0, 3: 30})
    set_storage(network, LATER, 0, {2: 20})
    side = add_block(network, "side", 3, "b2", is_canonical=False)
    set_diff(side, {TOKEN: {4: 44}}, {STRANGER: VALUE})
    set_head(network, "b3", 3)
    return network


BLOCKS = [at(3), at("b3"), at("latest"), at(2), at("b2", True)]


def slot(
    running: Serving, network: Network, address: bytes, number: int, at: BlockReference
) -> int:
    store = running.service.store
    word: bytes = running.ask(store.storage_at, network.pk, address, number, at)
    many = running.ask(store.storage_values, network.pk, [(address, number)], at)
    assert many == [word]
    return int.from_bytes(word)


@pytest.mark.parametrize("block", BLOCKS)
def test_values_and_proved_zeros_are_answered(
    network: Network, block: BlockReference
) -> None:
    is_head = block not in (BLOCKS[3], BLOCKS[4])
    with serving() as running:
        for _ in range(2):  # the second time from the cache
            assert slot(running, network, TOKEN, 0, block) == 10
            assert slot(running, network, TOKEN, 1, block) == 0
            assert slot(running, network, TOKEN, 2, block) == (30 if is_head else 0)
            assert slot(running, network, PLAIN, 7, block) == 0
            assert slot(running, network, ABSENT, 7, block) == 0
            assert slot(running, network, LATER, 0, block) == 20
            assert slot(running, network, LATER, 1, block) == 0
            store = running.service.store
            for address, expected in ((PLAIN, 5), (ABSENT, None), (LATER, 5)):
                found = running.ask(store.account, network.pk, address, block)
                assert (found and found.balance) == expected
            assert running.ask(store.code, network.pk, ABSENT, block) == b""


@pytest.mark.parametrize("block", [*BLOCKS, at("side")])
def test_unknown_values_are_named_and_not_cached(
    network: Network, block: BlockReference
) -> None:
    with serving() as running:
        store = running.service.store
        is_side = block == at("side")
        stranger = ABSENT if is_side else STRANGER
        if is_side:
            AccountVersion.objects.filter(address=ABSENT).delete()
            assert slot(running, network, TOKEN, 4, block) == 44
            known = running.ask(store.account, network.pk, STRANGER, block)
            assert known.balance == 5
        for _ in range(2):
            for read in (store.account, store.code):
                with pytest.raises(UnknownValues) as caught:
                    running.ask(read, network.pk, stranger, block)
                assert caught.value.keys == Keys(accounts={stranger})
            wanted = [(TOKEN, 8), (TOKEN, 0), (stranger, 9), (PLAIN, 1)]
            with pytest.raises(UnknownValues) as caught:
                running.ask(store.storage_values, network.pk, wanted, block)
            assert caught.value.keys == Keys({stranger}, {(TOKEN, 8), (stranger, 9)})
            with pytest.raises(UnknownValues) as caught:
                running.ask(store.storage_at, network.pk, TOKEN, 8, block)
            assert caught.value.keys == Keys(slots={(TOKEN, 8)})
        set_account(network, stranger, {CHECKPOINT: VALUE})
        set_storage(network, TOKEN, 8, {CHECKPOINT: 80})
        assert slot(running, network, TOKEN, 8, block) == 80
        assert slot(running, network, stranger, 9, block) == 0
        found = running.ask(store.account, network.pk, stranger, block)
        assert found.balance == 5


@pytest.mark.parametrize("block", [at(0), at("b0"), at("earliest")])
def test_the_state_below_the_checkpoint_is_only_cached(
    network: Network, block: BlockReference
) -> None:
    with serving() as running:
        store = running.service.store
        reads: list[tuple[Any, ...]] = []
        for address in (TOKEN, PLAIN, ABSENT, STRANGER):
            reads += [(store.account, address), (store.storage_at, address, 0)]
        for read, *place in reads:
            with pytest.raises(UnknownPast) as caught:
                running.ask(read, network.pk, *place, block)
            state = caught.value.block_hash
        values = ProvedValues({TOKEN: VALUE, ABSENT: None}, {(TOKEN, 0): 7})
        store.keep_values(network.pk, state, values)
        assert running.ask(store.account, network.pk, TOKEN, block).balance == 5
        assert running.ask(store.account, network.pk, ABSENT, block) is None
        assert slot(running, network, TOKEN, 0, block) == 7
        keys = Keys({TOKEN, PLAIN, ABSENT}, {(TOKEN, 0), (TOKEN, 1)})
        assert store.kept_values(network.pk, state, keys) == values
        assert values.missing(keys) == Keys({PLAIN}, {(TOKEN, 1)})
