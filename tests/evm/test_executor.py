"""Transactions: their validation, payment of gas, and settlement."""

from dataclasses import replace

import pytest
from eth_utils.address import to_checksum_address

from evm.chain_config import LADDER
from evm.delegations import DELEGATION_PREFIX
from evm.errors import InvalidTransaction
from tests.evm.frames import COINBASE, CONTRACT, ETHER
from tests.evm.signed import ALICE, REVERT, run, signed, state_of

OTHER = b"\x99" * 20
BURN = b"\xfe"


# Validity


@pytest.mark.parametrize(
    ("fork", "fields", "text"),
    [
        ("london", {"type": 3}, "transaction type not supported"),
        ("cancun", {"type": 4}, "transaction type not supported"),
        ("homestead", {"gas": 21_000}, "invalid transaction v, r, s values"),
        ("prague", {"chain_id": 2}, "invalid chain id for signer: have 2 want 1"),
        ("prague", {"nonce": 1}, "nonce too high: address {}, tx: 1 state: 0"),
        ("prague", {"gas": 20_999}, "intrinsic gas too low: have 20999, want 21000"),
        (
            "prague",
            {"data": b"\x01" * 100, "gas": 24_999},
            "insufficient gas for floor data gas cost: have 24999, want 25000",
        ),
        (
            "prague",
            {"gas_price": 6},
            "max fee per gas less than block base fee: address {}, maxFeePerGas: 6, "
            "baseFee: 7",
        ),
        (
            "prague",
            {"type": 2, "max_priority_fee_per_gas": 11},
            "max priority fee per gas higher than max fee per gas: address {}, "
            "maxPriorityFeePerGas: 11, maxFeePerGas: 10",
        ),
        (
            "osaka",
            {"gas": 2**24 + 1},
            "transaction gas limit too high (cap: 16777216, tx: 16777217)",
        ),
        (
            "prague",
            {"type": 3, "blob_versioned_hashes": []},
            "blob transaction missing blob hashes",
        ),
        (
            "prague",
            {"type": 3, "blob_versioned_hashes": [b"\x02" * 32]},
            "blob 0 has invalid hash version",
        ),
        (
            "prague",
            {"type": 3, "max_fee_per_blob_gas": 6},
            "max fee per blob gas less than block blob gas fee: address {} "
            "blobGasFeeCap: 6, blobBaseFee: 7",
        ),
        (
            "osaka",
            {"type": 3, "blob_versioned_hashes": [b"\x01" * 32] * 7},
            "blob transaction has too many blobs",
        ),
        (
            "prague",
            {"type": 4, "authorization_list": []},
            "EIP-7702 transaction with empty auth list (sender {})",
        ),
        (
            "prague",
            {"to": b"", "data": bytes(49_153), "gas": 10**6},
            "max initcode size exceeded: code size 49153 limit 49152",
        ),
    ],
)
def test_an_invalid_transaction_is_refused_with_geths_text(fork, fields, text):
    with pytest.raises(InvalidTransaction) as caught:
        run(state_of(fork), signed(**fields))
    assert caught.value.index == 3
    assert caught.value.text == text.format(to_checksum_address(ALICE.address))


@pytest.mark.parametrize(
    ("fork", "fields"),
    [
        ("shanghai", {"data": b"\x01" * 100, "gas": 22_600}),
        ("prague", {"data": b"\x01" * 100, "gas": 25_000}),
        ("prague", {"gas": 2**24 + 1}),
        ("osaka", {"gas": 2**24}),
        ("osaka", {"type": 3, "blob_versioned_hashes": [b"\x01" * 32] * 6}),
        ("prague", {"type": 3, "blob_versioned_hashes": [b"\x01" * 32] * 7}),
        ("paris", {"to": b"", "data": bytes(49_153), "gas": 10**6}),
        ("homestead", {"chain_id": None}),
    ],
)
def test_what_lies_just_within_a_rule_is_accepted(fork, fields):
    assert run(state_of(fork), signed(**fields))[0].is_success


def test_a_high_s_is_refused_from_homestead_on():
    transaction = signed(chain_id=None)
    order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    high = replace(
        transaction,
        s=order - transaction.s,
        y_parity=1 - transaction.y_parity,
        _sender=transaction.sender,
    )
    assert run(state_of("frontier"), high)[0].is_success
    with pytest.raises(InvalidTransaction, match="invalid transaction v, r, s values"):
        run(state_of("homestead"), high)


def test_the_value_counts_beside_the_highest_price_of_gas_and_blobs():
    transaction = signed(type=3, value=5, gas=21_000)
    cost = 21_000 * 10 + 131_072 * 1000 + 5
    state = state_of("prague")
    state.world.set_balance(ALICE.address, cost - 1)
    with pytest.raises(InvalidTransaction, match=f"have {cost - 1} want {cost}"):
        run(state, transaction)
    state.world.set_balance(ALICE.address, cost)
    assert run(state, transaction)[0].is_success


