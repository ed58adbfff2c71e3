"""Transactions that create contracts, and contracts that destroy themselves."""

from evm.delegations import DELEGATION_PREFIX
from samples.signers import create_address
from tests.evm.frames import CONTRACT
from tests.evm.signed import ALICE, STOP, run, signed, state_of

# Init code of a contract with the code CALLER SELFDESTRUCT.
DESTRUCTIBLE = bytes.fromhex("6133ff5f526002601ef3")
CALL_TOP = bytes.fromhex("5f5f5f5f5f855af150")


def push(data):
    return bytes([0x5F + len(data)]) + data


def store(init_code):
    """Return code that writes up to 32 bytes to the start of memory."""
    return push(init_code.ljust(32, b"\x00")) + b"\x5f\x52"


def create(init_code):
    """Return code that creates a contract, and leaves its address on the stack."""
    return store(init_code) + push(bytes([len(init_code)])) + b"\x5f\x5f\xf0"


def test_a_creation_pays_for_words_of_init_code_once():
    code = bytes.fromhex("60006000f3").ljust(64, b"\x00")
    data_gas = 16 * 3 + 4 * 61
    for fork, words_gas in (("paris", 0), ("shanghai", 4)):
        _, gas_used = run(state_of(fork), signed(to=b"", data=code))
        assert gas_used == 53_000 + data_gas + 6 + words_gas


def test_a_collision_burns_the_gas_and_keeps_the_nonce():
    state = state_of("prague")
    address = create_address(ALICE.address, 0)
    state.world.set_code(address, b"\x00")
    frame, gas_used = run(state, signed(to=b"", data=STOP, value=5))
    assert not frame.is_success
    assert gas_used == 100_000
    assert state.get_nonce(ALICE.address) == 1
    assert state.get_balance(address) == 0


def test_a_contract_made_in_the_transaction_can_be_destroyed_by_it():
    state = state_of("prague")
    # The code creates two contracts, and then makes the first one destroy itself.
    code = create(DESTRUCTIBLE) + create(DESTRUCTIBLE) + b"\x50" + CALL_TOP
    state.world.set_code(CONTRACT, code)
    frame, _ = run(state, signed(gas=10**6))
    assert frame.is_success
    first, second = (create_address(CONTRACT, nonce) for nonce in (0, 1))
    assert not state.world.account_exists(first)
    assert state.get_code(second) == b"\x33\xff"


def test_a_contract_of_an_earlier_transaction_survives_from_cancun_on():
    for fork, survives in (("shanghai", False), ("cancun", True)):
        state = state_of(fork)
        run(state, signed(to=b"", data=DESTRUCTIBLE))
        child = create_address(ALICE.address, 0)
        state.world.set_balance(child, 77)
        run(state, signed(nonce=1, to=child))
        assert state.world.account_exists(child) is survives
        assert state.get_balance(child) == 0


def test_contracts_made_in_another_transaction_are_forgotten():
    state = state_of("cancun")
    run(state, signed(to=b"", data=DESTRUCTIBLE))
    child = create_address(ALICE.address, 0)
    # A nested creation in the second transaction does not restore the first contract.
    code = create(DESTRUCTIBLE) + b"\x50" + push(child) + CALL_TOP
    state.world.set_code(CONTRACT, code)
    run(state, signed(nonce=1, gas=10**6))
    assert state.get_code(child) == b"\x33\xff"


def test_init_code_run_by_a_delegating_sender_is_paid_for_once():
    used = []
    for sender_delegates in (False, True):
        state = state_of("prague")
        state.world.set_code(CONTRACT, create(DESTRUCTIBLE))
        if sender_delegates:
            state.world.set_code(ALICE.address, DELEGATION_PREFIX + CONTRACT)
            state.world.mark_address_warm(CONTRACT)
        to = ALICE.address if sender_delegates else CONTRACT
        used.append(run(state, signed(to=to, gas=10**6))[1])
    assert used[0] == used[1]
