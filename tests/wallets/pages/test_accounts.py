from __future__ import annotations

from http import HTTPStatus

import pytest

from abi.addresses import with_checksum
from tests.support.wallet import A1, A2, accounts_of
from tests.wallets.pages.conftest import Person
from wallets.models import Activity, Event

A3 = "0x" + "A3" * 20


def order(person: Person) -> list[str]:
    return [account.address for account in accounts_of(person.user)]


def test_page_names_each_account_on_each_network(person: Person):
    """The balances themselves need a running service: tests/browser/test_wallet.py."""
    text = person.client.get("/wallet/accounts").content.decode()
    for chain in (1, 137, 1337):
        assert text.count(f"<small>eip155:{chain}</small>") == 2
    assert text.count('<span class="quiet">unknown</span>') == 6
    assert "Some balances could not be read" in text
    assert "Savings" in text


def test_own_accounts_are_shown_with_their_checksum(person: Person):
    person.client.post("/wallet/accounts", {"address": A3, "label": ""})
    shown = with_checksum(A3.lower())
    assert shown != A3.lower()
    for page in ("/wallet/accounts", "/wallet/activity"):
        text = person.client.get(page).content.decode()
        assert f"<code>{shown}</code>" in text
        assert A3.lower() not in text


def test_account_is_added_in_lower_case_behind_the_others(person: Person):
    response = person.client.post(
        "/wallet/accounts", {"address": A3, "label": "<b>Third</b>"}, follow=True
    )
    assert order(person) == [A1, A2, A3.lower()]
    assert b"&lt;b&gt;Third&lt;/b&gt;" in response.content
    line = Activity.objects.filter(user=person.user).latest("id")
    assert (line.event, line.remote_address) == (Event.ACCOUNT_ADDED, "127.0.0.1")


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ({}, "This field is required."),
        ({"address": "0x12"}, "not an address: 0x and 40"),
        ({"address": "0x" + "A3" * 19 + "a3"}, "The checksum of this address is wrong"),
        ({"address": A1.upper().replace("X", "x")}, "You already have this account."),
        ({"address": A3, "label": "x" * 61}, "at most 60 characters"),
    ],
)
def test_what_is_no_new_account_is_refused(person: Person, given, answer):
    response = person.client.post("/wallet/accounts", given)
    assert response.status_code == HTTPStatus.OK
    assert answer in response.content.decode()
    assert order(person) == [A1, A2]


def test_account_is_renamed_moved_and_removed(person: Person):
    page = f"/wallet/accounts/{person.account2.pk}"
    person.client.post(f"{page}/rename", {"label": "Second"})
    assert accounts_of(person.user)[1].label == "Second"
    person.client.post(f"{page}/move", {"position": 0})
    assert order(person) == [A2, A1]
    person.client.post(f"{page}/move", {"position": 99})
    assert order(person) == [A1, A2]
    person.client.post(f"{page}/remove")
    assert order(person) == [A1]


@pytest.mark.parametrize(
    ("label", "fault"),
    [("x" * 61, "at most 60 characters"), ("a\u202eb", "U+202E")],
)
def test_invalid_label_is_reported_and_stays_in_its_field(
    person: Person, label: str, fault: str
):
    page = f"/wallet/accounts/{person.account2.pk}/rename"
    text = person.client.post(page, {"label": label}).content.decode()
    assert fault in text
    assert text.count(f'value="{label}"') == 1
    assert accounts_of(person.user)[1].label != label


@pytest.mark.parametrize("position", ["-1", "x", "", "1e99", "9" * 50])
def test_place_that_is_none_moves_nothing(person: Person, position):
    page = f"/wallet/accounts/{person.account2.pk}/move"
    assert person.client.post(page, {"position": position}).status_code == 302
    assert order(person) == [A1, A2]
