"""Rules that depend on accounts and on the pool, without a database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evm.transactions import Transaction
from nodeapi.mempool.rules import (
    Authority,
    Pooled,
    Sender,
    authorities_of,
    check_replacement,
    check_sender,
    cost_of,
    executable,
)
from nodeapi.sending.decoding import decode_submission
from nodeapi.sending.rules import InvalidTransaction
from tests.nodeapi.sending.cases import (
    BLOB_TRANSACTION,
    DYNAMIC,
    GWEI,
    SET_CODE,
    signed,
    with_sidecar,
)

RICH = Sender(5, 10**21, False, (), False)
FUNDS = "insufficient funds for gas * price + value: "


def dynamic(**changes: object) -> Transaction:
    return decode_submission(signed(DYNAMIC, **changes)).transaction


def blob(**changes: object) -> Transaction:
    return decode_submission(with_sidecar(**changes)).transaction  # type: ignore[arg-type]


def pooled(nonce: int, is_blob: bool = False, **changes: int) -> Pooled:
    fields = {"cost": 10**15, "fee": 2 * GWEI, "tip": GWEI, "blob_fee": GWEI}
    return Pooled(bytes([nonce]) * 32, nonce, is_blob, **{**fields, **changes})


def refusal(transaction: Transaction, sender: Sender = RICH, **authorities) -> str:
    with pytest.raises(InvalidTransaction) as caught:
        check_sender(transaction, sender, authorities)
    return str(caught.value)


def test_nonces_below_the_accounts_are_too_low():
    assert refusal(dynamic(nonce=4)) == "nonce too low: next nonce 5, tx nonce 4"
    for nonce in (5, 6, 500):
        assert check_sender(dynamic(nonce=nonce), RICH, {}) is None


def test_balance_pays_for_the_transaction_and_those_before_it():
    transaction = dynamic(nonce=6)
    cost = cost_of(transaction)
    assert cost == 21_000 * 2 * GWEI + 1
    poor = replace(RICH, balance=cost - 1)
    expected = f"balance {cost - 1}, tx cost {cost}, overshot 1"
    assert refusal(transaction, poor) == FUNDS + expected
    before = pooled(5, cost=100)
    queued = pooled(7, cost=100)
    some = replace(RICH, balance=cost + 99, pooled=[before, queued])
    expected = f"balance {cost + 99}, queued cost 100, tx cost {cost}, overshot 1"
    assert refusal(transaction, some) == FUNDS + expected
    enough = replace(some, balance=cost + 100)
    assert check_sender(transaction, enough, {}) is None


def test_balance_pays_for_the_difference_of_a_replacement():
    transaction = dynamic(nonce=5)
    cost = cost_of(transaction)
    former = pooled(5, cost=100)
    sender = replace(RICH, balance=cost, pooled=[former, pooled(6, cost=1)])
    bump = cost - 100
    expected = f"balance {cost}, queued cost 101, tx bumped {bump}, overshot {101 + bump - cost}"
    assert refusal(transaction, sender) == FUNDS + expected
    assert check_sender(transaction, replace(sender, balance=cost + 1), {}) is former


@pytest.mark.parametrize(
    ("fee", "tip", "is_enough"),
    [
        (220, 110, True),
        (219, 110, False),
        (220, 109, False),
        (400, 100, False),
        (200, 400, False),
    ],
)
def test_replacement_pays_a_tenth_more(fee, tip, is_enough):
    former = pooled(0, fee=200, tip=100)
    offered = dynamic(max_fee_per_gas=fee, max_priority_fee_per_gas=min(tip, fee))
    if is_enough:
        check_replacement(offered, former)
        return
    with pytest.raises(
        InvalidTransaction, match=r"^replacement transaction underpriced$"
    ):
        check_replacement(offered, former)


def test_small_prices_have_to_rise_although_a_tenth_of_them_is_nothing():
    offered = dynamic(max_fee_per_gas=5, max_priority_fee_per_gas=1)
    with pytest.raises(InvalidTransaction):
        check_replacement(offered, pooled(0, fee=5, tip=1))
    check_replacement(offered, pooled(0, fee=4, tip=0))


@pytest.mark.parametrize(
    ("former", "expected"),
    [
        ({"fee": 2 * GWEI}, "gas fee cap 2000000000 <= 2000000000 queued"),
        ({"tip": 3 * GWEI}, "gas tip cap 1000000000 <= 3000000000 queued"),
        ({"blob_fee": GWEI}, "blob gas fee cap 1000000000 <= 1000000000 queued"),
        (
            {"fee": 2 * GWEI - 1},
            "gas fee cap 2000000000 < 1999999999 queued + 100% replacement penalty",
        ),
    ],
)
def test_blob_replacement_pays_double(former, expected):
    half = {"fee": GWEI, "tip": GWEI // 2, "blob_fee": GWEI // 2}
    check_replacement(blob(), pooled(0, True, **half))
    with pytest.raises(InvalidTransaction) as caught:
        check_replacement(blob(), pooled(0, True, **{**half, **former}))
    text = f"replacement transaction underpriced: new tx {expected}"
    assert str(caught.value) == text


def test_account_has_blob_transactions_or_others():
    sender = replace(RICH, pooled=[pooled(5, True)])
    assert refusal(dynamic(nonce=6), sender) == "address already reserved"
    sender = replace(RICH, pooled=[pooled(5)])
    assert refusal(blob(nonce=5), sender) == "address already reserved"


def test_blob_transactions_have_gaps_only_after_many_transactions():
    text = "nonce too high: tx nonce 7, gapped nonce 6"
    sender = replace(RICH, pooled=[pooled(5, True)])
    assert refusal(blob(nonce=7), sender) == text
    assert check_sender(blob(nonce=6), sender, {}) is None
    veteran = replace(RICH, nonce=9, pooled=[pooled(9, True)])
    assert check_sender(blob(nonce=11), veteran, {}) is None
    gapped = replace(veteran, pooled=[pooled(9, True), pooled(11, True)])
    assert refusal(blob(nonce=12), gapped) == (
        "nonce too high: tx nonce 12, gapped nonce 10"
    )


def test_blob_transactions_of_an_account_are_limited():
    sender = replace(RICH, pooled=[pooled(5 + place, True) for place in range(16)])
    assert refusal(blob(nonce=21), sender) == "account limit exceeded: pooled 16 txs"


@pytest.mark.parametrize("reason", ["has_code", "is_authority"])
def test_account_with_a_delegation_has_one_transaction(reason):
    sender = replace(RICH, **{reason: True})
    assert check_sender(dynamic(nonce=5), sender, {}) is None
    text = "gapped-nonce tx from delegated accounts"
    assert refusal(dynamic(nonce=6), sender) == text
    former = pooled(5)
    sender = replace(sender, pooled=[former])
    assert check_sender(dynamic(nonce=5), sender, {}) is former
    text = "in-flight transaction limit reached for delegated accounts"
    assert refusal(dynamic(nonce=6), sender) == text
    blobs = replace(sender, pooled=[pooled(5, True)])
    assert refusal(blob(nonce=6), blobs) == text


def test_authorizations_of_busy_accounts_are_refused():
    transaction = decode_submission(signed(SET_CODE, nonce=5)).transaction
    (authority,) = authorities_of(transaction)
    assert authority == transaction.sender
    for transactions, blobs, is_free in ((1, 0, True), (2, 0, False), (0, 1, False)):
        authorities = {authority: Authority(transactions, blobs)}
        if is_free:
            assert check_sender(transaction, RICH, authorities) is None
            continue
        with pytest.raises(InvalidTransaction, match=r"^authority already reserved$"):
            check_sender(transaction, RICH, authorities)


def test_executable_transactions_are_consecutive():
    sent = [pooled(nonce) for nonce in (5, 6, 8)]
    assert executable(sent, 5) == sent[:2]
    assert executable(sent, 4) == []
    assert executable([], 5) == []


def test_cost_includes_blobs():
    fees = BLOB_TRANSACTION["max_fee_per_blob_gas"] * 131_072
    assert cost_of(blob()) == cost_of(dynamic()) + fees
