"""ethers' Contract, queryFilter, getFeeData and estimates."""

from __future__ import annotations

from typing import Any

from abi.encoding import call_data
from evm.hexadecimal import to_hex
from tests.clients.programs import Ethers
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

A, B, C = (to_hex(signer.address) for signer in (ALICE, BOB, CAROL))


def integer(value: int) -> str:
    """Return a number as a bigint of lines.mjs."""
    return f"{value}n"


def contract_call(tokens: TokenChain, path: str, *arguments: Any) -> list[Any]:
    """Return an action of ethers.mjs that calls the token."""
    return ["contract", to_hex(tokens.token), TOKEN_ABI, path, *arguments]


def test_contract_is_read_after_every_block(
    ethers: Ethers, tokens: TokenChain, tokens_url: str
) -> None:
    supply = contract_call(tokens, "totalSupply")
    assert ethers.act(tokens_url, *supply) == integer(SUPPLY)
    numbers = range(1, tokens.head + 1)
    actions = [
        contract_call(tokens, "balanceOf", B, {"blockTag": number})
        for number in numbers
    ]
    assert ethers.order(tokens_url, actions) == [
        {"result": integer(tokens.balance(number))} for number in numbers
    ]


def test_contract_is_called_without_a_transaction(
    ethers: Ethers, tokens: TokenChain, tokens_url: str
) -> None:
    number = tokens.head
    arguments = B, integer(number)
    static = contract_call(tokens, "transfer.staticCall", *arguments, {"from": A})
    assert ethers.act(tokens_url, *static) is True
    refused = contract_call(tokens, "transfer.staticCall", *arguments, {"from": C})
    (answer,) = ethers.order(tokens_url, [refused])
    assert answer["error"]["name"] == "CALL_EXCEPTION"
    reason = 'execution reverted: "insufficient balance"'  # decoded by ethers
    assert answer["error"]["message"] == reason
    estimate = contract_call(tokens, "transfer.estimateGas", *arguments, {"from": A})
    used = tokens.gas_used(number)
    assert used <= int(ethers.act(tokens_url, *estimate)[:-1]) <= used * 1.02


def test_events_are_queried_by_their_arguments(
    ethers: Ethers, tokens: TokenChain, tokens_url: str
) -> None:
    query = ["queryFilter", to_hex(tokens.token), TOKEN_ABI, "Transfer"]
    found = ethers.act(tokens_url, *query, [None, B], 0, "latest")
    numbers = range(FIRST, tokens.head + 1)
    assert [each["blockNumber"] for each in found] == list(numbers)
    assert [each["args"][2] for each in found] == [integer(each) for each in numbers]
    assert ethers.act(tokens_url, *query, [None, B], 0, 5) == found[: 5 - FIRST + 1]
    assert ethers.act(tokens_url, *query, [B], 0, "latest") == []
    mint = ethers.act(tokens_url, *query, [None, A], 0, "latest")
    assert [each["args"][2] for each in mint] == [integer(SUPPLY)]


def test_accounts_are_read(ethers: Ethers, tokens: TokenChain, tokens_url: str) -> None:
    held = tokens.balance(7)
    balance = ethers.act(tokens_url, "getBalance", B, 7)
    assert balance == integer(WEI_PER_TOKEN * held)
    assert ethers.act(tokens_url, "getTransactionCount", A, 7) == 2 + 3 * 6
    slot = integer(balance_slot(BOB.address))
    word = ethers.act(tokens_url, "getStorage", to_hex(tokens.token), slot, 7)
    assert int(word, 16) == held
    assert ethers.act(tokens_url, "getCode", to_hex(tokens.token), 0) == "0x"


def test_fees_and_gas_are_estimated(
    ethers: Ethers, tokens: TokenChain, tokens_url: str
) -> None:
    base_fee = tokens.blocks[-1].header.base_fee_per_gas
    assert base_fee is not None
    fees = ethers.act(tokens_url, "getFeeData")
    assert {name: int(fees[name]) for name in fees if name != "_type"} == {
        "gasPrice": base_fee + 10**9,
        "maxFeePerGas": 2 * base_fee + 10**9,
        "maxPriorityFeePerGas": 10**9,
    }
    number = tokens.head
    data = to_hex(call_data("transfer(address,uint256)", BOB.address, number))
    call = {"from": A, "to": to_hex(tokens.token), "data": data}
    used = tokens.gas_used(number)
    assert used <= int(ethers.act(tokens_url, "estimateGas", call)[:-1]) <= used * 1.02
    assert int(ethers.act(tokens_url, "call", call), 16) == 1
