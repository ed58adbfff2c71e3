from __future__ import annotations

import re
from datetime import timedelta
from http import HTTPStatus

import pytest
from django.utils import timezone

from abi.addresses import with_checksum
from tests.support.live_sockets import open_socket_of, serve_process
from tests.support.wallet import A1, A2, BY_USER
from tests.wallets.pages.conftest import Person
from wallets.consents import get_consent
from wallets.models import Activity, Dapp, Session
from wallets.pages.choices import first_choice
from wallets.services.accounts import add_account
from wallets.services.consent import approve_session


def granted(person: Person, *scopes: str) -> Session:
    """Return the session of P with the requested scopes."""
    asked = get_consent(person.asked(*scopes))
    return approve_session(
        request_id=asked.request.pk,
        user=person.user,
        digest=asked.digest,
        choice=first_choice(asked),
        cause=BY_USER,
    )


def edit(person: Person, version: object, **boxes: list[str]):
    given = {
        "version": version,
        "scope": ["eip155:1"],
        "group": ["read", "notify", "send"],
        "account": [f"eip155:{A1}"],
        **boxes,
    }
    return person.client.post(f"/wallet/connections/{person.dapp.pk}", given)


def scopes_of(person: Person) -> list[str]:
    return list(Session.objects.get(dapp=person.dapp).scopes)


def test_list_shows_the_permissions_of_each_dapp(person: Person):
    granted(person, "eip155:1", "eip155:137")
    person.pair("https://other.example")
    text = person.client.get("/wallet/connections").content.decode()
    assert "Main, Polygon" in text
    titles = "read chain data, submit signed transactions, live notifications"
    assert titles in text
    assert f"Savings <code>{with_checksum(A1)}</code>" in text
    assert A2 not in text
    assert "<dt>networks</dt><dd>none</dd>" in text
    assert "other.example" in text


def test_list_names_no_network_for_functions_of_the_wallet(person: Person):
    granted(person, "eip155:1", "wallet:eip155")
    page = person.client.get(f"/wallet/connections/{person.dapp.pk}").content.decode()
    assert "Requests for more networks <code>wallet:eip155</code>" in page
    text = person.client.get("/wallet/connections").content.decode()
    assert "<dt>networks</dt><dd>Main</dd>" in text


def test_list_shows_connected_dapps(person: Person, stranger: Person):
    def page() -> str:
        return person.client.get("/wallet/connections").content.decode()

    idle = person.pair("https://idle.example")
    Dapp.objects.filter(pk=idle.pk).update(
        last_used_at=timezone.now() - timedelta(hours=3)
    )
    assert "connected now" not in page()
    serve_process(7)
    for address in ("192.0.2.8", "192.0.2.9", "192.0.2.8"):
        open_socket_of(person.dapp, process=7, remote_address=address)
    open_socket_of(stranger.dapp, process=7)
    open_socket_of(idle, process=8)  # of a process that was killed
    assert page().count("connected now") == 1
    assert "connected now from 192.0.2.8, 192.0.2.9, 3 WebSockets" in page()
    assert "3\xa0hours ago" in page()


def test_list_costs_the_same_for_many_dapps(person: Person, django_assert_num_queries):
    person.client.get("/wallet/connections")
    with django_assert_num_queries(9):
        person.client.get("/wallet/connections")
    for number in range(20):
        person.pair(f"https://dapp{number}.example")
    with django_assert_num_queries(9):
        person.client.get("/wallet/connections")


def test_page_of_a_dapp_has_its_boxes_ticked(person: Person):
    granted(person, "eip155:137")
    page = person.client.get(f"/wallet/connections/{person.dapp.pk}")
    text = page.content.decode()
    assert 'name="scope" value="eip155:137" checked' in text
    assert 'name="scope" value="eip155:1">' in text
    assert f'name="account" value="eip155:{A1}" checked' in text
    assert f'name="account" value="eip155:{A2}">' in text
    assert 'name="group" value="read" checked' in text


def test_network_lists_the_methods_that_another_permission_adds(person: Person):
    session = granted(person)
    edit(person, session.version, group=["notify"])
    text = person.client.get(f"/wallet/connections/{person.dapp.pk}").content.decode()
    network = text.partition('value="eip155:1"')[2].partition('class="network"')[0]
    assert '<span class="gets-read">read ' in network
    assert '<span class="gets-notify">notify 2</span>' in network


