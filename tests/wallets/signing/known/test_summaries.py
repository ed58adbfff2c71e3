"""Summaries of known typed data: who is allowed to do what."""

from __future__ import annotations

from typing import Any

import pytest
from eth_utils.address import is_checksum_address, to_checksum_address

from abi.erc20 import Token
from tests.wallets.signing.known.samples import (
    COW,
    DETAILS,
    LATER,
    MESSAGES,
    NOW,
    OFFERED,
    OTHER_TOKEN,
    PERMIT2,
    SEAPORT,
    SIGNER,
    SPENDER,
    TOKEN,
    WANTED,
    sample,
)
from wallets.signing.known.layouts import Summary
from wallets.signing.known.phrases import plain
from wallets.signing.known.recognition import LAYOUTS, recognize
from wallets.signing.typed_data import read_typed_data

DATE = "2026-11-19 11:06:40 UTC"
WHO, WHAT, OTHER = map(to_checksum_address, (SPENDER, TOKEN, OTHER_TOKEN))
NAMES = {TOKEN: Token("ABC", 2)}


def summary(data: Any, **tokens: Token) -> Summary:
    known = recognize(read_typed_data(data))
    assert known is not None
    found = known.summary(SIGNER, tokens, NOW)
    assert found is not None
    return found


def said(start: str, tokens: dict[str, Token] | None = None, **changes: Any) -> str:
    return plain(summary(sample(start, **changes), **(tokens or {})).main)


def test_every_kind_has_a_sample_and_every_sample_a_kind():
    found = [recognize(read_typed_data(sample(start))) for start in MESSAGES]
    titles = {known.title for known in found if known is not None}
    assert titles == {layout.title for layout in LAYOUTS}
    assert len({layout.encoded for layout in LAYOUTS}) == len(LAYOUTS)


def test_addresses_of_contracts_have_the_checksum_of_their_documentation():
    assert all(map(is_checksum_address, (PERMIT2, SEAPORT, COW)))
    fixed = {
        values["verifyingContract"]
        for layout in LAYOUTS
        for values in layout.values
        if values
    }
    assert {PERMIT2.lower(), SEAPORT.lower(), COW.lower()} <= fixed
    assert all(one == one.lower() for one in fixed)


def test_permit_names_spender_amount_and_deadline():
    assert said("Permit(address owner") == (
        f"Lets {WHO} move up to 1,500 smallest units of token {WHAT} from this account "
        f"to anyone, until you revoke it; the permit can be submitted until {DATE}."
    )
    assert f"up to 15 “ABC” (token {WHAT}) from" in said("Permit(address owner", NAMES)


@pytest.mark.parametrize("value", [2**256 - 1, 2**255])
def test_amount_that_no_token_has_is_unlimited(value):
    data = sample("Permit(address owner", value=str(value))
    found = summary(data)
    assert f"an unlimited amount of token {WHAT}" in plain(found.main)
    assert found.notes["value"] == "unlimited"


def test_amount_below_half_of_the_range_is_a_number():
    found = summary(sample("Permit(address owner", value=str(2**255 - 1)))
    assert "unlimited" not in plain(found.main)
    assert f"{2**255 - 1:,}" in plain(found.main)
    assert "value" not in found.notes


def test_permit_of_nothing_revokes():
    assert said("Permit(address owner", value=0).startswith(
        f"Revokes the permission of {WHO}"
    )


@pytest.mark.parametrize(
    ("deadline", "text"),
    [
        (NOW - 1, "until 2026-11-18 11:06:39 UTC (has passed)."),
        (0, "until 1970-01-01 00:00:00 UTC (has passed)."),
        (str(2**256 - 1), "without a time limit."),
        (253_402_300_800, "without a time limit."),
        (253_402_300_799, "until 9999-12-31 23:59:59 UTC."),
    ],
)
def test_deadlines_are_dates(deadline, text):
    assert said("Permit(address owner", deadline=deadline).endswith(text)


@pytest.mark.parametrize(
    ("start", "member"),
    [
        ("Permit(address owner", "owner"),
        ("Permit(address holder", "holder"),
        ("TransferWithAuthorization", "from"),
        ("ReceiveWithAuthorization", "from"),
        ("CancelAuthorization", "authorizer"),
        ("OrderComponents", "offerer"),
    ],
)
def test_another_owner_is_named_and_warned_about(start, member):
    found = summary(sample(start, **{member: OTHER_TOKEN}))
    assert "from this account" not in plain(found.main)
    assert OTHER in plain(found.main)
    assert f"concerns the account {OTHER}" in plain(found.warnings[0])


def test_dai_permit_is_unlimited_or_nothing():
    assert "an unlimited amount of token" in said("Permit(address holder")
    assert said("Permit(address holder", allowed=False).startswith("Revokes")
    assert said("Permit(address holder", expiry=0).endswith("submitted at any time.")


