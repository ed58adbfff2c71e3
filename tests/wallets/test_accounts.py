from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from abi.addresses import with_checksum
from keys.models import User
from tests.support.wallet import A1, A2, BY_USER, accounts_of, new_user
from wallets.models import Activity, Event
from wallets.services import accounts

pytestmark = pytest.mark.django_db
A3 = "0x" + "a3" * 20


@pytest.fixture
def user() -> User:
    return new_user()


def add(user: User, address: str, **fields: str):
    return accounts.add_account(user=user, address=address, cause=BY_USER, **fields)


def addresses(user: User) -> list[str]:
    return [account.address for account in accounts_of(user)]


def test_accounts_are_kept_in_lower_case_in_the_order_of_their_coming(user: User):
    add(user, "0x" + A1[2:].upper(), label="mine")
    add(user, A2)
    assert addresses(user) == [A1, A2]
    assert [str(account) for account in accounts_of(user)] == [
        "mine",
        with_checksum(A2),
    ]
    log = Activity.objects.filter(user=user).latest("id")
    assert (log.event, log.details) == (Event.ACCOUNT_ADDED, {"address": A2})


@pytest.mark.parametrize(
    "address", ["", "0x12", A1[2:], "0X" + A1[2:], f"{A1}\n", "vitalik.eth"]
)
def test_what_is_no_address_is_refused(user: User, address):
    with pytest.raises(ValidationError, match="not an address: 0x and 40"):
        add(user, address)
    assert addresses(user) == []


def test_account_is_had_once_by_each_user(user: User):
    add(user, A1)
    with pytest.raises(ValidationError, match="You already have this account"):
        add(user, "0x" + A1[2:].upper())
    other = new_user()
    add(other, A1)
    assert addresses(user) == addresses(other) == [A1]


def test_number_of_accounts_is_bounded(user: User, monkeypatch):
    monkeypatch.setattr(accounts, "MAX_ACCOUNTS", 2)
    add(user, A1)
    add(user, A2)
    with pytest.raises(ValidationError, match="at most 2 accounts"):
        add(user, A3)


def test_primary_account_is_the_first_and_the_others_keep_their_order(user: User):
    first, second, third = (add(user, address) for address in (A1, A2, A3))
    accounts.move_account(account=third, position=0, cause=BY_USER)
    assert addresses(user) == [A3, A1, A2]
    accounts.move_account(account=second, position=0, cause=BY_USER)
    assert addresses(user) == [A2, A3, A1]
    accounts.remove_account(account=second, cause=BY_USER)
    assert addresses(user) == [A3, A1]
    add(user, A2)
    assert addresses(user) == [A3, A1, A2]
    assert first.pk in {account.pk for account in accounts_of(user)}


def test_accounts_get_other_names(user: User):
    account = add(user, A1)
    accounts.rename_account(account=account, label="savings")
    assert str(accounts_of(user)[0]) == "savings"
    with pytest.raises(ValidationError):
        accounts.rename_account(account=account, label="x" * 61)


def test_account_that_is_gone_is_not_renamed(user: User):
    """The account was removed in another window after this one had read it."""
    account = add(user, A1)
    accounts.remove_account(account=accounts_of(user)[0], cause=BY_USER)
    accounts.rename_account(account=account, label="savings")
    assert addresses(user) == []
