"""Forms that are sent after the session has ended."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from keys.models import ApiKey, User
from keys.services import create_key
from tests.support.wallet import A1, BY_USER
from wallets.services.accounts import add_account

pytestmark = pytest.mark.django_db

HOST = "http://testserver"


@pytest.fixture
def key() -> ApiKey:
    return create_key(owner=User.objects.create_user("owner@example.org"), name="First")


def of_key(key: ApiKey) -> tuple[str, str]:
    return f"/dashboard/keys/{key.pk}?page=2", f"/dashboard/keys/{key.pk}/disable"


def of_account(key: ApiKey) -> tuple[str, str]:
    account = add_account(user=key.owner, address=A1, cause=BY_USER)
    return "/wallet/accounts", f"/wallet/accounts/{account.pk}/remove"


def of_emails(key: ApiKey) -> tuple[str, str]:
    return "/account/", "/account/"


@pytest.mark.parametrize("place", [of_key, of_account, of_emails])
def test_login_leads_back_to_the_page_of_the_form(
    key: ApiKey, place: Callable[[ApiKey], tuple[str, str]]
) -> None:
    page, address = place(key)
    client = Client()
    answer = client.post(address, headers={"referer": f"{HOST}{page}"})
    (login,) = (answer["Location"],)
    assert login == f"/account/login?next={page.replace('?page=', '%3Fpage%3D')}"
    assert "You were logged out" in client.get(login).content.decode()
    client.force_login(key.owner)
    assert client.get(page).status_code == 200


@pytest.mark.parametrize(
    "referer", ["", "https://evil.example/page", "//evil.example", "javascript:1"]
)
def test_other_pages_are_not_led_to(key: ApiKey, referer: str) -> None:
    _, address = of_key(key)
    answer = Client().post(address, headers={"referer": referer})
    assert answer["Location"] == f"/account/login?next={address}"


def test_page_that_was_only_requested_needs_no_explanation(key: ApiKey) -> None:
    page, _ = of_key(key)
    client = Client()
    login = client.get(page)["Location"]
    assert "You were logged out" not in client.get(login).content.decode()
