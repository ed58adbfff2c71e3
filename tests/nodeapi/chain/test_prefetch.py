"""Prefetch predicts a block's reads, and reads in bulk equal single reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from eth_typing import Address

from abi.encoding import call_data, mapping_slot
from evm.block_keys import named_accounts
from evm.changes import AccountValue, Changes
from evm.world import EMPTY_CODE_HASH
from nodeapi.chain.database import importer_connection, pipeline
from nodeapi.chain.lookahead import Prefetch
from nodeapi.chain.sources import with_next
from nodeapi.chain.state_reader import CachedState, OverlayState, StoredState
from samples.builder import ChainBuilder
from samples.contracts import contract
from samples.signers import Signer
from tests.support import chains

TOKEN = Address(b"\x70" * 20)
HOLDERS = [Signer(f"holder {i}") for i in range(8)]
STRANGER = Address(b"\x99" * 20)


def genesis() -> dict[str, Any]:
    slots = [f"0x{mapping_slot(holder.address, 0):064x}" for holder in HOLDERS]
    code = f"0x{contract('token').runtime.hex()}"
    funded = {
        f"0x{holder.address.hex()}": {"balance": "0xde0b6b3a7640000"}
        for holder in HOLDERS
    }
    return {
        "config": {"chainId": 7},
        "gasLimit": hex(10_000_000),
        "alloc": {
            f"0x{TOKEN.hex()}": {
                "balance": "0x0",
                "code": code,
                "storage": dict.fromkeys(slots, "0x3e8"),
            },
            **funded,
        },
    }


def transfers() -> ChainBuilder:
    """Return a chain of two blocks, each with four transfers."""
    chain = ChainBuilder(genesis())
    for _ in range(2):
        for sender, receiver in zip(HOLDERS[:4], HOLDERS[4:], strict=True):
            data = call_data("transfer(address,uint256)", receiver.address, 5)
            chain.send(sender, TOKEN, data)
        chain.block()
    return chain


def balances() -> set[tuple[Address, int]]:
    return {(TOKEN, mapping_slot(holder.address, 0)) for holder in HOLDERS}


def test_all_senders_and_receivers_are_guessed() -> None:
    block = transfers().blocks[0]
    senders = {holder.address for holder in HOLDERS[:4]}
    assert named_accounts(block) == senders | {TOKEN, block.header.coinbase}


def test_the_slots_of_a_mapping_are_guessed_once_it_was_met() -> None:
    first, second = transfers().blocks
    guess = Prefetch()
    assert guess.slots(first) == set()
    guess.learn(first, {(TOKEN, mapping_slot(HOLDERS[5].address, 0))})
    assert guess.slots(second) == balances()


def test_what_no_mapping_explains_teaches_nothing() -> None:
    first, second = transfers().blocks
    guess = Prefetch()
    guess.learn(first, {(TOKEN, 12345), (STRANGER, mapping_slot(STRANGER, 0))})
    assert guess.slots(second) == set()


def test_an_invalid_signature_is_left_to_the_execution() -> None:
    block = transfers().blocks[0]
    forged = replace(block.transactions[0], r=0, _sender=None)
    accounts = named_accounts(replace(block, transactions=(forged,)))
    assert accounts == {TOKEN, block.header.coinbase}


@pytest.mark.django_db(transaction=True)
def test_bulk_reads_equal_single_reads_at_every_block() -> None:
    chain = transfers()
    chains.import_blocks("bulk", genesis(), chain.blocks)
    addresses = [*(holder.address for holder in HOLDERS), TOKEN, STRANGER]
    slots = [*balances(), (TOKEN, 99), (STRANGER, 0)]
    with importer_connection() as connection:
        network_id = chains.network_id(connection, "bulk")
        for number in range(3):
            state = StoredState(connection, network_id, number)
            assert state.accounts(addresses) == {a: state.account(a) for a in addresses}
            assert state.slots(slots) == {key: state.storage(*key) for key in slots}


@pytest.mark.django_db(transaction=True)
def test_bulk_reads_see_what_is_not_committed_yet() -> None:
    chains.import_blocks("bulk", genesis(), [])
    holder, gone = HOLDERS[0].address, HOLDERS[1].address
    slot = (TOKEN, mapping_slot(holder, 0))
    value = AccountValue(3, 4, EMPTY_CODE_HASH, None)
    changes = Changes(
        accounts={holder: value, gone: None}, storage={TOKEN: {slot[1]: 0}}
    )
    with importer_connection() as connection:
        stored = StoredState(connection, chains.network_id(connection, "bulk"), 0)
        cached = CachedState(OverlayState(stored, changes))
        cached.fetch([holder, gone, TOKEN], [slot, (TOKEN, 1)])
    # The connection is closed. The following reads are answered from memory.
    assert cached.account(holder) == value
    assert cached.account(gone) is None
    token = cached.account(TOKEN)
    assert token is not None and token.storage_root is not None
    assert cached.storage(*slot) == 0
    assert cached.storage(TOKEN, 1) == 0
    assert cached.missed_slots == set()


@pytest.mark.django_db(transaction=True)
def test_what_is_expected_is_there_with_the_next_state_and_gives_way_to_it() -> None:
    chains.import_blocks("bulk", genesis(), [])
    kept, changed, gone = (holder.address for holder in HOLDERS[:3])
    slots = [(TOKEN, mapping_slot(address, 0)) for address in (kept, changed)]
    pending = Changes(accounts={gone: None})
    value = AccountValue(3, 4, EMPTY_CODE_HASH, None)
    changes = Changes(accounts={changed: value}, storage={TOKEN: {slots[1][1]: 7}})
    with importer_connection() as connection, pipeline() as reader:
        stored = StoredState(connection, chains.network_id(connection, "bulk"), 0)
        before = stored.account(kept)
        state = CachedState(OverlayState(stored, pending), reader)
        assert state.expect([kept, changed, gone], slots)
        assert not state.expect([TOKEN], []), "a read is in flight"
        state.absorb(changes, stored)
        assert state.expect([kept, changed], slots), "which asks nothing"
    # The connections are closed. The following reads are answered from memory.
    state.absorb(Changes(), stored)
    assert state.account(kept) == before
    assert state.account(changed) == value
    assert state.account(gone) is None
    assert [state.storage(*slot) for slot in slots] == [1000, 7]


def test_items_come_with_the_next_one_and_errors_in_their_place() -> None:
    def source() -> Iterator[bytes]:
        yield b"1"
        yield b"2"
        raise EOFError("cut short")

    assert list(with_next([])) == []
    assert list(with_next([b"1", b"2"])) == [(b"1", b"2"), (b"2", None)]
    pairs = with_next(source())
    assert [next(pairs), next(pairs)] == [(b"1", b"2"), (b"2", None)]
    with pytest.raises(EOFError, match="cut short"):
        next(pairs)
