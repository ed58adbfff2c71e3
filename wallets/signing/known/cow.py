"""Orders of CoW Protocol, which solvers execute in batches.

Source: https://docs.cow.fi/cow-protocol/reference/contracts/core/settlement;
    GPv2Order.sol of the settlement contract
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from abi.erc20 import shifted
from wallets.signing.known.layouts import Layout, Reading, Separator, Summary
from wallets.signing.known.phrases import (
    ZERO_ADDRESS,
    Sentence,
    address,
    amount_of,
    deadline_note,
    of_account,
    sentence,
    strong,
    until,
)

SETTLEMENT = "0x9008d19f58aabd9ed0d60971565aa8510560ab41"
"""Address on every chain on which the protocol is deployed."""

_ETHER = "0x" + "ee" * 20
"""The buy token of orders for ether."""

_SOURCES = frozenset({"erc20", "external", "internal"})
_TARGETS = frozenset({"erc20", "internal"})
"""Accepted sources of the sold tokens and targets of the bought ones."""


def _describe(reading: Reading) -> Summary | None:
    order, tokens = reading.message, reading.tokens
    kind = order["kind"]
    if (
        kind not in ("sell", "buy")
        or order["sellTokenBalance"] not in _SOURCES
        or order["buyTokenBalance"] not in _TARGETS
    ):
        return None
    sold = amount_of(order["sellAmount"], order["sellToken"], tokens)
    if order["feeAmount"]:
        fee = amount_of(order["feeAmount"], order["sellToken"], tokens)
        sold = sentence("{}, plus a fee of {},", sold, fee)
    receiver = order["receiver"]
    main = sentence(
        "Lets CoW Protocol sell {}{} from this account for {}{}{}, which {} receives,{}.",
        "" if kind == "sell" else "at most ",
        sold,
        "at least " if kind == "sell" else "exactly ",
        _bought(reading),
        " (possibly in parts)" if order["partiallyFillable"] else "",
        of_account(
            reading.signer if receiver == ZERO_ADDRESS else receiver, reading.signer
        ),
        until(order["validTo"], reading.now),
    )
    warnings: tuple[Sentence, ...] = ()
    if receiver not in (ZERO_ADDRESS, reading.signer):
        text = "The bought token goes to {}, not to the account that signs."
        warnings = (sentence(text, address(receiver)),)
    if order["buyAmount"] == 0:
        text = "The order accepts {} in exchange."
        warnings = (*warnings, sentence(text, strong("nothing")))
    notes = {"validTo": deadline_note(order["validTo"], reading.now)}
    return Summary(main, warnings=warnings, notes=notes)


def _bought(reading: Reading) -> Sentence:
    order = reading.message
    if order["buyToken"] == _ETHER:
        return (strong(f"{shifted(order['buyAmount'], 18)} ether"),)
    return amount_of(order["buyAmount"], order["buyToken"], reading.tokens)


def _tokens_of(message: Mapping[str, Any], _: str) -> Iterable[str]:
    found = (message["sellToken"], message["buyToken"])
    return [token for token in found if token != _ETHER]


COW_ORDERS = (
    Layout(
        title="Exchange of tokens (CoW order)",
        encoded="Order(address sellToken,address buyToken,address receiver,"
        "uint256 sellAmount,uint256 buyAmount,uint32 validTo,bytes32 appData,"
        "uint256 feeAmount,string kind,bool partiallyFillable,"
        "string sellTokenBalance,string buyTokenBalance)",
        describe=_describe,
        tokens_of=_tokens_of,
        values=(
            {
                "name": "Gnosis Protocol",
                "version": "v2",
                "verifyingContract": SETTLEMENT,
            },
        ),
        separator=Separator("domainSeparator()"),
    ),
)
