"""The accounts and slots in prestateTracer's results, and the changes in diff mode."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evm.chain_config import LADDER
from evm.delegations import DELEGATION_PREFIX
from evm.signatures import CURVE_ORDER, keccak
from evm.tracers.derived import prestate_derivation
from evm.tracers.prestate import PrestateConfig
from evm.transactions import Authorization
from samples.signers import Signer, create2_address, create_address
from tests.support.call_codes import (
    CALLCODE,
    CALLEE,
    CALLER,
    DELEGATECALL,
    NOBODY,
    STATICCALL,
    call_to,
    creation,
)
from tests.support.executed import CHAIN_ID, COINBASE, SENDER, Account, Chain
from tests.support.random_calls import push

CODE, OTHER_CODE = b"\x00", push(0) + b"\x54"
DELEGATE = b"\xde" * 20
ALICE, BOB = Signer("alice"), Signer("bob")
EMPTY_CODE_HASH = f"0x{keccak(b'').hex()}"
ALWAYS = {SENDER, COINBASE}
SLOT = [f"0x{n:064x}" for n in range(10)]


def name(address: bytes) -> str:
    return f"0x{address.hex()}"


def number(address: bytes) -> bytes:
    return push(int.from_bytes(address, "big"))


def answer(chain: Chain, **config: bool) -> Any:
    """Return the result for the chain's last transaction."""
    stored = chain.stored(len(chain.executed) - 1)
    codes = chain.codes() | chain.recorder.codes
    made = prestate_derivation(PrestateConfig(**config)).derive(stored, codes)
    return json.loads(made)


def run(
    fork: str, accounts: dict[bytes, Account], to: bytes | None = CALLER, **call: Any
) -> Chain:
    chain = Chain(fork, accounts)
    chain.run(to, **call)
    return chain


def looked_up(chain: Chain) -> set[bytes]:
    found = answer(chain, include_empty=True)
    assert list(found) == sorted(found)
    return {bytes.fromhex(address[2:]) for address in found}


# Look-ups


@pytest.mark.parametrize("fork", LADDER)
def test_sender_receiver_and_coinbase_are_always_there(fork: str) -> None:
    chain = run(fork, {}, NOBODY)
    assert looked_up(chain) == {*ALWAYS, NOBODY}
    assert name(NOBODY) not in answer(chain)
    assert answer(chain)[name(COINBASE)] == {"balance": "0x1"}


@pytest.mark.parametrize("fork", LADDER)
def test_opcodes_look_up_what_they_name(fork: str) -> None:
    code = number(b"\x01" * 20) + b"\x31" + number(b"\x02" * 20) + b"\x3b"
    code += push(0) * 3 + number(b"\x03" * 20) + b"\x3c"
    code += call_to(b"\x04" * 20, gas=push(0))
    code += call_to(b"\x05" * 20, CALLCODE, gas=push(0))
    expected = {bytes([n]) * 20 for n in range(1, 6)}
    if fork != "frontier":
        code += call_to(b"\x06" * 20, DELEGATECALL, gas=push(0))
        expected.add(b"\x06" * 20)
    if LADDER[fork].has_status_receipts:
        code += call_to(b"\x07" * 20, STATICCALL, gas=push(0))
        expected.add(b"\x07" * 20)
    code += push(3) + b"\x54" + number(b"\x08" * 20) + b"\xff"
    chain = run(fork, {CALLER: Account(1, 1, code, {3: 9, 4: 9})})
    assert looked_up(chain) == {*ALWAYS, CALLER, *expected, b"\x08" * 20}
    assert answer(chain)[name(CALLER)]["storage"] == {SLOT[3]: SLOT[9]}


def test_what_could_not_be_paid_for_looks_nothing_up() -> None:
    code = number(NOBODY) + b"\x31"
    chain = run("osaka", {CALLER: Account(0, 1, code)}, gas=21_003 + 2599)
    assert looked_up(chain) == {*ALWAYS, CALLER}
    chain = run("osaka", {CALLER: Account(0, 1, code)}, gas=21_003 + 2600)
    assert looked_up(chain) == {*ALWAYS, CALLER, NOBODY}
    code = push(7) + b"\x54"
    chain = run("osaka", {CALLER: Account(0, 1, code, {7: 1})}, gas=21_003 + 2099)
    assert "storage" not in answer(chain)[name(CALLER)]


