import dataclasses

import pytest

from evm.intrinsic import floor_gas, intrinsic_gas
from evm.rules import forks
from evm.signing import sign_authorization, sign_transaction

KEY = b"\x46" * 32
TO = b"\x35" * 20
CALL = {"nonce": 0, "gas": 10**6, "to": TO}
DATA = bytes(10) + b"\x01" * 20


def cost(fields, fork):
    return intrinsic_gas(sign_transaction(fields, KEY), fork)


@pytest.mark.parametrize(
    ("fork", "expected"),
    [
        (forks.FRONTIER, 21_000 + 10 * 4 + 20 * 68),
        (forks.PETERSBURG, 21_000 + 10 * 4 + 20 * 68),
        (forks.ISTANBUL, 21_000 + 10 * 4 + 20 * 16),
        (forks.OSAKA, 21_000 + 10 * 4 + 20 * 16),
    ],
)
def test_data_costs_by_its_bytes(fork, expected):
    assert cost({**CALL, "data": DATA}, fork) == expected
    assert cost(CALL, fork) == 21_000


@pytest.mark.parametrize(
    ("fork", "expected"),
    [
        (forks.FRONTIER, 21_000 + 33 * 68),
        (forks.HOMESTEAD, 53_000 + 33 * 68),
        (forks.PARIS, 53_000 + 33 * 16),
        (forks.SHANGHAI, 53_000 + 33 * 16 + 2 * 2),
    ],
)
def test_creation_costs_more_from_homestead_and_by_the_word_from_shanghai(
    fork, expected
):
    creation = {"nonce": 0, "gas": 10**6, "data": b"\x01" * 33}
    assert cost(creation, fork) == expected


def test_access_list_costs_by_addresses_and_slots():
    fields = {**CALL, "type": 1, "chain_id": 1, "access_list": [(TO, (1, 2)), (TO, ())]}
    assert cost(fields, forks.BERLIN) == 21_000 + 2 * 2400 + 2 * 1900


def test_authorizations_cost_as_if_the_accounts_were_new():
    fields = {
        **CALL,
        "type": 4,
        "chain_id": 1,
        "authorization_list": [sign_authorization(1, TO, n, KEY) for n in range(3)],
    }
    assert cost(fields, forks.PRAGUE) == 21_000 + 3 * 25_000


def test_floor_counts_tokens_from_prague_on():
    transaction = sign_transaction({**CALL, "data": DATA}, KEY)
    assert floor_gas(transaction, forks.CANCUN) == 0
    assert floor_gas(transaction, forks.PRAGUE) == 21_000 + 10 * (10 + 4 * 20)
    empty = dataclasses.replace(transaction, data=b"")
    assert floor_gas(empty, forks.OSAKA) == 21_000
