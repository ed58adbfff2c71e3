"""The first key is created and revealed in one step, once."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from keys.models import ApiKey, Membership, Role, User

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(User.objects.create_user("new@example.org"))
    return client


def test_key_is_revealed_in_the_response_alone(client: Client) -> None:
    assert "Create and reveal the key" in client.get("/dashboard/").content.decode()
    answer = client.post("/dashboard/keys/first")
    assert 'id="secret"' in answer.content.decode()
    assert answer["Cache-Control"] == "private, no-store"
    key = ApiKey.objects.get()
    assert (key.name, key.networks.count(), key.versions.count()) == ("First key", 0, 1)
    assert "Create and reveal the key" not in client.get("/dashboard/").content.decode()


def test_page_that_is_reloaded_creates_no_other_key(client: Client) -> None:
    client.post("/dashboard/keys/first")
    again = client.post("/dashboard/keys/first", follow=True)
    assert "The account has a key already." in again.content.decode()
    assert ApiKey.objects.get().versions.count() == 1


def test_key_is_of_the_account_whose_page_was_shown(client: Client) -> None:
    member = User.objects.get()
    account = User.objects.create_user("account@example.org")
    Membership.objects.create(account=account, member=member, role=Role.DEVELOPER)
    page = client.get("/dashboard/").content.decode()
    (form,) = re.findall(r'action="/dashboard/keys/first">.*?</form>', page, re.DOTALL)
    fields = dict(re.findall(r'name="(\w+)" value="(\w+)"', form))
    client.post("/dashboard/account", {"account": account.pk})  # in another window
    client.post("/dashboard/keys/first", fields)
    assert ApiKey.objects.get().owner == member


def test_staff_may_create_all_keys(client: Client, settings: Any) -> None:
    settings.KEYS_PER_CUSTOMER = 0
    assert "Create and reveal" not in client.get("/dashboard/").content.decode()
    client.post("/dashboard/keys/first")
    assert not ApiKey.objects.exists()