def test_what_failed_for_other_reasons_was_looked_up() -> None:
    # A call and a creation that exceed the balance.
    code = call_to(NOBODY, value=1) + creation(CODE, value=1)
    chain = run("osaka", {CALLER: Account(0, 5, code)})
    made = create_address(CALLER, 5)  # type: ignore[arg-type]
    assert looked_up(chain) == {*ALWAYS, CALLER, NOBODY, made}
    # The same below a revert.
    code = call_to(CALLEE)
    inner = call_to(NOBODY) + push(2) + push(1) + b"\x55" + push(0) * 2 + b"\xfd"
    accounts = {CALLER: Account(0, 1, code), CALLEE: Account(0, 1, inner, {1: 3})}
    chain = run("osaka", accounts)
    assert looked_up(chain) == {*ALWAYS, CALLER, CALLEE, NOBODY}
    assert answer(chain)[name(CALLEE)]["storage"] == {SLOT[1]: SLOT[3]}
    assert name(CALLEE) not in answer(chain, diff_mode=True)["pre"]


@pytest.mark.parametrize("opcode", [0xF0, 0xF5])
def test_a_creation_in_a_static_call_is_not_looked_up(opcode: int) -> None:
    accounts = {
        CALLER: Account(0, 1, call_to(CALLEE, STATICCALL)),
        CALLEE: Account(0, 1, creation(CODE, opcode)),
    }
    assert looked_up(run("osaka", accounts)) == {*ALWAYS, *accounts}


@pytest.mark.parametrize("fork", ["osaka", "amsterdam"])
def test_a_creation_without_enough_ether_is_looked_up(fork: str) -> None:
    # The init code lies beyond the memory, which is expanded with zeros.
    code = push(0) + push(40) + push(8) + push(1) + b"\xf5"
    accounts = {CALLER: Account(0, 1, code)}
    made = create2_address(CALLER, 0, bytes(40))  # type: ignore[arg-type]
    assert looked_up(run(fork, accounts)) == {*ALWAYS, CALLER, made}


def test_a_value_is_that_of_the_transactions_start() -> None:
    # The contract sends 3 wei to an account before it reads that account's balance.
    code = call_to(NOBODY, value=3) + number(NOBODY) + b"\x31"
    code += push(5) + push(1) + b"\x55" + push(1) + b"\x54"
    chain = run("osaka", {CALLER: Account(10, 1, code, {1: 4}), NOBODY: Account(2)})
    found = answer(chain)
    assert found[name(NOBODY)] == {"balance": "0x2"}
    assert found[name(CALLER)]["balance"] == "0xa"
    assert found[name(CALLER)]["storage"] == {SLOT[1]: SLOT[4]}
    difference = answer(chain, diff_mode=True)
    assert difference["post"][name(CALLER)] == {
        "balance": "0x7",
        "storage": {SLOT[1]: SLOT[5]},
    }
    assert difference["pre"][name(CALLER)]["storage"] == {SLOT[1]: SLOT[4]}


# How accounts are shown


def test_members_are_left_out_where_they_are_nothing() -> None:
    code = push(1) + b"\x54" + push(2) + b"\x54"
    chain = run("osaka", {CALLER: Account(0, 0, code, {1: 1})})
    plain = answer(chain)[name(CALLER)]
    assert plain == {
        "balance": "0x0",
        "code": name(code),
        "codeHash": name(keccak(code)),
        "storage": {SLOT[1]: SLOT[1], SLOT[2]: SLOT[0]},
    }
    assert list(plain) == ["balance", "code", "codeHash", "storage"]
    without = answer(chain, disable_code=True, disable_storage=True)[name(CALLER)]
    assert without == {"balance": "0x0", "codeHash": name(keccak(code))}
    assert type(answer(chain, diff_mode=True)["post"][name(SENDER)]["nonce"]) is int


def test_zeroed_and_new_slots_in_the_difference() -> None:
    writes = b"".join(push(v) + push(s) + b"\x55" for s, v in ((1, 0), (2, 5), (3, 3)))
    chain = run("osaka", {CALLER: Account(0, 1, writes, {1: 7, 3: 3})})
    difference = answer(chain, diff_mode=True)
    assert difference["pre"][name(CALLER)]["storage"] == {SLOT[1]: SLOT[7]}
    assert difference["post"][name(CALLER)] == {"storage": {SLOT[2]: SLOT[5]}}
    without = answer(chain, diff_mode=True, disable_storage=True)
    assert name(CALLER) not in without["pre"] | without["post"]
    # Only a zero is written, so that the account in `post` has no members.
    zeroing = push(0) + push(1) + b"\x55"
    chain = run("osaka", {CALLER: Account(0, 1, zeroing, {1: 7})})
    assert answer(chain, diff_mode=True)["post"][name(CALLER)] == {}


