"""web3.py's contracts, event filters, fees, proofs and simulations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hexbytes import HexBytes
from web3 import Web3
from web3.exceptions import BadFunctionCallOutput, ContractLogicError
from web3.providers import HTTPProvider

from abi.encoding import call_data
from samples.contracts import contract
from tests.clients.token_chain import (
    ALICE,
    BOB,
    CAROL,
    FIRST,
    SUPPLY,
    TOKEN_ABI,
    WEI_PER_TOKEN,
    TokenChain,
    balance_slot,
)
from tests.support.waiting import wait_until

A, B, C = (Web3.to_checksum_address(signer.address) for signer in (ALICE, BOB, CAROL))


@pytest.fixture(scope="module")
def w3(tokens_url: str) -> Iterator[Any]:
    provider: Any = HTTPProvider(tokens_url)
    yield Web3(provider)
    session = provider._request_session_manager.cache_and_return_session(tokens_url)
    session.close()


@pytest.fixture(scope="module")
def token(w3: Any, tokens: TokenChain) -> Any:
    address = Web3.to_checksum_address(tokens.token)
    return w3.eth.contract(address=address, abi=TOKEN_ABI)


def grow(w3: Any, tokens: TokenChain) -> Any:
    """Add a block, and wait until the service has it."""
    block = tokens.grow()
    wait_until(lambda: w3.eth.block_number == block.header.number)
    return block


def test_contract_is_read_after_every_block(
    w3: Any, token: Any, tokens: TokenChain
) -> None:
    assert token.functions.totalSupply().call() == SUPPLY
    for number in range(1, tokens.head + 1):
        held = token.functions.balanceOf(B).call(block_identifier=number)
        assert held == tokens.balance(number)
        by_hash = tokens.blocks[number - 1].header.hash
        assert token.functions.balanceOf(A).call(block_identifier=by_hash) == (
            SUPPLY - held
        )
    with pytest.raises(BadFunctionCallOutput):
        token.functions.totalSupply().call(block_identifier=0)


def test_accounts_are_read_after_every_block(w3: Any, tokens: TokenChain) -> None:
    slot = balance_slot(BOB.address)
    address = Web3.to_checksum_address(tokens.token)
    for number in range(FIRST, tokens.head + 1):
        expected = tokens.balance(number)
        assert w3.eth.get_balance(B, number) == WEI_PER_TOKEN * expected
        assert w3.eth.get_transaction_count(A, number) == 2 + 3 * (number - 1)
        assert int.from_bytes(w3.eth.get_storage_at(address, slot, number)) == expected
        proof = w3.eth.get_proof(address, [slot], number)
        assert int.from_bytes(proof.storageProof[0].value) == expected
    assert w3.eth.get_code(address) == HexBytes(contract("token").runtime)
    assert w3.eth.get_code(address, 0) == HexBytes(b"")


def test_reverted_call_raises_its_reason(token: Any) -> None:
    reason = "execution reverted: insufficient balance"
    transfer = token.functions.transfer(A, 1)
    with pytest.raises(ContractLogicError, match=reason):
        transfer.call({"from": C})
    with pytest.raises(ContractLogicError, match=reason):
        transfer.estimate_gas({"from": C})


def test_call_with_overridden_state_succeeds(token: Any) -> None:
    slot = f"0x{balance_slot(CAROL.address):064x}"
    overrides = {token.address: {"stateDiff": {slot: f"0x{5:064x}"}}}
    held = token.functions.balanceOf(C).call(state_override=overrides)
    assert held == 5
    transfer = token.functions.transfer(A, 5)
    assert transfer.call({"from": C}, state_override=overrides) is True


def test_transaction_is_prepared_with_gas_and_fees(
    w3: Any, token: Any, tokens: TokenChain
) -> None:
    number = tokens.head
    used = tokens.gas_used(number)
    draft = token.functions.transfer(B, number).build_transaction({"from": A})
    assert used <= draft["gas"] <= used * 1.02
    assert draft["chainId"] == w3.eth.chain_id
    base_fee = tokens.blocks[-1].header.base_fee_per_gas
    assert base_fee is not None
    assert draft["maxPriorityFeePerGas"] == w3.eth.max_priority_fee == 10**9
    assert draft["maxFeePerGas"] == 2 * base_fee + 10**9
    assert w3.eth.gas_price == base_fee + 10**9


def test_fee_history_has_the_blocks_fees(w3: Any, tokens: TokenChain) -> None:
    history = w3.eth.fee_history(8, "latest", [0, 50, 100])
    headers = [block.header for block in tokens.blocks[-8:]]
    assert history["oldestBlock"] == headers[0].number
    assert history["baseFeePerGas"][:-1] == [each.base_fee_per_gas for each in headers]
    assert history["gasUsedRatio"] == pytest.approx(
        [each.gas_used / each.gas_limit for each in headers]
    )
    assert history["reward"] == [[10**9] * 3] * 8


def test_access_list_names_the_slots_of_a_transfer(
    w3: Any, token: Any, tokens: TokenChain
) -> None:
    data = HexBytes(call_data("transfer(address,uint256)", BOB.address, 1))
    found = w3.eth.create_access_list({"from": A, "to": token.address, "data": data})
    (entry,) = found["accessList"]
    assert entry["address"] == token.address
    slots = {int.from_bytes(HexBytes(key)) for key in entry["storageKeys"]}
    assert slots == {balance_slot(ALICE.address), balance_slot(BOB.address)}


def test_simulation_sees_the_calls_before(w3: Any, token: Any) -> None:
    def called(sender: Any, data: bytes) -> Any:
        return {"from": sender, "to": token.address, "data": HexBytes(data)}

    calls = [
        called(A, call_data("transfer(address,uint256)", CAROL.address, 7)),
        called(C, call_data("transfer(address,uint256)", BOB.address, 3)),
        called(C, call_data("balanceOf(address)", CAROL.address)),
    ]
    payload: Any = {"blockStateCalls": [{"calls": calls}]}
    (block,) = w3.eth.simulate_v1(payload, "latest")
    assert block["number"] == w3.eth.block_number + 1
    assert [call["status"] for call in block["calls"]] == [1, 1, 1]
    assert int.from_bytes(block["calls"][2]["returnData"]) == 4
    assert [len(call["logs"]) for call in block["calls"]] == [1, 1, 0]


def test_events_are_found_by_their_arguments(token: Any, tokens: TokenChain) -> None:
    to_bob = {"to": B}
    found = token.events.Transfer.get_logs(from_block=0, argument_filters=to_bob)
    assert [(event.blockNumber, event.args.value) for event in found] == [
        (number, number) for number in range(FIRST, tokens.head + 1)
    ]
    assert {event.args["from"] for event in found} == {A}
    some = token.events.Transfer.get_logs(
        from_block=5, to_block=9, argument_filters=to_bob
    )
    assert [event.args.value for event in some] == [5, 6, 7, 8, 9]
    block = tokens.blocks[6].header
    (one,) = token.events.Transfer.get_logs(block_hash=HexBytes(block.hash))
    assert one.args.value == block.number
    nothing = token.events.Transfer.get_logs(from_block=0, argument_filters={"from": B})
    assert nothing == []


def test_event_filter_reports_old_and_new_events(
    w3: Any, token: Any, tokens: TokenChain
) -> None:
    to_bob = {"to": B}
    events = token.events.Transfer.create_filter(from_block=0, argument_filters=to_bob)
    others = token.events.Transfer.create_filter(
        from_block="latest", argument_filters={"to": C}
    )
    blocks = w3.eth.filter("latest")
    assert len(events.get_all_entries()) == tokens.head - FIRST + 1
    first, second = grow(w3, tokens), grow(w3, tokens)
    numbers = [first.header.number, second.header.number]
    hashes = [HexBytes(block.header.hash) for block in (first, second)]
    assert [event.args.value for event in events.get_new_entries()] == numbers
    assert list(blocks.get_new_entries()) == hashes
    assert events.get_new_entries() == blocks.get_new_entries() == []
    assert others.get_new_entries() == []
    assert len(events.get_all_entries()) == tokens.head - FIRST + 1
    for each in (events, others, blocks):
        assert w3.eth.uninstall_filter(each.filter_id) is True
        assert w3.eth.uninstall_filter(each.filter_id) is False


def test_pending_filter_reports_a_sent_transaction(w3: Any, tokens: TokenChain) -> None:
    pending = w3.eth.filter("pending")
    sent = tokens.builder.fork().send(ALICE, CAROL.address, value=1)
    transaction_hash = w3.eth.send_raw_transaction(sent.raw)
    assert transaction_hash == HexBytes(sent.hash)
    found = wait_until(pending.get_new_entries)
    assert list(found) == [transaction_hash]
    assert w3.eth.get_transaction(transaction_hash)["blockHash"] is None
    assert w3.eth.get_transaction_count(A, "pending") == sent.nonce + 1
    assert w3.eth.get_transaction_count(A) == sent.nonce
