"""Forms of the admin that two users send at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import transaction
from django.test import Client
from django.urls import reverse

from keys.models import ApiKey, Plan, User
from keys.services import delete_key, issue_key
from keys.services.limits import set_limits
from networks.models import HostName
from tests.support.rows import make_network
from tests.support.threads import held_up, outcome
from wallets.models import BlockedDapp

pytestmark = pytest.mark.django_db(transaction=True)

GOLD = {"slug": "gold", "name": "Gold", "credits_per_second": 1000, "burst": 2000}
LIMITS = {"plan": "", "credits_per_second": 500, "burst": 500, "credits_per_day": ""}


@pytest.fixture
def staff() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("staff@example.org"))
    return client


def post_amid(
    staff: Client, url: str, form: dict[str, Any], save: Callable[[], object]
) -> Any:
    """Send a form while a concurrent transaction saves a conflicting object."""
    with transaction.atomic():
        save()
        waiting = held_up(lambda: staff.post(url, form))
    return outcome(waiting)


def errors(response: Any) -> str:
    assert response.status_code == 200
    return str(response.context["errors"])


@pytest.mark.parametrize(
    ("model", "form", "save", "told"),
    [
        (
            "wallets_blockeddapp",
            {"kind": "web", "ident": "https://d.example", "reason": ""},
            lambda: BlockedDapp.objects.create(kind="web", ident="https://d.example"),
            "already",
        ),
        (
            "keys_plan",
            {**GOLD, "credits_per_day": ""},
            lambda: Plan.objects.create(slug="gold", name="Other"),
            "Plan with this Slug already exists.",
        ),
        (
            "keys_plan",
            {**GOLD, "credits_per_day": "", "is_default": "on"},
            lambda: Plan.objects.create(slug="other", name="Other", is_default=True),
            "default",
        ),
        (
            "keys_user",
            {"email": "new@example.org", "usable_password": "false"},
            lambda: User.objects.create_user("new@example.org"),
            "already exists",
        ),
        (
            "auth_group",
            {"name": "staff"},
            lambda: Group.objects.create(name="staff"),
            "Group with this Name already exists.",
        ),
    ],
)
def test_what_another_has_just_added_is_reported_beside_its_field(
    staff: Client, model: str, form: dict[str, Any], save: Any, told: str
) -> None:
    response = post_amid(staff, reverse(f"admin:{model}_add"), form, save)
    assert told in errors(response)


def test_so_is_what_another_has_just_changed(staff: Client) -> None:
    plan = Plan.objects.create(slug="silver", name="Silver")
    url = reverse("admin:keys_plan_change", args=[plan.pk])
    form = {**GOLD, "credits_per_day": ""}
    response = post_amid(
        staff, url, form, lambda: Plan.objects.create(slug="gold", name="Other")
    )
    assert "Plan with this Slug already exists." in errors(response)
    plan.refresh_from_db()
    assert plan.slug == "silver"


def test_and_what_stands_in_an_inline(staff: Client) -> None:
    ours, other = make_network("one"), make_network("two")
    form = {
        "name": "one",
        "agree": 1,
        "upstreams-TOTAL_FORMS": 0,
        "upstreams-INITIAL_FORMS": 0,
        "host_names-TOTAL_FORMS": 1,
        "host_names-INITIAL_FORMS": 0,
        "host_names-0-name": "node.example.org",
        "host_names-0-network": ours.pk,
        "host_names-0-id": "",
    }
    response = post_amid(
        staff,
        reverse("admin:networks_network_change", args=[ours.pk]),
        form,
        lambda: HostName.objects.create(network=other, name="node.example.org"),
    )
    assert "already exists" in errors(response)


@pytest.fixture
def api_key(db: None) -> ApiKey:
    return issue_key(owner=User.objects.create_user("owner@example.org")).api_key


def test_limits_of_a_key_that_is_gone_are_refused_in_words(
    staff: Client, api_key: ApiKey
) -> None:
    set_limits(api_key=api_key, credits_per_second=300, burst=300)
    other = issue_key(owner=api_key.owner).api_key
    for key in (api_key, other):
        delete_key(api_key=key)
    add = reverse("admin:keys_keylimits_add")
    change = reverse("admin:keys_keylimits_change", args=[api_key.pk])
    for url, form in ((add, {"api_key": other.pk, **LIMITS}), (change, LIMITS)):
        response = staff.post(url, form, follow=True)
        assert response.redirect_chain == [(url, 302)]
        assert "This API key was deleted." in response.content.decode()


def test_key_that_is_deleted_while_it_is_changed_stays_deleted(
    staff: Client, api_key: ApiKey
) -> None:
    url = reverse("admin:keys_apikey_change", args=[api_key.pk])
    form: dict[str, Any] = {"name": "new", "is_enabled": "on", "staff_note": ""}
    page = staff.get(url).content.decode()
    for prefix in ("versions", "entitlements", "allowlist", "allowlist_entries"):
        if f"{prefix}-TOTAL_FORMS" in page:
            form |= {f"{prefix}-TOTAL_FORMS": 0, f"{prefix}-INITIAL_FORMS": 0}
    response = post_amid(staff, url, form, lambda: delete_key(api_key=api_key))
    assert response.status_code in (302, 403)
    api_key.refresh_from_db()
    assert api_key.deleted_at is not None
    assert api_key.name != "new"