@pytest.mark.parametrize("fork", ["frontier", "spurious_dragon", "osaka"])
def test_a_new_contract_is_in_post_alone(fork: str) -> None:
    init = push(1) + push(7) + b"\x55" + push(0xFE) + push(0) + b"\x53"
    init += push(1) + push(0) + b"\xf3"
    chain = Chain(fork, {})
    made = chain.run(None, init, value=3).to
    nonce = {"nonce": 1} if LADDER[fork].clears_empty_accounts else {}
    post = {
        "balance": "0x3",
        "code": "0xfe",
        "codeHash": name(keccak(b"\xfe")),
        **nonce,
        "storage": {SLOT[7]: SLOT[1]},
    }
    difference = answer(chain, diff_mode=True)
    assert difference["post"][name(made)] == post
    assert name(made) not in difference["pre"] | answer(chain)
    difference = answer(chain, diff_mode=True, disable_code=True, disable_storage=True)
    del post["code"], post["storage"]
    assert difference["post"][name(made)] == post


def test_ether_may_have_been_there_before_the_contract() -> None:
    made = create_address(SENDER, 0)  # type: ignore[arg-type]
    chain = Chain("osaka", {made: Account(5)})
    chain.run(None, push(1) + push(0) + b"\xf3", value=1)
    assert answer(chain)[name(made)] == {"balance": "0x5"}
    difference = answer(chain, diff_mode=True)
    assert difference["pre"][name(made)] == {"balance": "0x5"}
    assert difference["post"][name(made)]["balance"] == "0x6"
    assert difference["post"][name(made)]["code"] == "0x00"


def test_an_account_that_is_not_there_has_no_place_in_the_difference() -> None:
    chain = run("osaka", {CALLER: Account(0, 1, number(NOBODY) + b"\x31")})
    difference = answer(chain, diff_mode=True)
    assert name(NOBODY) not in difference["pre"] | difference["post"]


def test_a_creation_that_collides_shows_what_was_there() -> None:
    code = creation(CODE, 0xF5)
    made = create2_address(CALLER, 0, CODE)  # type: ignore[arg-type]
    chain = run("osaka", {CALLER: Account(0, 1, code), made: Account(4, 1)})
    assert answer(chain)[name(made)] == {"balance": "0x4", "nonce": 1}
    assert name(made) not in answer(chain, diff_mode=True)["post"]


# Self-destruction

DESTROY = push(2) + b"\x54" + push(1) + b"\x54" + number(NOBODY) + b"\xff"


@pytest.mark.parametrize("fork", LADDER)
def test_what_destroys_itself_is_in_pre_alone_until_cancun(fork: str) -> None:
    chain = run(fork, {CALLER: Account(9, 1, DESTROY, {1: 7})})
    difference = answer(chain, diff_mode=True)
    before = difference["pre"][name(CALLER)]
    assert before["balance"] == "0x9"
    assert difference["post"][name(NOBODY)] == {"balance": "0x9"}
    if LADDER[fork].has_parent_beacon_root:
        # The account has only lost its ether, and still exists.
        assert difference["post"][name(CALLER)] == {"balance": "0x0"}
        assert "storage" not in before
    else:
        assert name(CALLER) not in difference["post"]
        # Slots that were read remain in the result, including zero ones.
        assert before["storage"] == {SLOT[1]: SLOT[7], SLOT[2]: SLOT[0]}
    assert answer(chain)[name(CALLER)]["storage"][SLOT[2]] == SLOT[0]


@pytest.mark.parametrize("fork", ["spurious_dragon", "shanghai", "cancun", "osaka"])
def test_what_is_made_and_destroyed_at_once_is_nowhere(fork: str) -> None:
    chain = Chain(fork, {})
    made = chain.run(None, number(NOBODY) + b"\xff", value=2).to
    difference = answer(chain, diff_mode=True)
    assert name(made) not in difference["pre"] | difference["post"]
    assert difference["post"][name(NOBODY)] == {"balance": "0x2"}