def test_networks_accounts_and_permissions_are_edited(person: Person):
    version = granted(person, "eip155:1", "eip155:137").version
    accounts = [f"eip155:{A1}", f"eip155:{A2}"]
    boxes = {"scope": ["eip155:1", "eip155:1337"], "account": accounts}
    response = edit(person, version, group=["read"], **boxes)
    assert response.status_code == HTTPStatus.FOUND
    scopes = Session.objects.get(dapp=person.dapp).scopes
    assert list(scopes) == ["eip155:1", "eip155:1337"]
    assert scopes["eip155:1"].accounts == (f"eip155:1:{A1}", f"eip155:1:{A2}")
    assert "eth_subscribe" not in scopes["eip155:1"].methods
    assert scopes["eip155:1"].notifications == ()


def test_saving_without_a_change_changes_nothing(person: Person):
    version = granted(person).version
    lines = Activity.objects.count()
    edit(person, version)
    assert Session.objects.get(dapp=person.dapp).version == version
    assert Activity.objects.count() == lines


@pytest.mark.parametrize("left_out", ["scope", "account"])
def test_session_of_nothing_is_over(person: Person, left_out):
    version = granted(person).version
    response = edit(person, version, **{left_out: []})
    assert response.status_code == HTTPStatus.FOUND
    assert scopes_of(person) == []
    page = person.client.get(response["Location"]).content.decode()
    assert "The session has ended." in page


@pytest.mark.parametrize("version", [0, 99, "x", "", "9" * 40])
def test_page_that_is_out_of_date_changes_nothing(person: Person, version):
    granted(person, "eip155:1", "eip155:137")
    assert edit(person, version).status_code == HTTPStatus.CONFLICT
    assert scopes_of(person) == ["eip155:1", "eip155:137"]


@pytest.mark.parametrize(
    "boxes",
    [
        {"scope": ["eip155:999"]},
        {"account": ["eip155:0x" + "99" * 20]},
        {"account": ["garbage"]},
        {"group": ["everything"]},
    ],
)
def test_what_is_not_on_offer_is_refused(person: Person, boxes):
    version = granted(person).version
    response = edit(person, version, **boxes)
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert re.search(rb"This (network|account|permission) is not ", response.content)
    assert Session.objects.get(dapp=person.dapp).version == version


def test_dapp_is_disconnected_blocked_and_let_in_again(person: Person):
    page = f"/wallet/connections/{person.dapp.pk}"
    granted(person)
    person.client.post(f"{page}/disconnect")
    assert scopes_of(person) == []
    person.client.post(f"{page}/block")
    assert Dapp.objects.get(pk=person.dapp.pk).blocked_at is not None
    assert b"no, it is blocked" in person.client.get("/wallet/connections").content
    person.client.post(f"{page}/unblock")
    assert Dapp.objects.get(pk=person.dapp.pk).blocked_at is None


def test_disconnect_all_leaves_other_users_alone(person: Person, stranger: Person):
    granted(person)
    granted(stranger)
    person.client.post("/wallet/connections/disconnect")
    assert scopes_of(person) == []
    assert scopes_of(stranger) == ["eip155:1"]


def test_log_shows_changes_with_their_authors(person: Person, stranger: Person):
    granted(person)
    add_account(user=person.user, address="0x" + "a3" * 20, cause=BY_USER)
    text = person.client.get("/wallet/activity").content.decode()
    assert "session granted" in text
    assert "account added" in text
    assert "https://p.example" in text
    assert "192.0.2.1" in text
    assert Activity.objects.filter(user=stranger.user).count() == 1


def test_log_is_shown_page_by_page(person: Person):
    for number in range(60):
        person.pair(f"https://dapp{number}.example")
    first = person.client.get("/wallet/activity").content.decode()
    second = person.client.get("/wallet/activity?page=2").content.decode()
    assert "dapp59.example" in first
    assert "dapp0.example" not in first
    assert "dapp0.example" in second
    assert person.client.get("/wallet/activity?page=x").status_code == HTTPStatus.OK