def test_a_sender_with_code_is_refused_unless_it_delegates():
    state = state_of("prague")
    state.world.set_code(ALICE.address, b"\x00")
    with pytest.raises(
        InvalidTransaction, match=r"sender not an eoa: address 0x\w+, len\(code\): 1"
    ):
        run(state, signed())
    state.world.set_code(ALICE.address, DELEGATION_PREFIX + CONTRACT)
    assert run(state, signed())[0].is_success


def test_the_last_nonce_can_not_be_spent():
    state = state_of("prague")
    state.world.set_nonce(ALICE.address, 2**64 - 1)
    with pytest.raises(InvalidTransaction, match="nonce has max value"):
        run(state, signed(nonce=2**64 - 1))


# Payment


def test_the_tip_goes_to_the_coinbase_and_the_base_fee_burns():
    state = state_of("prague")
    _, gas_used = run(state, signed(type=2, value=5, gas=50_000))
    assert gas_used == 21_000
    assert state.get_balance(COINBASE) == 21_000 * 2
    assert state.get_balance(ALICE.address) == 10 * ETHER - 5 - 21_000 * 9
    assert state.get_balance(CONTRACT) == 5
    assert state.get_nonce(ALICE.address) == 1


def test_blobs_are_paid_for_at_the_block_s_price_even_when_the_call_fails():
    state = state_of("prague")
    state.world.set_code(CONTRACT, REVERT)
    frame, gas_used = run(state, signed(type=3, value=5))
    assert not frame.is_success
    paid = gas_used * 9 + 131_072 * state.blob_base_fee
    assert state.get_balance(ALICE.address) == 10 * ETHER - paid


@pytest.mark.parametrize(("fork", "quotient"), [("berlin", 2), ("london", 5)])
def test_refunds_are_limited_to_a_fraction_of_the_gas(fork, quotient):
    state = state_of(fork)
    slots = b"".join(bytes([0x60, 0, 0x60, slot, 0x55]) for slot in range(10))
    state.world.set_code(CONTRACT, slots)
    for slot in range(10):
        state.world.set_storage(CONTRACT, slot, 1)
    gas = 21_000 + 10 * (3 + 3 + 5000)
    _, gas_used = run(state, signed())
    assert gas_used == gas - gas // quotient


def test_the_data_s_floor_is_paid_after_refunds():
    state = state_of("prague")
    data = b"\x01" * 1000
    assert run(state, signed(data=data))[1] == 21_000 + 40 * 1000
    assert run(state_of("cancun"), signed(data=data))[1] == 21_000 + 16 * 1000


def test_selfdestruct_refunds_until_london():
    for fork, refund in (("istanbul", 24_000), ("berlin", 24_000), ("london", 0)):
        state = state_of(fork)
        state.world.set_code(CONTRACT, b"\x33\xff")
        _, gas_used = run(state, signed())
        gas = 21_000 + 2 + 5000
        assert gas_used == gas - min(refund, gas // 2)
        assert not state.world.account_exists(CONTRACT)


# Access lists


def test_what_is_on_the_access_list_is_warm():
    state = state_of("berlin")
    state.world.set_code(CONTRACT, bytes.fromhex("60075450"))
    cold = run(state, signed())[1]
    listed = signed(type=1, nonce=1, access_list=[(CONTRACT, (7,))])
    assert run(state, listed)[1] == cold - 2000 + 2400 + 1900


def test_the_coinbase_is_warm_from_shanghai_on():
    gas = {}
    for fork in ("paris", "shanghai"):
        state = state_of(fork)
        state.world.set_code(CONTRACT, b"\x41\x31")
        gas[fork] = run(state, signed())[1]
    assert gas["paris"] - gas["shanghai"] == 2500


# Empty accounts


def test_touched_empty_accounts_go_from_spurious_dragon_on():
    for fork, remains in (("tangerine_whistle", True), ("spurious_dragon", False)):
        state = state_of(fork)
        run(state, signed(to=OTHER, gas_price=0, chain_id=None))
        assert state.world.account_exists(OTHER) is remains
        assert state.world.account_exists(COINBASE) is remains


def test_an_empty_account_stays_when_the_call_that_touched_it_fails():
    ripemd160 = (3).to_bytes(20, "big")
    for address, remains in ((OTHER, True), (ripemd160, False)):
        state = state_of("byzantium")
        state.world.touch_account(address)
        call_it = (
            bytes.fromhex("60008080808073") + address + bytes.fromhex("620f4240f1")
        )
        state.world.set_code(CONTRACT, call_it + BURN)
        frame, _ = run(state, signed(gas=2 * 10**6))
        assert not frame.is_success
        assert state.world.account_exists(address) is remains


def test_every_fork_runs_a_plain_transfer():
    for fork in LADDER.values():
        state = state_of(fork)
        chain_id = 1 if fork.has_replay_protection else None
        _, gas_used = run(state, signed(value=9, chain_id=chain_id))
        assert gas_used == 21_000
        assert state.get_balance(CONTRACT) == 9