@pytest.mark.parametrize("fork", ["shanghai", "osaka"])
def test_a_self_destruction_that_was_undone_counts_for_geth_all_the_same(
    fork: str,
) -> None:
    inner = call_to(CALLEE) + push(0) * 2 + b"\xfd"
    accounts = {
        CALLER: Account(0, 1, call_to(DELEGATE)),
        DELEGATE: Account(0, 1, inner),
        CALLEE: Account(9, 1, DESTROY, {1: 7}),
    }
    chain = run(fork, accounts)
    difference = answer(chain, diff_mode=True)
    assert (name(CALLEE) in difference["pre"]) == (fork == "shanghai")
    assert name(CALLEE) not in difference["post"]
    assert chain.world.get_balance(CALLEE) == 9  # type: ignore[arg-type]


def test_an_heir_that_is_the_contract_itself() -> None:
    code = b"\x30\xff"
    before_cancun = run("shanghai", {CALLER: Account(9, 1, code)})
    assert name(CALLER) in answer(before_cancun, diff_mode=True)["pre"]
    assert name(CALLER) not in answer(before_cancun, diff_mode=True)["post"]
    since_cancun = answer(run("osaka", {CALLER: Account(9, 1, code)}), diff_mode=True)
    assert name(CALLER) not in since_cancun["pre"] | since_cancun["post"]


# Delegations


def delegating(target: bytes, **account: Any) -> Account:
    return Account(code=DELEGATION_PREFIX + target, **account)


def consent(signer: Signer, address: bytes, nonce: int = 0) -> Authorization:
    return signer.authorize(CHAIN_ID, address, nonce)  # type: ignore[arg-type]


@pytest.mark.parametrize("fork", ["prague", "osaka"])
def test_target_of_a_delegation_is_looked_up(fork: str) -> None:
    accounts = {
        CALLER: delegating(DELEGATE),
        DELEGATE: Account(0, 1, call_to(CALLEE) + b"\x50" + call_to(b"\xcd" * 20)),
        CALLEE: delegating(b"\xd2" * 20),
        b"\xd2" * 20: Account(0, 1, CODE),
        b"\xcd" * 20: delegating(b"\xcd" * 20),  # the account delegates to itself
    }
    chain = Chain(fork, accounts)
    top = chain.run(CALLER)
    assert looked_up(chain) == {*ALWAYS, *accounts}
    # The call names the account and not its delegate, and runs in the account's context.
    first, second = top.calls
    assert (top.to, first.sender, first.to) == (CALLER, CALLER, CALLEE)
    assert first.error is None
    # A delegation to a delegating account is not followed.
    assert second.error == "invalid opcode: opcode 0xef not defined"


def test_a_delegate_is_looked_up_even_if_its_access_is_not_paid() -> None:
    chain = run("amsterdam", {CALLER: delegating(DELEGATE)}, gas=12_000 + 3000 + 2999)
    assert chain.recorder.top.error == "out of gas"
    assert looked_up(chain) == {*ALWAYS, CALLER, DELEGATE}


def test_before_prague_a_delegation_is_code() -> None:
    chain = Chain("cancun", {CALLER: delegating(DELEGATE)})
    top = chain.run(CALLER)
    assert top.error == "invalid opcode: opcode 0xef not defined"
    assert looked_up(chain) == {*ALWAYS, CALLER}


def test_a_delegation_to_a_precompiled_contract_runs_nothing() -> None:
    identity = (4).to_bytes(20, "big")
    chain = Chain("osaka", {CALLER: delegating(identity)})
    top = chain.run(CALLER, b"\x01")
    assert (top.error, top.output) == (None, b"")
    assert looked_up(chain) == {*ALWAYS, CALLER, identity}


def test_a_precompiled_contract_that_delegates_runs_and_its_delegate_is_looked_up() -> (
    None
):
    identity = (4).to_bytes(20, "big")
    accounts = {
        CALLER: Account(0, 1, call_to(identity)),
        CALLEE: delegating(identity),
        identity: delegating(DELEGATE),
    }
    chain = Chain("osaka", accounts)
    top = chain.run(identity, b"\x01")
    assert (top.error, top.output) == (None, b"\x01")
    assert looked_up(chain) == {*ALWAYS, identity, DELEGATE}
    chain.run(CALLER)
    assert looked_up(chain) == {*ALWAYS, CALLER, identity, DELEGATE}
    # Accounts that delegate to the precompiled account run its delegation as code.
    top = chain.run(CALLEE)
    assert top.error == "invalid opcode: opcode 0xef not defined"
    assert looked_up(chain) == {*ALWAYS, CALLEE, identity}


