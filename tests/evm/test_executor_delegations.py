"""Transactions with authorizations, and calls of accounts that delegate."""

from dataclasses import replace
from hashlib import sha256

import pytest

from evm.delegations import DELEGATION_PREFIX, delegate_of
from evm.transactions import Authorization
from samples.assembler import assemble
from tests.evm.frames import CONTRACT
from tests.evm.signed import ALICE, BOB, REVERT, run, signed, state_of

OTHER = b"\x99" * 20


def test_an_authorization_sets_code_and_counts_the_nonce():
    state = state_of("prague")
    _, gas_used = run(state, signed(type=4))
    assert delegate_of(state.get_code(BOB.address)) == CONTRACT
    assert state.get_nonce(BOB.address) == 1
    assert gas_used == 21_000 + 25_000


def test_half_an_authorization_s_gas_comes_back_for_an_existing_account():
    state = state_of("prague")
    state.world.set_balance(BOB.address, 1)
    _, gas_used = run(state, signed(type=4))
    assert gas_used == 46_000 - 46_000 // 5


def test_delegations_outlive_a_call_that_fails():
    state = state_of("prague")
    state.world.set_code(CONTRACT, REVERT)
    state.world.set_balance(BOB.address, 1)
    frame, gas_used = run(state, signed(type=4))
    assert not frame.is_success
    assert delegate_of(state.get_code(BOB.address)) == CONTRACT
    gas = 46_000 + 4
    assert gas_used == gas - gas // 5


def test_authorizing_the_zero_address_takes_the_delegation_away():
    state = state_of("prague")
    run(state, signed(type=4))
    clearing = [BOB.authorize(1, bytes(20), 1)]
    run(state, signed(type=4, nonce=1, authorization_list=clearing))
    assert state.get_code(BOB.address) == b""
    assert state.get_nonce(BOB.address) == 2


@pytest.mark.parametrize(
    "authorization",
    [
        BOB.authorize(2, CONTRACT, 0),
        BOB.authorize(1, CONTRACT, 1),
        BOB.authorize(1, CONTRACT, 2**64 - 1),
        replace(BOB.authorize(1, CONTRACT, 0), y_parity=2),
        replace(BOB.authorize(1, CONTRACT, 0), r=0),
        Authorization(1, CONTRACT, 0, 0, 1, 2**255 + 2**254),
    ],
)
def test_a_void_authorization_is_passed_over(authorization):
    state = state_of("prague")
    good = BOB.authorize(0, CONTRACT, 0)
    frame, _ = run(state, signed(type=4, authorization_list=[authorization, good]))
    assert frame.is_success
    assert state.get_nonce(BOB.address) == 1


def test_a_contract_can_not_delegate():
    state = state_of("prague")
    state.world.set_code(BOB.address, b"\x01")
    run(state, signed(type=4))
    assert state.get_code(BOB.address) == b"\x01"
    assert state.get_nonce(BOB.address) == 0


def test_a_sender_may_authorize_itself_with_the_next_nonce():
    state = state_of("prague")
    own = [ALICE.authorize(1, CONTRACT, 1)]
    run(state, signed(type=4, authorization_list=own))
    assert delegate_of(state.get_code(ALICE.address)) == CONTRACT
    assert state.get_nonce(ALICE.address) == 2


def test_a_delegating_account_runs_the_code_with_its_own_storage():
    state = state_of("prague")
    state.world.set_code(CONTRACT, bytes.fromhex("602a600155"))
    state.world.set_code(BOB.address, DELEGATION_PREFIX + CONTRACT)
    run(state, signed(to=BOB.address))
    assert state.get_storage(BOB.address, 1) == 42
    assert state.get_storage(CONTRACT, 1) == 0


def test_delegating_to_a_precompile_runs_nothing():
    state = state_of("prague")
    state.world.set_code(BOB.address, DELEGATION_PREFIX + (2).to_bytes(20, "big"))
    frame, gas_used = run(state, signed(to=BOB.address))
    assert (frame.is_success, frame.output, gas_used) == (True, b"", 21_000)
    call_bob = bytes.fromhex("60205f5f5f5f73") + BOB.address + bytes.fromhex("5af13d")
    state.world.set_code(CONTRACT, call_bob)
    frame, _ = run(state, signed(nonce=1))
    assert frame.stack == [1, 0]


def test_delegation_is_followed_one_step_only():
    state = state_of("prague")
    state.world.set_code(OTHER, DELEGATION_PREFIX + CONTRACT)
    state.world.set_code(BOB.address, DELEGATION_PREFIX + OTHER)
    frame, gas_used = run(state, signed(to=BOB.address))
    assert not frame.is_success
    assert gas_used == 100_000


PRECOMPILE = b"\x00" * 19 + b"\x02"
"""SHA-256's address."""


def delegating_precompile():
    """Return a state in which SHA-256's account delegates to code that fails."""
    state = state_of("prague")
    state.world.set_code(OTHER, REVERT)
    state.world.set_code(PRECOMPILE, DELEGATION_PREFIX + OTHER)
    return state


def test_a_precompile_runs_although_its_account_delegates():
    state = delegating_precompile()
    sent = signed(to=PRECOMPILE, data=b"\x12\x34", value=1)
    frame, gas_used = run(state, sent)
    assert frame.output == sha256(b"\x12\x34").digest()
    assert gas_used == 21_104  # the text of geth 1.17.2


@pytest.mark.parametrize("opcode", ["CALL", "CALLCODE", "DELEGATECALL", "STATICCALL"])
def test_every_call_of_a_delegating_precompile_runs_it(opcode):
    state = delegating_precompile()
    value = "PUSH 0" if opcode in ("CALL", "CALLCODE") else ""
    code = f"PUSH 32 PUSH 0 PUSH 0 PUSH 0 {value} PUSH 2 GAS {opcode} PUSH 0 MLOAD"
    state.world.set_code(CONTRACT, assemble(code))
    frame, _ = run(state, signed())
    assert frame.stack == [1, int.from_bytes(sha256().digest(), "big")]
    # The access to the delegate is charged nevertheless, and makes it warm.
    assert state.is_address_warm(OTHER)


def test_code_of_a_precompile_runs_for_an_account_that_delegates_to_it():
    state = state_of("prague")
    state.world.set_code(PRECOMPILE, bytes.fromhex("602a600155"))
    state.world.set_code(BOB.address, DELEGATION_PREFIX + PRECOMPILE)
    run(state, signed(to=BOB.address))
    assert state.get_storage(BOB.address, 1) == 42
