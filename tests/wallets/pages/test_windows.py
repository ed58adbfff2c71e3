"""The windows that connect.js opens, which stay connected to the page that opened them."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.wallets.pages.conftest import Person

OPENER = "Cross-Origin-Opener-Policy"
LED = "/wallet/?of=https%3A%2F%2Fp.example"


def test_window_keeps_its_opener_until_the_decision(person: Person):
    request = person.asked()
    led = person.client.get(LED)
    assert led[OPENER] == "unsafe-none"
    assert led["Location"].startswith(f"/wallet/requests/{request.pk}?of=")
    page = person.client.get(led["Location"])
    assert page[OPENER] == "unsafe-none"
    assert 'aria-label="Wallet"' not in page.content.decode()
    decided = person.client.post(led["Location"], {"decision": "reject"})
    assert decided[OPENER] == "unsafe-none"
    assert person.client.get(decided["Location"])[OPENER] == "unsafe-none"


def test_login_keeps_the_opener_if_it_leads_back_to_a_window(person: Person):
    client = Client()
    away = client.get(LED)
    assert away[OPENER] == "unsafe-none"
    assert client.get(away["Location"])[OPENER] == "unsafe-none"
    failed = client.post("/account/login", {"next": LED})
    assert failed[OPENER] == "unsafe-none"


@pytest.mark.parametrize(
    "path",
    [
        "/wallet/",
        "/wallet/connections",
        "/account/login",
        "/account/login?next=/wallet/",
        "/account/login?next=/dashboard/?of=x",
        "/account/login?next=//[",
        "/dashboard/?of=https://p.example",
        "/?of=https://p.example",
    ],
)
def test_other_pages_are_cut_off_from_their_opener(person: Person, path: str):
    assert person.client.get(path)[OPENER] == "same-origin"
    assert Client().get(path)[OPENER] == "same-origin"
