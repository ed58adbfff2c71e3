"""cast's commands that read accounts, call contracts, search logs and re-execute."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from evm.hexadecimal import to_hex
from samples.contracts import contract
from tests.clients.programs import Cast
from tests.clients.token_chain import (
    ALICE,
    BOB,
    FIRST,
    WEI_PER_TOKEN,
    TokenChain,
    balance_slot,
)

A, B = to_hex(ALICE.address), to_hex(BOB.address)
BALANCE_OF = "balanceOf(address)(uint256)"
TRANSFER = "transfer(address,uint256)"


def test_accounts_are_read_after_blocks(
    cast: Cast, tokens: TokenChain, tokens_url: str
) -> None:
    slot = f"0x{balance_slot(BOB.address):064x}"
    token = to_hex(tokens.token)
    for number in (FIRST, 9, tokens.head):
        held = tokens.balance(number)
        balance = cast.command(tokens_url, "balance", B, "--block", number)
        assert int(balance) == WEI_PER_TOKEN * held
        nonce = cast.command(tokens_url, "nonce", A, "--block", number)
        assert int(nonce) == 2 + 3 * (number - 1)
        word = cast.command(tokens_url, "storage", token, slot, "--block", number)
        assert int(word, 16) == held
    assert cast.command(tokens_url, "code", token) == to_hex(contract("token").runtime)


def test_contract_is_called_and_estimated(
    cast: Cast, tokens: TokenChain, tokens_url: str
) -> None:
    token = to_hex(tokens.token)
    for number in (1, 9, tokens.head):
        printed = cast.command(
            tokens_url, "call", "--block", number, token, BALANCE_OF, B
        )
        assert int(printed.split()[0]) == tokens.balance(number)
    number = tokens.head
    used = tokens.gas_used(number)
    estimated = cast.command(
        tokens_url, "estimate", "--from", A, token, TRANSFER, B, number
    )
    assert used <= int(estimated) <= used * 1.02
    printed = cast.command(
        tokens_url, "access-list", "--from", A, token, TRANSFER, B, number
    )
    assert token in printed.lower()


def test_logs_are_found_by_their_arguments(
    cast: Cast, tokens: TokenChain, tokens_url: str
) -> None:
    event = "Transfer(address indexed,address indexed,uint256)"
    blocks = ["--from-block", "2", "--to-block", "latest"]
    contract_only = ["--address", to_hex(tokens.token)]
    found = json.loads(
        cast.command(tokens_url, "logs", "--json", *blocks, *contract_only, event, A)
    )
    assert [int(log["data"], 16) for log in found] == list(
        range(FIRST, tokens.head + 1)
    )
    nothing = cast.command(
        tokens_url, "logs", "--json", *blocks, *contract_only, event, B
    )
    assert json.loads(nothing) == []


def test_storage_is_proven(cast: Cast, tokens: TokenChain, tokens_url: str) -> None:
    slot = f"0x{balance_slot(BOB.address):064x}"
    for number in (9, tokens.head):
        printed = cast.command(
            *(tokens_url, "proof", to_hex(tokens.token), slot, "--block", number)
        )
        (proof,) = json.loads(printed)["storageProof"]
        assert int(proof["value"], 16) == tokens.balance(number)


def test_blocks_and_fees_are_read(
    cast: Cast, tokens: TokenChain, tokens_url: str
) -> None:
    head = tokens.blocks[-1].header
    found = json.loads(cast.command(tokens_url, "block", "latest", "--json"))
    assert found["hash"] == to_hex(head.hash)
    assert int(found["stateRoot"], 16) == int.from_bytes(head.state_root)
    assert head.base_fee_per_gas is not None
    assert int(cast.command(tokens_url, "base-fee")) == head.base_fee_per_gas
    assert int(cast.command(tokens_url, "gas-price")) == head.base_fee_per_gas + 10**9
    assert int(cast.command(tokens_url, "block-number")) == head.number


@pytest.mark.parametrize("options", [[], ["--quick"]])
def test_transactions_are_executed_again(
    cast: Cast, tokens: TokenChain, tokens_url: str, options: list[str]
) -> None:
    """cast reads the state before the block, and executes the transactions itself."""
    for number in (FIRST, tokens.head):
        receipts = tokens.builder.outcomes[number - 1].receipts
        for index in (0, 2) if not options else (0,):
            transaction = tokens.blocks[number - 1].transactions[index]
            printed: Any = cast.command(
                *(tokens_url, "run", *options, "--evm-version", "prague"),
                to_hex(transaction.hash),
            )
            assert "Transaction successfully executed." in printed
            used = re.search(r"Gas used: (\d+)", printed)
            assert used, printed
            assert int(used[1]) == receipts[index].gas_used
