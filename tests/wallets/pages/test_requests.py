"""Cases 71 and 131, and further tests of the consent page."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from tests.support.pages import boxes
from tests.support.wallet import A1, A2, BY_USER
from tests.wallets.pages.conftest import Person
from wallets.models import (
    Activity,
    ConsentRequest,
    Dapp,
    DappKind,
    Event,
    RequestState,
    Session,
)
from wallets.pages.recent import MAX_LOGIN_AGE
from wallets.services.accounts import move_account
from wallets.services.dapps import disconnect_dapp
from wallets.services.pairing import pair_dapp
from wallets.services.requests import withdraw_requests


def address(request: ConsentRequest) -> str:
    return f"/wallet/requests/{request.pk}"


def seen(person: Person, request: ConsentRequest) -> dict[str, list[str]]:
    return boxes(person.client.get(address(request)).content.decode())


def approve(person: Person, request: ConsentRequest, given: dict[str, list[str]]):
    return person.client.post(address(request), {**given, "decision": "approve"})


def scopes_of(person: Person):
    return Session.objects.get(dapp=person.dapp).scopes


def state(request: ConsentRequest) -> str:
    return ConsentRequest.objects.get(pk=request.pk).state


def test_inbox_shows_the_users_own_requests_only(person: Person, stranger: Person):
    request = person.asked()
    assert address(request) in person.client.get("/wallet/").content.decode()
    assert "No pending requests" in stranger.client.get("/wallet/").content.decode()


def test_inbox_leads_to_what_a_page_has_asked_for_last(
    person: Person, stranger: Person
):
    led = "/wallet/?of=https://p.example"
    mark = "?of=https%3A%2F%2Fp.example"
    # There is no pending request.
    assert person.client.get(led).status_code == HTTPStatus.OK
    first = person.asked()
    assert person.client.get(led).headers["Location"] == address(first) + mark
    last = person.asked_to_sign()
    expected = f"/wallet/signatures/{last.pk}{mark}"
    assert person.client.get(led).headers["Location"] == expected
    for other in ("https://q.example", "p.example", ""):
        shown = person.client.get(f"/wallet/?of={other}")
        assert shown.status_code == HTTPStatus.OK
        assert address(first) in shown.content.decode()
    assert stranger.client.get(led).status_code == HTTPStatus.OK


def test_decision_in_a_window_of_a_page_leads_to_what_else_that_asks(person: Person):
    first, last = person.asked(), person.asked_to_sign()
    led = person.client.get("/wallet/?of=https://p.example").headers["Location"]
    decided = person.client.post(led, {"decision": "reject"}).headers["Location"]
    assert decided == "/wallet/?of=https%3A%2F%2Fp.example&done="
    assert not ConsentRequest.objects.pending().filter(pk=last.pk).exists()
    led = person.client.get(decided).headers["Location"]
    assert led.startswith(address(first) + "?of=")
    decided = person.client.post(led, {"decision": "reject"}).headers["Location"]
    shown = person.client.get(decided)
    assert shown.status_code == HTTPStatus.OK
    assert "Rejected the request." in shown.content.decode()


def test_page_names_the_dapp_the_user_networks_and_accounts(person: Person):
    text = person.client.get(address(person.asked("eip155:1", "eip155:9"))).content
    page = text.decode()
    assert '<span class="rest">https://</span><wbr>p.example</span>' in page
    assert str(person.user) in page
    assert "Main <code>eip155:1</code>" in page
    assert 'eip155:9 <span class="badge">not supported' in page
    assert A1 in page
    assert A2 in page
    assert "eth_subscribe" in page
    assert "First connected today" in page


def test_page_shows_which_accounts_can_not_sign(person: Person):
    address_with_key = person.with_key().address
    page = person.client.get(address(person.asked())).content.decode()
    labels = re.findall(r'name="account" value="eip155:(\w+)".*?</label>', page, re.S)
    found = re.findall(r'name="account".*?</label>', page, re.S)
    assert {
        name: "watch-only" in box for name, box in zip(labels, found, strict=True)
    } == {
        A1: True,
        A2: True,
        address_with_key: False,
    }


def test_what_was_left_ticked_is_granted(person: Person):
    request = person.asked("eip155:1", "eip155:137")
    given = seen(person, request)
    assert given["account"] == [f"eip155:{A1}"]
    given |= {"scope": ["eip155:137"], "group": ["read"]}
    response = approve(person, request, given)
    assert response.status_code == HTTPStatus.FOUND
    scopes = scopes_of(person)
    assert list(scopes) == ["eip155:137"]
    assert scopes["eip155:137"].accounts == (f"eip155:137:{A1}",)
    assert scopes["eip155:137"].notifications == ()
    assert state(request) == RequestState.APPROVED


def test_what_was_allowed_before_is_distinguished(person: Person):
    first = person.asked("eip155:1")
    approve(person, first, seen(person, first))
    page = person.client.get(address(person.asked("eip155:137"))).content.decode()
    assert re.search(r"eip155:1</code> <span[^>]*>already allowed", page)
    assert re.search(r"eip155:137</code> <span[^>]*>new", page)


@pytest.mark.parametrize("decision", ["reject", "", "APPROVE", "yes"])
def test_whatever_is_not_approved_is_refused(person: Person, decision):
    request = person.asked()
    given = {**seen(person, request), "decision": decision}
    person.client.post(address(request), given)
    assert state(request) == RequestState.REJECTED
    assert scopes_of(person) == {}


def test_button_that_return_presses_says_no(person: Person):
    page = person.client.get(address(person.asked())).content.decode()
    form = page[page.index('name="digest"') :]
    assert re.findall(r'name="decision" value="(\w+)"', form) == [
        "reject",
        "approve",
        "block",
    ]


def test_deny_and_block(person: Person):
    request = person.asked()
    person.client.post(address(request), {"decision": "block"})
    assert state(request) == RequestState.REJECTED
    assert Dapp.objects.get(pk=person.dapp.pk).blocked_at is not None


@pytest.mark.parametrize("left_out", ["scope", "account"])
def test_nothing_ticked_is_reported_and_the_request_waits(person: Person, left_out):
    request = person.asked("eip155:1", "eip155:137")
    given = seen(person, request) | {left_out: [], "group": ["read"]}
    response = approve(person, request, given)
    assert response.status_code == HTTPStatus.BAD_REQUEST
    page = response.content.decode()
    assert "Select at least one" in page
    assert boxes(page)["group"] == ["read"]
    assert left_out not in boxes(page)
    assert state(request) == RequestState.PENDING


@pytest.mark.parametrize(
    "forged",
    [
        {"scope": ["eip155:1337"]},
        {"account": ["eip155:0x" + "99" * 20]},
        {"group": ["everything"]},
    ],
)
def test_what_was_not_on_the_page_is_not_granted(person: Person, forged):
    request = person.asked()
    response = approve(person, request, seen(person, request) | forged)
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert scopes_of(person) == {}
    assert state(request) == RequestState.PENDING


@pytest.mark.parametrize("digest", ["", "0" * 64])
def test_other_digest_grants_nothing(person: Person, digest):
    request = person.asked()
    response = approve(person, request, seen(person, request) | {"digest": [digest]})
    assert response.status_code == HTTPStatus.CONFLICT
    assert scopes_of(person) == {}
    assert state(request) == RequestState.PENDING


def test_page_from_before_a_change_grants_nothing_and_shows_the_new_one(person: Person):
    request = person.asked()
    given = seen(person, request)
    move_account(account=person.account2, position=0, cause=BY_USER)
    response = approve(person, request, given)
    assert response.status_code == HTTPStatus.CONFLICT
    assert scopes_of(person) == {}
    assert approve(person, request, boxes(response.content.decode())).status_code == 302
    assert scopes_of(person)["eip155:1"].accounts == (f"eip155:1:{A2}",)


def test_consent_needs_the_csrf_token(person: Person):
    request = person.asked()
    client = Client(enforce_csrf_checks=True)
    client.force_login(person.user)
    given = boxes(client.get(address(request)).content.decode())
    response = client.post(address(request), {**given, "decision": "approve"})
    assert response.status_code == HTTPStatus.FORBIDDEN
    assert state(request) == RequestState.PENDING


def test_other_users_can_not_see_or_decide_a_request(person: Person, stranger: Person):
    request = person.asked()
    given = seen(person, request)
    assert stranger.client.get(address(request)).status_code == HTTPStatus.NOT_FOUND
    assert approve(stranger, request, given).status_code == HTTPStatus.NOT_FOUND
    assert state(request) == RequestState.PENDING


def test_second_decision_is_refused(person: Person):
    request = person.asked()
    given = seen(person, request)
    approve(person, request, given)
    again = person.client.post(address(request), {"decision": "reject"})
    assert again.status_code == HTTPStatus.CONFLICT
    assert b"was connected" in again.content
    assert "eip155:1" in scopes_of(person)


def test_dapp_that_has_gone_gets_nothing(person: Person):
    request = person.asked()
    given = seen(person, request)
    ConsentRequest.objects.filter(pk=request.pk).update(socket="s1")
    withdraw_requests(socket="s1")
    assert b"disconnected, or withdrew" in person.client.get(address(request)).content
    assert approve(person, request, given).status_code == HTTPStatus.CONFLICT
    assert scopes_of(person) == {}


def test_request_whose_time_is_over_can_not_be_approved(person: Person):
    request = person.asked()
    given = seen(person, request)
    shown = person.client.get(address(request)).content.decode()
    assert f"{request.expires_at:%H:%M:%S} UTC</time>" in shown
    late = timezone.now() - timedelta(seconds=1)
    ConsentRequest.objects.filter(pk=request.pk).update(expires_at=late)
    response = approve(person, request, given)
    assert response.status_code == HTTPStatus.CONFLICT
    assert b"no decision in time" in response.content
    assert b"&amp;done=" not in response.content
    window = person.client.get(address(request), {"of": "https://p.example"})
    assert b'?of=https%3A%2F%2Fp.example&amp;done="' in window.content
    assert scopes_of(person) == {}
    assert "No pending requests" in person.client.get("/wallet/").content.decode()


def test_dapp_that_was_disconnected_connects_as_if_for_the_first_time(person: Person):
    request = person.asked()
    approve(person, request, seen(person, request))
    again = person.client.get(address(person.asked())).content
    assert b"asks for permissions again" in again
    disconnect_dapp(dapp=person.dapp, cause=BY_USER)
    again = person.client.get(address(person.asked())).content
    assert b"wants to connect to your wallet" in again


def test_old_log_in_has_to_be_made_anew(person: Person):
    request = person.asked()
    given = seen(person, request)
    session = person.client.session
    session["logged_in_at"] = time.time() - MAX_LOGIN_AGE - 1
    session.save()
    response = approve(person, request, given)
    assert response["Location"] == f"/account/login?next={address(request)}"
    assert person.client.get("/wallet/").status_code == HTTPStatus.FOUND
    assert state(request) == RequestState.PENDING
    login = {"username": person.user.email, "password": "a password"}
    response = person.client.post(response["Location"], {**login, "next": ""})
    assert approve(person, request, given).status_code == HTTPStatus.FOUND


def test_log_in_again_leads_back_to_the_same_page(person: Person):
    led = address(person.asked()) + "?of=https%3A%2F%2Fp.example"
    session = person.client.session
    session["logged_in_at"] = time.time() - MAX_LOGIN_AGE - 1
    session.save()
    location = person.client.get(led)["Location"]
    assert parse_qs(urlsplit(location).query) == {"next": [led]}


def test_program_is_called_what_the_user_calls_it(person: Person):
    program = pair_dapp(
        user=person.user,
        kind=DappKind.APP,
        ident="ab" * 16,
        label="<i>Bot</i>",
        cause=BY_USER,
    )
    page = person.client.get(address(person.asked(dapp=program))).content.decode()
    assert "&lt;i&gt;Bot&lt;/i&gt;" in page
    assert "192.0.2.1" in page
    assert "started it yourself" in page


@pytest.mark.parametrize(
    ("origin", "warning"),
    [
        ("http://dapp.example", "without encryption"),
        ("https://xn--mnchen-3ya.example", "<bdi>münchen.example</bdi>"),
    ],
)
def test_page_warns_of_names_to_look_at_twice(person: Person, origin, warning):
    request = person.asked(dapp=person.pair(origin))
    assert warning in person.client.get(address(request)).content.decode()


@pytest.mark.parametrize(
    "origin", ["http://localhost:3000", "https://dapp.example", "https://xn--a.example"]
)
def test_page_does_not_warn_of_others(person: Person, origin):
    page = person.client.get(address(person.asked(dapp=person.pair(origin)))).content
    assert b"without encryption" not in page
    assert b"special letters" not in page


@pytest.mark.parametrize(
    ("origin", "shown"),
    [
        ("https://app.example.co.uk:8443", ("https://app.", "example.co.uk", ":8443")),
        ("https://login.bank.example", ("https://login.", "bank.example", "")),
        ("https://bank.example.evil.test", ("https://bank.example.", "evil.test", "")),
        ("https://me.github.io", ("https://", "me.github.io", "")),
        ("https://github.io", ("https://", "github.io", "")),
        ("http://localhost:3000", ("http://", "localhost", ":3000")),
        ("http://192.0.2.7", ("http://", "192.0.2.7", "")),
        ("http://[::1]:80", ("http://", "[::1]", ":80")),
    ],
)
def test_page_shows_the_registrable_domain(person: Person, origin, shown):
    before, domain, after = shown
    page = person.client.get(address(person.asked(dapp=person.pair(origin)))).content
    rest = '<span class="rest">{}</span>'
    parts = [rest.format(before), domain, *([rest.format(after)] if after else [])]
    # A line only breaks elsewhere if necessary.
    assert "<wbr>".join(parts) in page.decode()


def test_decision_is_in_the_log_with_its_address(person: Person):
    request = person.asked()
    approve(person, request, seen(person, request))
    line = Activity.objects.filter(event=Event.GRANTED, dapp=person.dapp).get()
    assert (line.actor, line.remote_address) == ("user", "127.0.0.1")
