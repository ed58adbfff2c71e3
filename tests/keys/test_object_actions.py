"""Actions on the pages of keys, requests and customers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from keys.models import (
    AccessRequest,
    ApiKey,
    Entitlement,
    KeyLimits,
    KeyVersion,
    User,
)
from keys.services import (
    IssuedKey,
    create_key,
    delete_key,
    get_or_create_customer,
    issue_key,
    request_access,
)
from keys.services.limits import set_plan
from tests.support.rows import make_network

pytestmark = pytest.mark.django_db

API_KEYS = "/admin/keys/apikey/"
REQUESTS = "/admin/keys/accessrequest/"
CONFIRMED = {"confirmed": "on"}


@pytest.fixture
def issued() -> IssuedKey:
    owner = get_or_create_customer(email="owner@example.org")
    return issue_key(owner=owner, name="prod")


@pytest.fixture
def staff(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("staff@example.org"))
    return client


def buttons(client: Client, page: str) -> list[str]:
    """Return the labels of an object's actions."""
    text = client.get(page).content.decode()
    return re.findall(r'/do/\w+/">(?:<input[^>]+><button>)?([^<]+)<', text)


def page_of(key: ApiKey) -> str:
    return f"{API_KEYS}{key.pk}/change/"


def do(client: Client, key: ApiKey, action: str, **answers: Any) -> Any:
    return client.post(f"{API_KEYS}{key.pk}/do/{action}/", answers)


def test_key_offers_what_makes_sense_in_its_state(
    staff: Client, issued: IssuedKey
) -> None:
    page = page_of(issued.api_key)
    usual = ["Roll", "Revoke", "Plan and limits", "Grant tracing", "Disable", "Delete"]
    assert buttons(staff, page) == usual
    do(staff, issued.api_key, "revoke", reason="leaked", **CONFIRMED)
    assert "Revoke" not in buttons(staff, page)
    do(staff, issued.api_key, "disable", reason="unpaid", **CONFIRMED)
    assert {"Enable", "Disable"} & set(buttons(staff, page)) == {"Enable"}
    delete_key(api_key=issued.api_key)
    assert buttons(staff, page) == []
    fresh = create_key(owner=issued.api_key.owner)
    assert {"Roll", "Revoke"} & set(buttons(staff, page_of(fresh))) == set()


def test_action_asks_acts_and_leads_back_to_the_key(
    staff: Client, issued: IssuedKey
) -> None:
    key = issued.api_key
    question = staff.get(f"{API_KEYS}{key.pk}/do/revoke/").content.decode()
    assert issued.version.hint in question
    assert f'href="{page_of(key)}" class="closelink"' in question
    assert KeyVersion.objects.live().exists()
    answer = do(staff, key, "revoke", reason="leaked", **CONFIRMED)
    assert (answer.status_code, answer["Location"]) == (302, page_of(key))
    assert KeyVersion.objects.get().revoke_reason == "leaked"


def test_key_is_enabled_by_one_click_and_by_no_link(
    staff: Client, issued: IssuedKey
) -> None:
    key = issued.api_key
    do(staff, key, "disable", reason="unpaid", **CONFIRMED)
    assert staff.get(f"{API_KEYS}{key.pk}/do/enable/").status_code == 405
    assert not ApiKey.objects.get().is_enabled
    assert do(staff, key, "enable").status_code == 302
    assert ApiKey.objects.get().is_enabled


def test_rolled_secret_has_a_copy_button_and_a_curl(
    staff: Client, issued: IssuedKey
) -> None:
    make_network("alpha")
    answer = do(staff, issued.api_key, "roll", overlap="3600", **CONFIRMED)
    assert "no-store" in answer["Cache-Control"]
    text = answer.content.decode()
    (secret,) = re.findall(r'<pre data-copy="the secret" id="secret">(\w+)</pre>', text)
    assert f"curl -s &quot;http://testserver/alpha/v3/{secret}&quot;" in text
    assert "portcullis/copy.js" in text
    assert secret not in staff.get(page_of(issued.api_key)).content.decode()


def test_plan_and_limits_are_set_on_the_keys_page(
    staff: Client, issued: IssuedKey
) -> None:
    plan, _ = set_plan(slug="growth", name="Growth", credits_per_second=100)
    key = issued.api_key
    terms = {"plan": plan.pk, "burst": 200_000, "credits_per_second": ""}
    answer = do(staff, key, "limits", credits_per_day="", **terms, **CONFIRMED)
    assert answer["Location"] == page_of(key)
    limits = KeyLimits.objects.get()
    assert (limits.plan, limits.burst) == (plan, 200_000)
    assert key.events.filter(type="limits.changed").count() == 1
    shown = staff.get(f"{API_KEYS}{key.pk}/do/limits/").content.decode()
    assert 'name="burst" value="200000"' in shown
    wrong = do(staff, key, "limits", burst="1", **CONFIRMED)
    assert wrong.status_code == 200
    assert KeyLimits.objects.get().burst == 200_000


