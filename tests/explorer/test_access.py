"""Access to the pages of blocks and transactions."""

from __future__ import annotations

import re
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from keys.models import User
from keys.services import issue_key
from networks.models import Network
from nodeapi.models import Block
from tests.explorer.pages import (
    MIXED,
    PASSWORD,
    block_hash,
    block_path,
    see,
    text,
    transaction_path,
)

pytestmark = pytest.mark.usefixtures("hard_network")


def test_anonymous_users_are_redirected_to_the_login_from_any_path():
    absent = f"/explore/nothing/tx/0x{'00' * 32}"
    for path in (block_path(), transaction_path(0), absent):
        response = Client().get(path)
        assert response.status_code == HTTPStatus.FOUND
        assert response["Location"] == f"/account/login?next={path}"


def test_logging_in_leads_to_the_page_and_logging_out_away(customer):
    issue_key(owner=customer, may_trace=True)
    client = Client(enforce_csrf_checks=True)
    login = client.get(f"/account/login?next={block_path()}")
    assert "default-src 'none'" in login["Content-Security-Policy"]
    token = re.search(r'csrfmiddlewaretoken" value="(\w+)"', login.content.decode())
    form = {"username": customer.email.upper(), "password": PASSWORD}
    form |= {"next": block_path(), "csrfmiddlewaretoken": token[1]}
    assert client.post("/account/login", form)["Location"] == block_path()
    page = text(client.get(block_path()))
    token = re.search(r'csrfmiddlewaretoken" value="(\w+)"', page)
    client.post("/account/logout", {"csrfmiddlewaretoken": token[1]})
    assert client.get(block_path()).status_code == HTTPStatus.FOUND


def test_a_wrong_password_does_not_log_in(customer):
    client = Client()
    form = {"username": customer.email, "password": "another"}
    assert "The email address or the password is wrong" in text(
        client.post("/account/login", form)
    )
    assert client.get(block_path()).status_code == HTTPStatus.FOUND


def test_logging_in_leads_to_no_other_site(customer):
    form = {"username": customer.email, "password": PASSWORD}
    form["next"] = "https://elsewhere.example/"
    response = Client().post("/account/login", form)
    assert response["Location"] == "/dashboard/"


@pytest.mark.parametrize("path", [block_path, lambda: transaction_path(0)])
def test_a_customer_sees_the_networks_that_their_key_may_trace(customer, path):
    assert see(customer, path()).status_code == HTTPStatus.NOT_FOUND
    hard = Network.objects.get(slug="hard")
    issue_key(owner=customer, networks=[hard], may_trace=True)
    assert see(customer, path()).status_code == HTTPStatus.OK
    elsewhere = path().replace("/hard/", "/other/")
    assert see(customer, elsewhere).status_code == HTTPStatus.NOT_FOUND


def test_what_a_customer_may_not_see_looks_like_what_is_not_there(customer):
    hidden = see(customer, block_path())
    absent = see(customer, block_path(slug="nothing"))
    assert hidden.status_code == absent.status_code == HTTPStatus.NOT_FOUND
    assert without_token(hidden) == without_token(absent)
    assert "none of your API keys may trace on it" in hidden.text
    assert '<a href="/dashboard/">one of your API keys</a>' in hidden.text


def test_search_without_access_says_how_to_request_it(customer):
    for path in ("/explore/", "/explore/search?q=1"):
        assert "To see a network, request tracing for it" in text(see(customer, path))


def without_token(page: Any) -> bytes:
    """Return a page without the CSRF token of its forms, which differs each time."""
    return re.sub(rb'(name="csrfmiddlewaretoken" value=)"\w+"', rb"\1", page.content)


def _expire(key: Any) -> None:
    past = timezone.now() - timedelta(seconds=1)
    key.entitlements.update(expires_at=past)


def _revoke(key: Any) -> None:
    key.versions.update(revoked_at=timezone.now())


def _disable(key: Any) -> None:
    key.is_enabled = False
    key.save()


def _delete(key: Any) -> None:
    key.deleted_at = timezone.now()
    key.save()


def _close_network(key: Any) -> None:
    key.networks.set(Network.objects.filter(slug="other"))


def _withdraw(key: Any) -> None:
    key.entitlements.all().delete()


@pytest.mark.parametrize(
    "end", [_expire, _revoke, _disable, _delete, _close_network, _withdraw]
)
def test_a_key_that_may_not_trace_any_more_shows_nothing(customer, end):
    key = issue_key(owner=customer, may_trace=True).api_key
    assert see(customer, transaction_path(0)).status_code == HTTPStatus.OK
    end(key)
    assert see(customer, transaction_path(0)).status_code == HTTPStatus.NOT_FOUND


def test_another_customers_key_grants_no_access(customer):
    issue_key(owner=User.objects.create_user("somebody@example.org"), may_trace=True)
    assert see(customer, block_path()).status_code == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize(
    ("tracer", "shown", "hidden"),
    [
        ("callTracer", 'id="calls"', 'id="changes"'),
        ("prestateTracer", 'id="changes"', 'id="calls"'),
    ],
)
def test_a_customer_sees_what_the_tracers_that_they_may_use_say(
    customer, tracer, shown, hidden
):
    key = issue_key(owner=customer, may_trace=True).api_key
    key.entitlements.update(tracers=[tracer])
    page = text(see(customer, transaction_path(MIXED)))
    assert shown in page
    assert hidden not in page


def test_the_admins_page_of_a_block_leads_to_it():
    boss = User.objects.create_superuser("boss@example.org")
    block = Block.objects.get(hash=bytes.fromhex(block_hash(1)[2:]), network__slug="hard")  # fmt: skip
    page = text(see(boss, f"/admin/nodeapi/block/{block.pk}/change/"))
    assert f'<a href="{block_path()}">' in page
