"""Search in the admin, and pagination of lists with very many rows."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin import ModelAdmin, site
from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.db.models import QuerySet
from django.test import Client
from django.utils import timezone
from django.utils.http import urlencode

from keys.admin import limits, lists
from keys.admin.api_keys import ApiKeyAdmin
from keys.models import ApiKey, Span, UsageBucket, User
from keys.services import create_key, get_or_create_customer, issue_key
from tests.support.rows import make_network
from tests.support.usage import add_usage

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("staff@example.org"))
    return client


def found(staff: Client, model: str, **query: Any) -> list[int]:
    """Return the ids that a list shows, sorted."""
    answer = staff.get(f"/admin/keys/{model}/", query)
    assert answer.status_code == 200
    return sorted(row.pk for row in answer.context["cl"].result_list)


def ids(rows: QuerySet[UsageBucket]) -> list[int]:
    return sorted(rows.values_list("pk", flat=True))


@pytest.fixture
def two() -> tuple[ApiKey, ApiKey]:
    """Return keys of ada@ and of bob@, each with a secret."""
    first, second = (
        issue_key(owner=get_or_create_customer(email=email), name=name).api_key
        for email, name in (
            ("ada@example.org", "Indexer of 2026"),
            ("bob@example.org", "backend"),
        )
    )
    return first, second


def test_keys_are_found_by_owner_name_and_hint(
    staff: Client, two: tuple[ApiKey, ApiKey]
) -> None:
    first, second = two
    hint = first.versions.get().hint
    for text in ("ada@", "ADA@example.org", "indexer of", " 2026 ", hint):
        assert found(staff, "apikey", q=text) == [first.pk], text
    assert found(staff, "apikey", q=hint.replace("…", "...")) == [first.pk]
    assert found(staff, "apikey", q="e") == sorted([first.pk, second.pk])
    assert found(staff, "apikey", q="example.org") == []


@pytest.mark.parametrize("model", ["keyevent", "usagebucket", "keylimits"])
def test_what_belongs_to_a_key_is_found_by_number_and_owner(
    staff: Client, two: tuple[ApiKey, ApiKey], model: str
) -> None:
    network = make_network()
    for key in two:
        add_usage(key, network)
    everything = found(staff, model)
    mine = found(staff, model, q=two[0].pk)
    assert set(mine) <= set(everything)
    assert found(staff, model, q=" Ada@example.org") == mine
    assert found(staff, model, q="ada@") == found(staff, model, q="9" * 30) == []
    if model != "keylimits":
        assert mine
        assert len(mine) < len(everything)


def test_events_are_found_by_actor(staff: Client) -> None:
    person = User.objects.get(email="staff@example.org")
    owner = get_or_create_customer(email="ada@example.org")
    staff.post(
        "/admin/keys/apikey/add/",
        {
            **{"owner": owner.pk, "name": "by staff", "is_enabled": "on"},
            **{
                f"{prefix}-{name}": 0
                for prefix in ("entitlements", "versions", "allowlist")
                for name in ("TOTAL_FORMS", "INITIAL_FORMS")
            },
        },
    )
    made = ApiKey.objects.get()
    events = sorted(made.events.filter(actor=person).values_list("pk", flat=True))
    assert events
    assert found(staff, "keyevent", q=person.email) == events


@pytest.fixture
def seven(staff: Client, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make lists short, of two rows a page, and return the ids of seven keys, newest first."""
    monkeypatch.setattr(ApiKeyAdmin, "list_per_page", 2)
    monkeypatch.setattr(lists, "PAGES_AHEAD", 1)
    owners = [get_or_create_customer(email=f"{n}@example.org") for n in range(7)]
    made = [create_key(owner=one, name=f"key {n}") for n, one in enumerate(owners)]
    return [key.pk for key in made][::-1]


def shown(staff: Client, **query: Any) -> tuple[list[int], str]:
    """Return the ids on a page of keys, in order, and its text about their number."""
    answer = staff.get("/admin/keys/apikey/", query)
    said = re.search(r"(more than )?\d+ API keys?", answer.content.decode())
    assert said is not None
    return [row.pk for row in answer.context["cl"].result_list], said[0]