def test_actions_need_their_permissions(client: Client, issued: IssuedKey) -> None:
    key = issued.api_key
    support = User.objects.create_user("support@example.org", is_staff=True)
    support.groups.add(Group.objects.get(name="support"))
    client.force_login(support)
    assert buttons(client, page_of(key)) == ["Disable"]
    for action in ("roll", "revoke", "limits", "grant", "delete_keys"):
        assert do(client, key, action, **CONFIRMED).status_code == 403, action
    assert do(client, key, "nothing").status_code == 404
    assert client.get(f"{API_KEYS}999999/do/disable/").status_code == 404
    stranger = User.objects.create_user("new@example.org", is_staff=True)
    stranger.user_permissions.add(Permission.objects.get(codename="disable_apikey"))
    client.force_login(stranger)
    assert do(client, key, "disable", reason="x", **CONFIRMED).status_code == 403
    assert ApiKey.objects.get().is_enabled


def test_request_is_decided_on_its_own_page(staff: Client, issued: IssuedKey) -> None:
    alpha = make_network("alpha")
    asked = request_access(
        api_key=issued.api_key, network=alpha, reason="to debug <mine>"
    )
    page = f"{REQUESTS}{asked.pk}/change/"
    assert buttons(staff, page) == ["Approve", "Decline"]
    text = staff.get(page).content.decode()
    assert f"prod (…{issued.version.hint[-4:]}) of owner@example.org" in text
    assert page_of(issued.api_key) in text
    question = staff.get(f"{REQUESTS}{asked.pk}/do/decline/").content.decode()
    assert "to debug &lt;mine&gt;" in question
    answer = staff.post(
        f"{REQUESTS}{asked.pk}/do/approve/", {"answer": "Have fun", **CONFIRMED}
    )
    assert answer["Location"] == page
    assert AccessRequest.objects.get().status == "approved"
    assert Entitlement.objects.get().network == alpha
    assert buttons(staff, page) == []


def test_customers_page_has_their_keys_and_usage(
    staff: Client, issued: IssuedKey
) -> None:
    owner = issued.api_key.owner
    page = f"/admin/keys/user/{owner.pk}/change/"
    text = staff.get(page).content.decode()
    assert f'href="{page_of(issued.api_key)}">prod</a>' in text
    assert issued.version.hint in text
    assert f"{API_KEYS}add/?owner={owner.pk}" in text
    form = staff.get(f"{API_KEYS}add/?owner={owner.pk}").content.decode()
    assert f'<option value="{owner.pk}" selected>owner@example.org</option>' in form
    without = User.objects.create_user("reader@example.org", is_staff=True)
    without.user_permissions.add(Permission.objects.get(codename="view_user"))
    client = Client()
    client.force_login(without)
    assert issued.version.hint not in client.get(page).content.decode()


def test_selector_shows_name_hint_and_owner(staff: Client, issued: IssuedKey) -> None:
    label = f"prod (…{issued.version.hint[-4:]}) of owner@example.org"
    answer = staff.get(
        "/admin/autocomplete/",
        {
            "term": "prod",
            "app_label": "keys",
            "model_name": "keylimits",
            "field_name": "api_key",
        },
    )
    assert answer.json()["results"] == [
        {"id": str(issued.api_key.pk), "text": label},
    ]
    form = staff.get(f"/admin/keys/keylimits/add/?api_key={issued.api_key.pk}")
    assert label in form.content.decode()


def test_selector_takes_as_many_queries_for_many_keys_as_for_few(
    staff: Client, issued: IssuedKey
) -> None:
    def queries() -> int:
        field = {"model_name": "keylimits", "field_name": "api_key"}
        with CaptureQueriesContext(connection) as context:
            found = staff.get(
                "/admin/autocomplete/", {"term": "prod", "app_label": "keys", **field}
            )
            assert found.json()["results"]
        return len(context)

    before = queries()
    for number in range(3):
        owner = get_or_create_customer(email=f"{number}@example.org")
        issue_key(owner=owner, name="prod")
    assert queries() == before


def test_token_is_shown_with_a_call(staff: Client) -> None:
    owner = User.objects.get(email="staff@example.org")
    form = {"owner": owner.pk, "name": "billing", "scopes": ["keys:read"]}
    text = staff.post("/admin/keys/apitoken/add/", form).content.decode()
    (secret,) = re.findall(r'<pre data-copy="the secret" id="secret">(\w+)</pre>', text)
    assert "http://testserver/api/v1/networks" in text
    assert f"Authorization: Bearer {secret}" in text
