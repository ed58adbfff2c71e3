"""Descriptions of contract calls: function and arguments, if known."""

from __future__ import annotations

from typing import Any

import pytest

from abi.addresses import checksummed
from abi.batches import MAX_CALLS
from abi.definitions import parse_definition
from abi.selectors import Definitions
from tests.support.named_token import call_data
from wallets.pages.transactions import MAX_ARGUMENTS, describe_transaction
from wallets.signing.transactions import DYNAMIC_FEE, Transaction

TO = "0x" + "b0" * 20
SHOWN = checksummed(b"\xb0" * 20)


def described(
    data: bytes, to: str | None = TO, abi: Definitions | None = None
) -> dict[str, Any]:
    transaction = Transaction(DYNAMIC_FEE, 1, to, 0, data, 50_000, 10**9, 10**9)
    return describe_transaction(transaction, lambda to: abi)


def word(value: int) -> bytes:
    return value.to_bytes(32)


def test_known_functions_are_read():
    call = described(call_data("transfer(address,uint256)", TO, 1_500_000))
    assert call["call"].signature == "transfer(address,uint256)"
    assert [one.value for one in call["arguments"]] == [SHOWN, "1,500,000"]
    assert not call["gives_control"]
    everything = described(call_data("setApprovalForAll(address,bool)", TO, 1))
    assert everything["arguments"][1].value == "true"
    assert everything["gives_control"]


@pytest.mark.parametrize("amount", [2**256 - 1, 2**255])
def test_amount_beyond_any_supply_is_marked(amount: int):
    call = described(call_data("approve(address,uint256)", TO, amount))
    shown = call["arguments"][1]
    assert "unlimited" in shown.value or "more than any token's supply" in shown.note


def test_arguments_within_one_another_are_shown():
    inner = call_data("transfer(address,uint256)", TO, 7)
    words = [64, 1, 32, len(inner)]
    data = call_data("multicall(uint256,bytes[])", 1_795_000_000, *words)
    call = described(data + inner.ljust(96, b"\0"))
    assert call["call"].signature == "multicall(uint256,bytes[])"
    (item,) = call["arguments"][1].fields
    function, receiver, amount = item.fields
    assert function.value == "transfer(address,uint256)"
    assert (receiver.value, amount.value) == (SHOWN, "7")


def test_uploaded_definitions_name_functions_and_silence_no_warning():
    definition = parse_definition("function feed(uint256 food)")
    own = Definitions.of([definition])
    call = described(call_data("feed(uint256)", 3), abi=own)
    assert call["call"].signature == "feed(uint256)"
    assert not call["gives_control"]
    # A function with another name, under the selector of setApprovalForAll.
    selector = call_data("setApprovalForAll(address,bool)")
    disguised = Definitions([(selector, parse_definition("function nothing()"))])
    data = call_data("setApprovalForAll(address,bool)", TO, 1)
    call = described(data, abi=disguised)
    assert call["call"].signature == "nothing()"
    assert call["gives_control"]


@pytest.mark.parametrize("spender", [TO, 2**200])
def test_control_given_by_an_inner_call_is_warned_about(spender: str | int):
    inner = call_data("approve(address,uint256)", spender, 7)
    data = call_data("multicall(bytes[])", 32, 1, 32, len(inner))
    assert described(data + inner.ljust(96, b"\0"))["gives_control"]


@pytest.mark.parametrize(
    "last", ["approve(address,uint256)", "transfer(address,uint256)"]
)
def test_control_given_after_many_other_calls_is_warned_about(last: str):
    calls = [*[call_data("transfer(address,uint256)", TO, 7)] * 2 * MAX_CALLS]
    calls.append(call_data(last, TO, 7))
    size = len(word(0) + calls[0].ljust(96, b"\0"))
    offsets = [32 * len(calls) + size * place for place in range(len(calls))]
    data = call_data("multicall(bytes[])", 32, len(calls), *offsets)
    data += b"".join(word(len(one)) + one.ljust(96, b"\0") for one in calls)
    call = described(data)
    assert call["call"] is not None
    assert call["gives_control"] is last.startswith("approve")


@pytest.mark.parametrize(
    "data",
    [
        b"\x12\x34\x56\x78",
        call_data("transfer(address,uint256)"),
        call_data("transfer(address,uint256)") + b"\xff" * 64,
        call_data("setApprovalForAll(address,bool)", 1, 2),
    ],
)
def test_what_does_not_fit_a_known_function_has_no_name(data: bytes):
    call = described(data)
    assert (call["selector"], call["call"]) == ("0x" + data[:4].hex(), None)
    assert call["arguments"] == []


def test_bytes_behind_the_arguments_are_counted():
    call = described(call_data("transfer(address,uint256)", TO, 1) + b"\x01")
    assert call["call"].trailing == 1


def test_transaction_without_a_function_has_none():
    assert described(b"\x01\x02\x03")["selector"] == ""
    assert described(call_data("burn(uint256)", 1), to=None)["call"] is None


def test_long_arrays_are_cut():
    count = 2 * MAX_ARGUMENTS
    numbers = b"".join(map(word, range(count)))
    data = call_data(
        "safeBatchTransferFrom(address,address,uint256[],uint256[],bytes)",
        *(TO, TO, 160, 160, 160, count),
    )
    call = described(data + numbers)
    assert not call["call"].is_complete
    shown = call["arguments"][2]
    assert len(shown.fields) < MAX_ARGUMENTS
    assert "more are not shown" in shown.note