def test_permit2_allowances():
    assert said("PermitSingle") == (
        f"Lets {WHO} move up to 1,500 smallest units of token {WHAT} until {DATE} from "
        f"this account to anyone; the permit can be submitted until {DATE}."
    )
    most = {**DETAILS, "amount": str(2**160 - 1)}
    assert "an unlimited amount" in said("PermitSingle", details=most)
    assert summary(sample("PermitSingle", details=most)).notes["details/amount"] == (
        "unlimited"
    )
    once = {**DETAILS, "expiration": 0}
    assert "in the block that includes it" in said("PermitSingle", details=once)
    nothing = {**DETAILS, "amount": 0}
    assert f"no more of token {WHAT}" in said("PermitSingle", details=nothing)
    batch = summary(sample("PermitBatch("))
    assert "tokens of 2 contracts" in plain(batch.main)
    assert [WHAT in plain(batch.items[0]), OTHER in plain(batch.items[1])] == [True] * 2
    assert batch.notes["details/1/expiration"] == DATE


def test_permit2_transfers_happen_once():
    assert said("PermitTransferFrom").endswith(f"to anyone, once, until {DATE}.")
    batch = summary(sample("PermitBatchTransferFrom"))
    assert f"up to 7 smallest units of token {OTHER}" in plain(batch.items[1])


def test_authorized_transfers_say_who_can_submit_them():
    assert said("TransferWithAuthorization") == (
        "Lets anyone who has the signature send 1,500 smallest units of token "
        f"{WHAT} from this account to {WHO}, once, until {DATE}."
    )
    assert said("ReceiveWithAuthorization", validAfter=LATER - 60) == (
        f"Lets {WHO} take 1,500 smallest units of token {WHAT} from this account for "
        f"{WHO}, once, not before 2026-11-19 11:05:40 UTC and until {DATE}."
    )
    assert "1111" in said("CancelAuthorization")


def test_seaport_order_says_what_is_given_and_got():
    assert said("OrderComponents") == (
        f"Lets anyone take ID 7 of token {WHAT} from this account in exchange for "
        f"2 ether to this account until {DATE}."
    )
    assert not summary(sample("OrderComponents")).warnings


def test_seaport_order_that_gives_things_away_is_warned_about():
    elsewhere = [{**WANTED, "recipient": SPENDER}]
    nothing = [{**WANTED, "startAmount": 0, "endAmount": 0}]
    for consideration in ([], elsewhere, nothing):
        found = summary(sample("OrderComponents", consideration=consideration))
        assert plain(found.warnings[0]) == "In exchange, this account receives nothing."


def test_seaport_items_of_each_type():
    offer = [
        {**OFFERED, "itemType": 1, "startAmount": 100, "endAmount": 50},
        {**OFFERED, "itemType": 3, "startAmount": 5, "endAmount": 5},
        {**OFFERED, "itemType": 4, "identifierOrCriteria": 0},
        {**OFFERED, "itemType": 5, "identifierOrCriteria": 9},
    ]
    text = said("OrderComponents", offer=offer, orderType=3, zone=SPENDER)
    assert "100 smallest units of token" in text
    assert "at first and 50 smallest units" in text
    assert "5 × ID 7 of token" in text
    assert "any ID of token" in text
    assert "one of certain IDs of token" in text
    assert f"anyone approved by {WHO}" in text
    assert " in parts " in text


def test_cow_orders():
    assert said("Order(") == (
        f"Lets CoW Protocol sell 1,500 smallest units of token {WHAT} from this account "
        f"for at least 7 smallest units of token {OTHER}, which this account receives, "
        f"until {DATE}."
    )
    ether = {"buyToken": "0x" + "ee" * 20, "buyAmount": str(10**18), "kind": "buy"}
    text = said("Order(", **ether, feeAmount=3, partiallyFillable=True)
    assert "sell at most 1,500 smallest units" in text
    assert "plus a fee of 3 smallest units" in text
    assert "for exactly 1 ether (possibly in parts)" in text


def test_cow_order_whose_proceeds_go_elsewhere_is_warned_about():
    found = summary(sample("Order(", receiver=SPENDER, buyAmount=0))
    assert WHO in plain(found.main)
    assert f"goes to {WHO}" in plain(found.warnings[0])
    assert plain(found.warnings[1]).endswith("nothing in exchange.")
    assert not summary(sample("Order(", receiver="0x" + "00" * 20)).warnings


@pytest.mark.parametrize(
    ("start", "changes"),
    [
        ("Order(", {"kind": "gift"}),
        ("Order(", {"sellTokenBalance": "wherever"}),
        ("Order(", {"buyTokenBalance": "external"}),
        ("OrderComponents", {"orderType": 4}),
        ("OrderComponents", {"offer": [{**OFFERED, "itemType": 6}]}),
        ("OrderComponents", {"offer": [None]}),
        ("OrderComponents", {"consideration": [None]}),
        ("PermitSingle", {"details": None}),
        ("PermitBatch(", {"details": []}),
        ("PermitBatch(", {"details": [DETAILS, None]}),
        ("PermitTransferFrom", {"permitted": None}),
        ("PermitBatchTransferFrom", {"permitted": [None]}),
    ],
)
def test_values_that_the_contract_rejects_are_not_summarized(start, changes):
    known = recognize(read_typed_data(sample(start, **changes)))
    assert known is not None
    assert known.tokens is not None
    assert known.summary(SIGNER, {}, NOW) is None
