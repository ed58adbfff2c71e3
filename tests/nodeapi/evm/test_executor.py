from dataclasses import replace

import pytest

from nodeapi.chain.signers import Signer, create_address
from nodeapi.evm.chain_config import LADDER
from nodeapi.evm.delegations import DELEGATION_PREFIX, delegate_of
from nodeapi.evm.errors import InvalidTransaction
from nodeapi.evm.transactions import Authorization
from tests.nodeapi.evm.frames import COINBASE, CONTRACT, ETHER, new_state

ALICE, BOB = Signer("alice"), Signer("bob")
OTHER = b"\x99" * 20
STOP = b"\x00"
REVERT = bytes.fromhex("5f5ffd")
BURN = b"\xfe"


def state_of(fork):
    state = new_state(fork)
    state.set_balance(ALICE.address, 10 * ETHER)
    state.set_code(CONTRACT, STOP)
    return state


def signed(signer=ALICE, **fields):
    kind = fields.setdefault("type", 0)
    fields.setdefault("nonce", 0)
    fields.setdefault("gas", 100_000)
    fields.setdefault("to", CONTRACT)
    fields.setdefault("chain_id", 1)
    if kind < 2:
        fields.setdefault("gas_price", 10)
    else:
        fields.setdefault("max_fee_per_gas", 10)
        fields.setdefault("max_priority_fee_per_gas", 2)
    if kind == 3:
        fields.setdefault("max_fee_per_blob_gas", 1000)
        fields.setdefault("blob_versioned_hashes", [b"\x01" * 32])
    if kind == 4:
        fields.setdefault("authorization_list", [BOB.authorize(1, CONTRACT, 0)])
    if fields["chain_id"] is None:
        del fields["chain_id"]
    return signer.sign(fields)


def run(state, transaction):
    state._account_db.lock_changes()
    return state.fork.apply_transaction(state, transaction, 3)


# Validity


@pytest.mark.parametrize(
    ("fork", "fields", "reason"),
    [
        ("london", {"type": 3}, "transaction type 3 is not known in london"),
        ("cancun", {"type": 4}, "type 4"),
        ("homestead", {"gas": 21_000}, "no chain id"),
        ("prague", {"chain_id": 2}, "chain id is 2, not 1"),
        ("prague", {"nonce": 1}, "nonce is 1, not 0"),
        ("prague", {"gas": 20_999}, "below the intrinsic gas 21000"),
        ("prague", {"data": b"\x01" * 100, "gas": 24_999}, "floor 25000"),
        ("prague", {"gas_price": 6}, "below the base fee 7"),
        ("prague", {"type": 2, "max_priority_fee_per_gas": 11}, "priority fee 11"),
        ("prague", {"value": 10 * ETHER}, "needs up to"),
        ("osaka", {"gas": 2**24 + 1}, "above the cap 16777216"),
        ("prague", {"type": 3, "blob_versioned_hashes": []}, "no blobs"),
        ("prague", {"type": 3, "blob_versioned_hashes": [b"\x02" * 32]}, "version"),
        ("prague", {"type": 3, "max_fee_per_blob_gas": 6}, "blob base fee 7"),
        ("osaka", {"type": 3, "blob_versioned_hashes": [b"\x01" * 32] * 7}, "7 blobs"),
        ("prague", {"type": 4, "authorization_list": []}, "no authorizations"),
        (
            "prague",
            {"to": b"", "data": bytes(49_153), "gas": 10**6},
            "init code is 49153 bytes",
        ),
    ],
)
def test_an_invalid_transaction_is_refused_with_its_reason(fork, fields, reason):
    with pytest.raises(InvalidTransaction, match=reason) as caught:
        run(state_of(fork), signed(**fields))
    assert caught.value.index == 3


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
    with pytest.raises(InvalidTransaction, match="high s"):
        run(state_of("homestead"), high)


def test_the_value_counts_beside_the_highest_price_of_gas_and_blobs():
    transaction = signed(type=3, value=5, gas=21_000)
    cost = 21_000 * 10 + 131_072 * 1000 + 5
    state = state_of("prague")
    state.set_balance(ALICE.address, cost - 1)
    with pytest.raises(InvalidTransaction, match=f"needs up to {cost}"):
        run(state, transaction)
    state.set_balance(ALICE.address, cost)
    assert run(state, transaction)[0].is_success


def test_a_sender_with_code_is_refused_unless_it_delegates():
    state = state_of("prague")
    state.set_code(ALICE.address, b"\x00")
    with pytest.raises(InvalidTransaction, match="a contract"):
        run(state, signed())
    state.set_code(ALICE.address, DELEGATION_PREFIX + CONTRACT)
    assert run(state, signed())[0].is_success