def test_list_counts_no_further_than_its_links_to_pages_need(
    staff: Client, seven: list[int]
) -> None:
    assert shown(staff) == (seven[:2], "more than 4 API keys")
    assert shown(staff, p=2) == (seven[2:4], "more than 6 API keys")
    assert shown(staff, p=3) == (seven[4:6], "7 API keys")
    assert shown(staff, p=4) == (seven[6:], "7 API keys")
    assert shown(staff, o=3) == (seven[::-1][:2], "more than 4 API keys")
    assert shown(staff, q="key 3") == ([seven[3]], "1 API key")
    for wrong in ("5", "0", "-1", "9" * 20):
        assert staff.get("/admin/keys/apikey/", {"p": wrong}).status_code == 302


def test_list_pages_through_so_many_rows(
    staff: Client, seven: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "MAX_ROWS", 4)
    assert shown(staff, p=2) == (seven[2:4], "more than 4 API keys")
    assert staff.get("/admin/keys/apikey/", {"p": 3}).status_code == 302


def test_all_are_selected_only_where_the_page_says_how_many(
    staff: Client, seven: list[int]
) -> None:
    offer = "select the objects across all pages"
    assert offer not in staff.get("/admin/keys/apikey/").content.decode()
    assert offer in staff.get("/admin/keys/apikey/", {"p": 3}).content.decode()


def test_show_all_shows_all_where_they_are_few(staff: Client, seven: list[int]) -> None:
    assert shown(staff, q="key", p=3, all="")[0] == seven


def test_rows_lead_to_pages_that_lead_back(staff: Client, seven: list[int]) -> None:
    page = f"/admin/keys/apikey/{seven[0]}/change/"
    assert f'<a href="{page}">' in staff.get("/admin/keys/apikey/").content.decode()
    here = {"state": "unrevealed", "q": "key"}
    filtered = staff.get("/admin/keys/apikey/", here).content.decode()
    kept = urlencode({"_changelist_filters": urlencode(here)})
    djangos = {"preserved_filters": kept, "opts": ApiKey._meta}
    assert f'<a href="{add_preserved_filters(djangos, page)}">' in filtered


def test_box_of_a_row_is_as_django_writes_it(staff: Client, seven: list[int]) -> None:
    row = ApiKey.objects.get(pk=seven[0])
    ours = site.get_model_admin(ApiKey)
    assert ours.action_checkbox(row) == ModelAdmin.action_checkbox(ours, row)


def test_owners_are_completed_as_they_are_typed(
    staff: Client, two: tuple[ApiKey, ApiKey]
) -> None:
    asked = {"app_label": "keys", "model_name": "apikey", "field_name": "owner"}
    found = staff.get("/admin/autocomplete/", {**asked, "term": "bob@"}).json()
    assert [one["text"] for one in found["results"]] == ["bob@example.org"]
    assert not found["pagination"]["more"]


def test_only_the_latest_usage_is_looked_through_unless_a_key_is_named(
    staff: Client, two: tuple[ApiKey, ApiKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    network, now = make_network(), timezone.now()
    for hours in (1, 2):
        add_usage(two[0], network, now - timedelta(hours=hours))
    second, first = UsageBucket.objects.filter(span=Span.HOUR).order_by("start")
    monkeypatch.setattr(limits, "LATEST", 1)
    assert found(staff, "usagebucket") == [first.pk]
    assert found(staff, "usagebucket", q=two[0].pk) == [first.pk, second.pk]


def test_usage_is_listed_of_one_span_at_a_time(
    staff: Client, two: tuple[ApiKey, ApiKey]
) -> None:
    network, now = make_network(), timezone.now()
    for number, key in enumerate(two):
        add_usage(key, network, now - timedelta(minutes=number))
    for span in Span:
        rows = UsageBucket.objects.filter(span=span)
        shown = {"span__exact": span.value}
        assert found(staff, "usagebucket", **shown) == ids(rows)
        mine = ids(rows.filter(api_key=two[1]))
        assert found(staff, "usagebucket", **shown, q=two[1].pk) == mine
    hours = ids(UsageBucket.objects.filter(span=Span.HOUR))
    assert found(staff, "usagebucket") == hours
    assert found(staff, "usagebucket", span__exact="7") == hours
    changelist = staff.get("/admin/keys/usagebucket/").context["cl"]
    choices = list(changelist.filter_specs[0].choices(changelist))
    assert [(one["display"], one["selected"]) for one in choices] == [
        ("Minute", False),
        ("Hour", True),
        ("Day", False),
    ]
