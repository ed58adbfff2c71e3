"""Simulated blocks: state, budget, checks, transactions and their results."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from eth_utils.address import to_checksum_address

from evm.blocks import Withdrawal
from evm.delegations import DELEGATION_PREFIX
from evm.receipts import Receipt
from evm.requests import CONSOLIDATION_REQUEST_ADDRESS, WITHDRAWAL_REQUEST_ADDRESS
from evm.simulation.arguments import CallArguments
from evm.simulation.block_run import LEGACY_CHAIN_ID
from evm.simulation.errors import SimulationError
from evm.simulation.overrides import AccountOverride, BlockOverrides
from evm.simulation.planning import BlockCalls
from evm.trie import ordered_root
from tests.evm.simulation.chain import (
    ECRECOVER,
    ETHER,
    IDENTITY,
    POOR,
    RETURN_TOP,
    RICH,
    TARGET,
    calls,
    chain,
    code,
    empty,
    only,
    simulate,
)

BUILDER = chain()
COUNT = "PUSH 0 SLOAD PUSH 1 ADD DUP1 PUSH 0 SSTORE" + RETURN_TOP
"""Increments slot 0, and returns it."""
LOOP = "again: PUSH @again JUMP"


def call(to: bytes | None = TARGET, sender: bytes = RICH, **more: Any) -> CallArguments:
    return CallArguments(sender=sender, to=to, **more)


def run(*requests: BlockCalls, **options: Any) -> Any:
    return simulate(BUILDER, *requests, **options)


def refused(*requests: BlockCalls, **options: Any) -> tuple[int, str]:
    with pytest.raises(SimulationError) as error:
        run(*requests, **options)
    return error.value.code, error.value.text


def word(outcome: Any) -> int:
    assert outcome.error is None, outcome.error
    return int.from_bytes(outcome.result.return_data, "big")


def test_state_continues_from_call_to_call_and_block_to_block() -> None:
    blocks = run(calls(call(), call(), target=code(COUNT)), calls(call()), empty())
    assert [[word(o) for o in block.outcomes] for block in blocks] == [[1, 2], [3], []]
    headers = [block.block.header for block in blocks]
    assert [h.parent_hash for h in headers[1:]] == [h.hash for h in headers[:-1]]
    assert len({header.state_root for header in headers}) == 3
    assert headers[0].gas_used == sum(o.result.gas_used for o in blocks[0].outcomes)


def test_roots_are_those_of_the_content() -> None:
    (simulated,) = run(calls(call(value=5), call(value=6)))
    header, transactions = simulated.block.header, simulated.block.transactions
    assert header.transactions_root == ordered_root([t.raw for t in transactions])
    receipts = [
        Receipt(2, 1, None, 21_000 * count, 21_000, 0, ()).encode() for count in (1, 2)
    ]
    assert header.receipts_root == ordered_root(receipts)
    assert [t.nonce for t in transactions] == [0, 1]
    assert [t.sender for t in transactions] == [RICH, RICH]


def test_simulation_does_not_change_its_base() -> None:
    root = BUILDER.state.root
    first, second = (run(calls(call(value=5))) for _ in range(2))
    assert BUILDER.state.root == root
    assert first[0].block.header.hash == second[0].block.header.hash


def test_block_hashes_of_simulated_and_real_blocks_are_visible() -> None:
    source = "PUSH 0 CALLDATALOAD BLOCKHASH" + RETURN_TOP
    number = BUILDER.head.number
    wanted = [
        call(data=n.to_bytes(32, "big"))
        for n in (number - 1, number, number + 1, number + 2)
    ]
    first, second = run(empty(), calls(*wanted, target=code(source)))
    assert [o.result.return_data for o in second.outcomes] == [
        BUILDER.head.parent_hash,
        BUILDER.head.hash,
        first.block.header.hash,
        bytes(32),
    ]


def test_free_calls_see_the_overridden_base_fee() -> None:
    request = calls(call(), target=code("BASEFEE" + RETURN_TOP))
    assert word(only(run(request))) == 0
    overridden = replace(request, overrides=BlockOverrides(base_fee_per_gas=77))
    assert word(only(run(overridden))) == 77


def test_blob_base_fee_is_overridden_for_calls_only() -> None:
    request = replace(
        calls(call(), target=code("BLOBBASEFEE" + RETURN_TOP)),
        overrides=BlockOverrides(blob_base_fee=123),
    )
    (simulated,) = run(request)
    assert word(only([simulated])) == 123
    assert simulated.block.header.excess_blob_gas == 0


def test_moved_precompiled_contract_stays_moved_for_one_block() -> None:
    moved = AccountOverride(move_precompile_to=TARGET)
    wanted = call(data=b"data"), call(IDENTITY, data=b"data")
    first, second = run(calls(*wanted, identity=moved), calls(*wanted))
    assert [o.result.return_data for o in first.outcomes] == [b"data", b""]
    assert [o.result.return_data for o in second.outcomes] == [b"", b"data"]


def test_overridden_precompiled_contract_runs_for_one_block() -> None:
    answer = code("PUSH 7" + RETURN_TOP)
    first, second = run(
        calls(call(ECRECOVER), ecrecover=answer), calls(call(ECRECOVER))
    )
    assert word(first.outcomes[0]) == 7
    assert second.outcomes[0].result.return_data == b""


def test_precompiled_contracts_run_although_their_accounts_delegate() -> None:
    delegating = AccountOverride(code=DELEGATION_PREFIX + POOR)
    moved = AccountOverride(move_precompile_to=TARGET)
    wanted = [call(to, data=b"data", gas=100_000) for to in (TARGET, IDENTITY)]
    accounts = {"target": delegating, "identity": delegating, "poor": code("INVALID")}
    blocks = run(
        calls(*wanted, **accounts), calls(*wanted), calls(*wanted, sha256=moved)
    )
    assert [[o.error is None for o in block.outcomes] for block in blocks] == [
        [False, False],  # An override of the code replaces a precompiled contract,
        [False, True],  # in one block only.
        [True, True],
    ]
    outputs = [o.result.return_data for block in blocks[1:] for o in block.outcomes]
    assert outputs == [b"", b"data", sha256(b"data").digest(), b"data"]


def test_overrides_that_contradict_each_other_are_refused() -> None:
    both = AccountOverride(state={}, state_diff={})
    assert refused(calls(target=both)) == (
        -32000,
        f"account 0x{TARGET.hex()} has both 'state' and 'stateDiff'",
    )


def test_replaced_storage_is_part_of_the_root() -> None:
    filled, emptied = run(
        calls(target=AccountOverride(code=b"\0", state_diff={1: 1, 2: 2})),
        calls(target=AccountOverride(state={2: 2})),
    )
    ((direct,),) = [run(calls(target=AccountOverride(code=b"\0", state={2: 2})))]
    assert filled.changes.storage[TARGET] == {1: 1, 2: 2}
    assert emptied.changes.storage[TARGET] == {1: 0, 2: 2}
    roots = [block.changes.accounts[TARGET].storage_root for block in (emptied, direct)]
    assert roots[0] == roots[1] is not None


def test_account_that_an_override_leaves_empty_is_part_of_the_root() -> None:
    (plain,), (with_empty,) = run(empty()), run(calls(poor=AccountOverride(balance=0)))
    assert with_empty.block.header.state_root != plain.block.header.state_root
    account = with_empty.changes.accounts[POOR]
    assert account is not None and (account.nonce, account.balance) == (0, 0)


@pytest.mark.parametrize("gas_price", [None, 0, 1])
def test_an_empty_coinbase_is_removed_even_if_the_call_is_free(
    gas_price: int | None,
) -> None:
    request = replace(
        calls(call(gas_price=gas_price), poor=AccountOverride(balance=0)),
        overrides=BlockOverrides(fee_recipient=POOR, base_fee_per_gas=1),
    )
    (simulated,) = run(request)
    assert simulated.changes.accounts[POOR] is None


def test_sender_with_the_largest_nonce_is_refused() -> None:
    last = AccountOverride(nonce=2**64 - 1)
    text = (
        f"nonce has max value: address {to_checksum_address(POOR)}, nonce: {2**64 - 1}"
    )
    assert refused(calls(call(sender=POOR), poor=last)) == (-32603, text)


def test_withdrawals_are_paid() -> None:
    paid = (Withdrawal(1, 2, POOR, 3), Withdrawal(2, 2, TARGET, 0))
    (simulated,) = run(empty(withdrawals=paid))
    header = simulated.block.header
    assert header.withdrawals_root == ordered_root([each.encode() for each in paid])
    assert simulated.changes.accounts[POOR].balance == 3 * 10**9
    assert TARGET not in simulated.changes.accounts


@pytest.mark.parametrize("difficulty", [0, 1])
def test_withdrawals_before_shanghai_are_ignored(difficulty: int) -> None:
    paid = (Withdrawal(1, 2, POOR, 3),)
    request = empty(withdrawals=paid, difficulty=difficulty)
    (simulated,) = simulate(chain("london"), request)
    assert simulated.block.withdrawals is None
    assert simulated.block.header.withdrawals_root is None
    assert POOR not in simulated.changes.accounts


def test_missing_system_contracts_do_no_harm() -> None:
    nothing = AccountOverride(code=b"")
    overrides = {
        WITHDRAWAL_REQUEST_ADDRESS: nothing,
        CONSOLIDATION_REQUEST_ADDRESS: nothing,
    }
    (simulated,) = run(BlockCalls(state_overrides=overrides))
    (plain,) = run(empty())
    assert simulated.block.header.requests_hash == plain.block.header.requests_hash


def test_failing_system_contract_is_an_error() -> None:
    overrides = {WITHDRAWAL_REQUEST_ADDRESS: code("INVALID")}
    fault, text = refused(BlockCalls(state_overrides=overrides))
    assert fault == -32000
    assert text == (
        "failed to process withdrawal queue: system call failed to execute: invalid "
        "opcode: INVALID"
    )


# Gas


def test_gas_defaults_to_what_is_left_of_the_block() -> None:
    first = call(gas=30_000)
    limited = replace(calls(first, call()), overrides=BlockOverrides(gas_limit=100_000))
    (simulated,) = run(limited)
    assert [t.gas for t in simulated.block.transactions] == [30_000, 79_000]


def test_call_beyond_the_gas_of_the_block_is_refused() -> None:
    limited = replace(
        calls(call(), call(gas=79_001)), overrides=BlockOverrides(gas_limit=100_000)
    )
    assert refused(limited) == (
        -38015,
        "block gas limit reached: remaining: 79000, required: 79001",
    )


def test_all_calls_share_the_gas_cap() -> None:
    burn = code(LOOP)
    blocks = run(calls(call(POOR), target=burn), calls(call()), gas_cap=100_000)
    outcome = blocks[1].outcomes[0]
    assert outcome.result.gas_used == 79_000
    assert outcome.error == (
        "out of gas (gas limit was capped by the RPC server's global gas cap)"
    )


def test_exhausted_gas_cap_leaves_no_gas_for_later_calls() -> None:
    request = calls(call(), call(), target=code(LOOP))
    assert refused(request, gas_cap=50_000) == (
        -38013,
        "err: intrinsic gas too low: have 0, want 21000 (supplied gas 0)",
    )


def test_failure_of_a_call_with_its_own_gas_has_the_plain_text() -> None:
    outcome = only(run(calls(call(gas=60_000), target=code(LOOP))))
    assert (outcome.error, outcome.result.gas_used) == ("out of gas", 60_000)


def test_revert_of_a_capped_call_has_the_plain_text() -> None:
    reverting = code("PUSH 0 PUSH 0 REVERT")
    outcome = only(run(calls(call(), target=reverting), gas_cap=50_000))
    assert outcome.error == "execution reverted"


# Checks


def test_funds_for_value_are_needed_without_validation() -> None:
    fault, text = refused(calls(call(sender=POOR, value=1)))
    assert fault == -38014
    assert text.startswith(
        "err: insufficient funds for gas * price + value: address 0x2222"
    )


@pytest.mark.parametrize(("nonce", "fault"), [(1, -38011), (0, None)])
def test_nonce_is_checked_in_validation(nonce: int, fault: int | None) -> None:
    request = replace(
        calls(call(nonce=nonce)), overrides=BlockOverrides(base_fee_per_gas=0)
    )
    if fault is None:
        assert only(run(request, validates=True)).error is None
    else:
        assert refused(request, validates=True)[0] == fault
    assert only(run(request)).error is None


def test_base_fee_has_to_be_paid_in_validation() -> None:
    assert refused(calls(call()), validates=True)[0] == -38012
    paying = call(max_fee_per_gas=2 * 10**9)
    (simulated,) = run(calls(paying), validates=True)
    base_fee = simulated.block.header.base_fee_per_gas
    account = simulated.changes.accounts[RICH]
    assert account.balance == 1000 * ETHER - 21_000 * base_fee


def test_contract_may_send_more_gas_than_a_transaction() -> None:
    sender = code("PUSH 1" + RETURN_TOP)
    request = calls(call(sender=TARGET, gas=20_000_000), target=sender)
    assert only(run(request, validates=False)).error is None


def test_arguments_that_contradict_each_other_are_refused() -> None:
    assert refused(calls(call(gas_price=1, max_fee_per_gas=1))) == (
        -32000,
        "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified",
    )
    assert refused(calls(call(chain_id=8))) == (
        -32000,
        "chainId does not match node's (have=8, want=7)",
    )


def test_blobs_and_authorizations_need_a_recipient() -> None:
    blob = b"\x01" + bytes(31)
    for wanted in (
        call(None, blob_versioned_hashes=(blob,)),
        call(None, authorization_list=()),
    ):
        assert refused(calls(wanted))[0] == -32000


# Transactions


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({}, 2),
        ({"access_list": ((TARGET, (1,)),)}, 2),
        ({"gas_price": 0}, 0),
        ({"gas_price": 0, "access_list": ((TARGET, (1,)),)}, 1),
        ({"blob_versioned_hashes": (b"\x01" * 32,), "max_fee_per_blob_gas": 1}, 3),
    ],
)
def test_type_of_a_transaction(arguments: dict[str, Any], kind: int) -> None:
    (simulated,) = run(calls(call(**arguments)))
    (transaction,) = simulated.block.transactions
    assert transaction.type == kind
    assert transaction.chain_id == (LEGACY_CHAIN_ID if kind == 0 else 7)
    blobs = len(arguments.get("blob_versioned_hashes", ()))
    assert simulated.block.header.blob_gas_used == 131_072 * blobs


def test_access_list_of_a_legacy_call_warms_slots() -> None:
    read = code("PUSH 1 SLOAD")
    used = [
        only(run(calls(call(gas_price=0, access_list=accesses), target=read))).result
        for accesses in (None, ((TARGET, (1,)),))
    ]
    # 2400 for the address, 1900 for the slot; a cold SLOAD costs 2000 more.
    assert used[1].gas_used - used[0].gas_used == 2400 + 1900 - 2000


def test_balances_wrap_around_like_geths_numbers() -> None:
    full = AccountOverride(balance=2**256 - 1)
    (simulated,) = run(calls(call(value=3), target=full))
    assert simulated.changes.accounts[TARGET].balance == 2


def test_call_before_london_is_legacy() -> None:
    (simulated,) = simulate(chain("berlin"), calls(call()))
    (transaction,) = simulated.block.transactions
    assert (transaction.type, transaction.max_fee_per_gas) == (0, 0)
    assert simulated.block.header.base_fee_per_gas is None


@pytest.mark.parametrize(
    ("fork", "arguments", "fault"),
    [
        ("berlin", {"max_fee_per_gas": 0}, "maxFeePerGas and maxPriorityFeePerGas"),
        (
            "istanbul",
            {"access_list": ()},
            "transaction type not supported: access list",
        ),
        ("london", {"max_fee_per_blob_gas": 0}, "transaction type not supported: blob"),
        (
            "cancun",
            {"authorization_list": ()},
            "transaction type not supported: setcode",
        ),
    ],
)
def test_calls_of_later_types_are_refused(
    fork: str, arguments: dict[str, Any], fault: str
) -> None:
    with pytest.raises(SimulationError) as error:
        simulate(chain(fork), calls(call(**arguments)))
    assert fault in error.value.text


def test_creation_takes_the_nonce_of_the_state() -> None:
    creation = call(None, nonce=5, data=bytes.fromhex("60016000f3"))
    (simulated,) = run(calls(creation))
    assert only([simulated]).result.return_data == b"\0"
    (transaction,) = simulated.block.transactions
    assert transaction.nonce == 5
    assert simulated.changes.accounts[RICH].nonce == 1