def test_every_authority_is_looked_up_whose_signature_is_one() -> None:
    good = consent(ALICE, DELEGATE)
    stale = consent(BOB, DELEGATE, nonce=7)
    elsewhere = Signer("carol").authorize(99, DELEGATE, 0)  # type: ignore[arg-type]
    dave = consent(Signer("dave"), DELEGATE)
    high = Authorization(
        CHAIN_ID, dave.address, 0, 1 - dave.y_parity, dave.r, CURVE_ORDER - dave.s
    )
    parity = Authorization(CHAIN_ID, dave.address, 0, 2, dave.r, dave.s)
    none = Authorization(CHAIN_ID, dave.address, 0, 0, 0, 0)
    chain = Chain("osaka", {CALLER: Account(0, 1, CODE)})
    chain.run(CALLER, authorizations=(good, stale, elsewhere, high, parity, none))
    signers = {ALICE.address, BOB.address, Signer("carol").address}
    # The delegate is not looked up unless it is called.
    assert looked_up(chain) == {*ALWAYS, CALLER, *signers}
    difference = answer(chain, diff_mode=True)
    code = DELEGATION_PREFIX + DELEGATE
    assert difference["post"][name(ALICE.address)] == {
        "code": name(code),
        "codeHash": name(keccak(code)),
        "nonce": 1,
    }
    for signer in (BOB, Signer("carol")):
        assert name(signer.address) not in difference["pre"] | difference["post"]


def test_a_receiver_is_looked_through_as_it_was_before_the_transaction() -> None:
    accounts = {
        ALICE.address: delegating(CALLEE, balance=1),
        CALLEE: Account(0, 1, CODE),
        DELEGATE: Account(0, 1, OTHER_CODE, {0: 3}),
    }
    chain = Chain("osaka", accounts)  # type: ignore[arg-type]
    chain.run(ALICE.address, authorizations=(consent(ALICE, DELEGATE),))
    assert looked_up(chain) == {*ALWAYS, ALICE.address, CALLEE}
    difference = answer(chain, diff_mode=True)
    assert difference["pre"][name(ALICE.address)]["code"].endswith(CALLEE.hex())
    assert difference["post"][name(ALICE.address)]["code"].endswith(DELEGATE.hex())


def test_a_delegation_that_is_taken_back_leaves_no_code() -> None:
    accounts = {ALICE.address: delegating(DELEGATE, balance=1, nonce=4)}
    chain = Chain("osaka", accounts)  # type: ignore[arg-type]
    chain.run(NOBODY, authorizations=(consent(ALICE, bytes(20), 4),))
    difference = answer(chain, diff_mode=True)
    assert difference["pre"][name(ALICE.address)]["nonce"] == 4
    assert difference["post"][name(ALICE.address)] == {
        "code": "0x",
        "codeHash": EMPTY_CODE_HASH,
        "nonce": 5,
    }
    without = answer(chain, diff_mode=True, disable_code=True)
    assert without["post"][name(ALICE.address)] == {
        "codeHash": EMPTY_CODE_HASH,
        "nonce": 5,
    }


def test_an_authority_that_had_nothing_is_new() -> None:
    chain = Chain("osaka", {})
    chain.run(NOBODY, authorizations=(consent(ALICE, DELEGATE),))
    assert name(ALICE.address) not in answer(chain)
    difference = answer(chain, diff_mode=True)
    assert name(ALICE.address) not in difference["pre"]
    assert difference["post"][name(ALICE.address)]["nonce"] == 1


def test_a_delegation_stays_when_the_call_fails() -> None:
    chain = Chain("osaka", {CALLER: Account(0, 1, b"\xfe")})
    top = chain.run(CALLER, authorizations=(consent(ALICE, DELEGATE),))
    assert top.error == "invalid opcode: INVALID"
    post = answer(chain, diff_mode=True)["post"]
    assert post[name(ALICE.address)]["code"].endswith(DELEGATE.hex())