def test_the_last_nonce_can_not_be_spent():
    state = state_of("prague")
    state._account_db.set_nonce(ALICE.address, 2**64 - 1)
    with pytest.raises(InvalidTransaction, match="used up"):
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
    state.set_code(CONTRACT, REVERT)
    frame, gas_used = run(state, signed(type=3, value=5))
    assert frame.is_error
    paid = gas_used * 9 + 131_072 * state.blob_base_fee
    assert state.get_balance(ALICE.address) == 10 * ETHER - paid


@pytest.mark.parametrize(("fork", "quotient"), [("berlin", 2), ("london", 5)])
def test_refunds_are_limited_to_a_fraction_of_the_gas(fork, quotient):
    state = state_of(fork)
    slots = b"".join(bytes([0x60, 0, 0x60, slot, 0x55]) for slot in range(10))
    state.set_code(CONTRACT, slots)
    for slot in range(10):
        state.set_storage(CONTRACT, slot, 1)
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
        state.set_code(CONTRACT, b"\x33\xff")
        _, gas_used = run(state, signed())
        gas = 21_000 + 2 + 5000
        assert gas_used == gas - min(refund, gas // 2)
        assert not state.account_exists(CONTRACT)


# Access lists


def test_what_is_on_the_access_list_is_warm():
    state = state_of("berlin")
    state.set_code(CONTRACT, bytes.fromhex("60075450"))
    cold = run(state, signed())[1]
    listed = signed(type=1, nonce=1, access_list=[(CONTRACT, (7,))])
    assert run(state, listed)[1] == cold - 2000 + 2400 + 1900


def test_the_coinbase_is_warm_from_shanghai_on():
    gas = {}
    for fork in ("paris", "shanghai"):
        state = state_of(fork)
        state.set_code(CONTRACT, b"\x41\x31")
        gas[fork] = run(state, signed())[1]
    assert gas["paris"] - gas["shanghai"] == 2500


# Creation


def test_a_creation_pays_for_words_of_init_code_once():
    code = bytes.fromhex("60006000f3").ljust(64, b"\x00")
    data_gas = 16 * 3 + 4 * 61
    for fork, words_gas in (("paris", 0), ("shanghai", 4)):
        _, gas_used = run(state_of(fork), signed(to=b"", data=code))
        assert gas_used == 53_000 + data_gas + 6 + words_gas


def test_a_collision_burns_the_gas_and_keeps_the_nonce():
    state = state_of("prague")
    address = create_address(ALICE.address, 0)
    state.set_code(address, b"\x00")
    frame, gas_used = run(state, signed(to=b"", data=STOP, value=5))
    assert frame.is_error
    assert gas_used == 100_000
    assert state.get_nonce(ALICE.address) == 1
    assert state.get_balance(address) == 0


def push(data):
    return bytes([0x5F + len(data)]) + data


def store(init_code):
    """Return code that puts up to 32 bytes at the start of memory."""
    return push(init_code.ljust(32, b"\x00")) + b"\x5f\x52"


def create(init_code):
    """Return code that creates a contract, and leaves its address on the stack."""
    return store(init_code) + push(bytes([len(init_code)])) + b"\x5f\x5f\xf0"


# Init code of a contract with the code CALLER SELFDESTRUCT.
DESTRUCTIBLE = bytes.fromhex("6133ff5f5260026 01ef3".replace(" ", ""))
CALL_TOP = bytes.fromhex("5f5f5f5f5f855af150")


def test_a_contract_made_in_the_transaction_can_be_destroyed_by_it():
    state = state_of("prague")
    # Creates one, then another, and only then has the first destroy itself.
    code = create(DESTRUCTIBLE) + create(DESTRUCTIBLE) + b"\x50" + CALL_TOP
    state.set_code(CONTRACT, code)
    frame, _ = run(state, signed(gas=10**6))
    assert frame.is_success
    first, second = (create_address(CONTRACT, nonce) for nonce in (0, 1))
    assert not state.account_exists(first)
    assert state.get_code(second) == b"\x33\xff"


def test_a_contract_of_an_earlier_transaction_survives_from_cancun_on():
    for fork, survives in (("shanghai", False), ("cancun", True)):
        state = state_of(fork)
        run(state, signed(to=b"", data=DESTRUCTIBLE))
        child = create_address(ALICE.address, 0)
        state.set_balance(child, 77)
        run(state, signed(nonce=1, to=child))
        assert state.account_exists(child) is survives
        assert state.get_balance(child) == 0


def test_contracts_made_in_another_transaction_are_forgotten():
    state = state_of("cancun")
    run(state, signed(to=b"", data=DESTRUCTIBLE))
    child = create_address(ALICE.address, 0)
    # A nested creation in the second transaction does not bring the first one's back.
    code = create(DESTRUCTIBLE) + b"\x50" + push(child) + CALL_TOP
    state.set_code(CONTRACT, code)
    run(state, signed(nonce=1, gas=10**6))
    assert state.get_code(child) == b"\x33\xff"


def test_init_code_run_by_a_delegating_sender_is_paid_for_once():
    used = []
    for sender_delegates in (False, True):
        state = state_of("prague")
        state.set_code(CONTRACT, create(DESTRUCTIBLE))
        if sender_delegates:
            state.set_code(ALICE.address, DELEGATION_PREFIX + CONTRACT)
            state.mark_address_warm(CONTRACT)
        to = ALICE.address if sender_delegates else CONTRACT
        used.append(run(state, signed(to=to, gas=10**6))[1])
    assert used[0] == used[1]


# Delegations


def test_an_authorization_sets_code_and_counts_the_nonce():
    state = state_of("prague")
    _, gas_used = run(state, signed(type=4))
    assert delegate_of(state.get_code(BOB.address)) == CONTRACT
    assert state.get_nonce(BOB.address) == 1
    assert gas_used == 21_000 + 25_000


def test_half_an_authorization_s_gas_comes_back_for_an_existing_account():
    state = state_of("prague")
    state.set_balance(BOB.address, 1)
    _, gas_used = run(state, signed(type=4))
    assert gas_used == 46_000 - 46_000 // 5


def test_delegations_outlive_a_call_that_fails():
    state = state_of("prague")
    state.set_code(CONTRACT, REVERT)
    state.set_balance(BOB.address, 1)
    frame, gas_used = run(state, signed(type=4))
    assert frame.is_error
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
    state.set_code(BOB.address, b"\x01")
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
    state.set_code(CONTRACT, bytes.fromhex("602a600155"))
    state.set_code(BOB.address, DELEGATION_PREFIX + CONTRACT)
    run(state, signed(to=BOB.address))
    assert state.get_storage(BOB.address, 1) == 42
    assert state.get_storage(CONTRACT, 1) == 0


def test_delegating_to_a_precompile_runs_nothing():
    state = state_of("prague")
    state.set_code(BOB.address, DELEGATION_PREFIX + (2).to_bytes(20, "big"))
    frame, gas_used = run(state, signed(to=BOB.address))
    assert (frame.is_success, frame.output, gas_used) == (True, b"", 21_000)
    call_bob = bytes.fromhex("60205f5f5f5f73") + BOB.address + bytes.fromhex("5af13d")
    state.set_code(CONTRACT, call_bob)
    frame, _ = run(state, signed(nonce=1))
    assert frame._stack.values == [1, 0]


def test_delegation_is_followed_one_step_only():
    state = state_of("prague")
    state.set_code(OTHER, DELEGATION_PREFIX + CONTRACT)
    state.set_code(BOB.address, DELEGATION_PREFIX + OTHER)
    frame, gas_used = run(state, signed(to=BOB.address))
    assert frame.is_error
    assert gas_used == 100_000


# Empty accounts


def test_touched_empty_accounts_go_from_spurious_dragon_on():
    for fork, remains in (("tangerine_whistle", True), ("spurious_dragon", False)):
        state = state_of(fork)
        run(state, signed(to=OTHER, gas_price=0, chain_id=None))
        assert state.account_exists(OTHER) is remains
        assert state.account_exists(COINBASE) is remains


def test_an_empty_account_stays_when_the_call_that_touched_it_fails():
    ripemd160 = (3).to_bytes(20, "big")
    for address, remains in ((OTHER, True), (ripemd160, False)):
        state = state_of("byzantium")
        state.touch_account(address)
        call_it = (
            bytes.fromhex("60008080808073") + address + bytes.fromhex("620f4240f1")
        )
        state.set_code(CONTRACT, call_it + BURN)
        frame, _ = run(state, signed(gas=2 * 10**6))
        assert frame.is_error
        assert state.account_exists(address) is remains


def test_every_fork_runs_a_plain_transfer():
    for fork in LADDER.values():
        state = state_of(fork)
        chain_id = 1 if fork.has_replay_protection else None
        _, gas_used = run(state, signed(value=9, chain_id=chain_id))
        assert gas_used == 21_000
        assert state.get_balance(CONTRACT) == 9
