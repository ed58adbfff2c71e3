"""Pages on which a web page or a program gets a pairing code."""

from __future__ import annotations

import base64
import re
from hashlib import sha256
from http import HTTPStatus
from urllib.parse import quote

import pytest
from django.test import Client

from networks.models import Network, NetworkState
from tests.support.wallet import BY_USER
from tests.wallets.pages.conftest import Person
from wallets.models import Pairing
from wallets.services.dapps import block_dapp
from wallets.services.pairing import redeem_page_code, redeem_program_code

VERIFIER = "v" * 43
CHALLENGE = (
    base64.urlsafe_b64encode(sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
)
ASKED = {"origin": "https://d.example", "code_challenge": CHALLENGE, "state": "s-1"}


def answer_of(text: str) -> dict[str, str]:
    return dict(re.findall(r'data-(origin|state|code)="([^"]*)"', text))


def test_page_that_was_let_ask_gets_a_code_for_its_own_origin(person: Person):
    page = person.client.get("/wallet/connect", ASKED).content.decode()
    assert '<span class="rest">https://</span><wbr>d.example' in page
    assert str(person.user) in page
    assert not Pairing.objects.filter(user=person.user).exists()
    response = person.client.post("/wallet/connect", {**ASKED, "decision": "allow"})
    answer = answer_of(response.content.decode())
    assert (answer["origin"], answer["state"]) == ("https://d.example", "s-1")
    issued = redeem_page_code(
        code=answer["code"],
        verifier=VERIFIER,
        origin="https://d.example",
        cause=BY_USER,
    )
    assert issued.token.dapp.user == person.user
    assert issued.token.dapp.ident == "https://d.example"
    assert not issued.token.dapp.session.scopes


def test_pages_say_that_no_network_is_served(person: Person):
    pages = ["/wallet/connect", "/wallet/"]

    def said() -> list[bool]:
        shown = (person.client.get(page, ASKED).content for page in pages)
        return [b"No network has blocks yet" in page for page in shown]

    assert said() == [False, False]
    Network.objects.update(state=NetworkState.HIDDEN)
    assert said() == [True, True]


@pytest.mark.parametrize("decision", ["deny", "", "ALLOW"])
def test_page_that_was_not_let_ask_gets_none(person: Person, decision):
    given = {**ASKED, "decision": decision}
    text = person.client.post("/wallet/connect", given).content.decode()
    assert answer_of(text) == {"origin": ASKED["origin"], "state": "s-1", "code": ""}
    assert not Pairing.objects.filter(user=person.user).exists()


@pytest.mark.parametrize(
    "fault",
    [
        {"origin": "https://d.example/path"},
        {"origin": "javascript:alert(1)"},
        {"origin": "null"},
        {"origin": "*"},
        {"origin": ""},
        {"code_challenge": "short"},
        {"code_challenge": CHALLENGE + "\n"},
        {"state": "<script>"},
        {"state": ""},
    ],
)
@pytest.mark.parametrize("method", ["get", "post"])
def test_question_in_the_wrong_form_is_not_asked(person: Person, fault, method):
    given = {**ASKED, "decision": "allow", **fault}
    response = getattr(person.client, method)("/wallet/connect", given)
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert b"<script>" not in response.content
    assert b"data-code" not in response.content


def test_login_leads_back_to_the_request(chains: None):
    client = Client()
    response = client.get("/wallet/connect", ASKED)
    assert response.status_code == HTTPStatus.OK
    assert b"You are not logged in" in response.content
    next_page = quote(response.wsgi_request.get_full_path(), safe="")
    assert f'href="/account/login?next={next_page}"' in response.content.decode()
    assert b'href="/account/signup" target="_blank"' in response.content
    response = client.post("/wallet/connect", {**ASKED, "decision": "allow"})
    assert b"data-code" not in response.content
    assert not Pairing.objects.exists()


@pytest.mark.parametrize(
    ("next_page", "link"),
    [
        ("/wallet/connect?state=s", 'href="/wallet/connect?state=s">Continue</a>'),
        ("https://elsewhere.example/", ""),
    ],
)
def test_login_in_another_tab_is_continued(person: Person, next_page: str, link: str):
    response = person.client.get("/account/login", {"next": next_page})
    text = response.content.decode()
    assert link in text
    assert ("Continue" in text) == bool(link)


@pytest.mark.parametrize("method", ["get", "post"])
def test_user_is_not_asked_about_a_blocked_page(person: Person, method):
    block_dapp(dapp=person.dapp, cause=BY_USER)
    given = {**ASKED, "origin": person.dapp.ident, "decision": "allow"}
    response = getattr(person.client, method)("/wallet/connect", given)
    assert response.status_code == HTTPStatus.FORBIDDEN
    assert b'data-code=""' in response.content
    assert b"<form" not in response.content.partition(b"<main")[2]
    assert not Pairing.objects.filter(user=person.user).exists()


def test_code_needs_the_csrf_token(person: Person):
    client = Client(enforce_csrf_checks=True)
    client.force_login(person.user)
    response = client.post("/wallet/connect", {**ASKED, "decision": "allow"})
    assert response.status_code == HTTPStatus.FORBIDDEN
    assert not Pairing.objects.filter(user=person.user).exists()


def test_window_keeps_its_opener_and_nothing_else(person: Person):
    response = person.client.get("/wallet/connect", ASKED)
    assert response["Cross-Origin-Opener-Policy"] == "unsafe-none"
    assert response["X-Frame-Options"] == "DENY"
    assert response["Cache-Control"] == "private, no-store"
    policy = response["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


def test_program_is_paired_with_the_code_on_the_page(person: Person):
    given = {"label": "<b>Bot</b>"}
    text = person.client.post("/wallet/programs", given).content.decode()
    assert "&lt;b&gt;Bot&lt;/b&gt;" in text
    code = re.search(r"<code>([A-Z]{4}-[A-Z]{4}-[A-Z]{4})</code>", text)
    assert code
    issued = redeem_program_code(code=code[1], cause=BY_USER)
    assert issued.token.dapp.label == "<b>Bot</b>"
    assert issued.token.dapp.user == person.user


@pytest.mark.parametrize("label", ["", "   ", "x" * 61])
def test_program_needs_a_name(person: Person, label):
    response = person.client.post("/wallet/programs", {"label": label})
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert not Pairing.objects.filter(user=person.user).exists()
    page = response.content.decode()
    assert 'id="id_label_error"' in page
    assert f'name="label" maxlength="60" value="{label}"' in page
