"""Keys are created, revealed, rolled, revoked and deleted by their owners."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from keys.dashboard import api_keys
from keys.dashboard.access import MAX_CHANGES_AN_HOUR
from keys.format import is_well_formed
from keys.models import ApiKey, EventType, KeyEvent, KeyVersion, KeyVersionUse
from keys.services import Actor, disable_key, issue_key, issue_version
from keys.services.limits import set_limits, set_plan
from keys.states import State, state_of
from networks.models import Network
from tests.keys.dashboard.conftest import Customer, shown_secret, text
from tests.support.rows import make_network

KEYS = "/dashboard/"


def test_key_is_made_and_revealed_once(customer: Customer, alpha) -> None:
    form = {"name": "Indexer", "networks": ["alpha"]}
    made = customer.client.post("/dashboard/keys/new", form)
    customer.key = ApiKey.objects.get(name="Indexer")
    assert made["Location"] == customer.path()
    assert customer.key.owner == customer.user
    assert list(customer.key.networks.all()) == [alpha]
    assert "Reveal the key" in customer.page()
    shown = customer.post("reveal")
    secret = shown_secret(shown)
    assert is_well_formed(secret)
    assert "no-store" in shown["Cache-Control"]
    assert f"/alpha/v3/{secret}" in text(shown)
    again = customer.client.post(customer.path("reveal"), follow=True)
    assert "already revealed" in text(again)
    for path in ("", "connect", "activity", "roll", "allowlists", "tracing"):
        assert secret[7:-4] not in customer.page(path)
    assert customer.events() == ["key.created", "key.revealed"]
    assert customer.key.events.first().actor == customer.user


def test_list_shows_what_there_is(customer: Customer, alpha: Network) -> None:
    used = timezone.now() - timedelta(hours=3)
    KeyVersionUse.objects.create(
        version=customer.issued.version, last_used_at=used, last_network=alpha
    )
    assert "3 hours ago</time> on Alpha" in customer.page().replace("\xa0", " ")
    page = text(customer.client.get(KEYS))
    assert "First" in page
    assert customer.issued.version.hint in page
    assert "3 hours ago" in page
    assert "active" in page


def test_list_takes_as_many_queries_for_many_keys_as_for_few(
    customer: Customer, alpha
) -> None:
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as queries:
            assert customer.client.get(KEYS).status_code == 200
        counts.append(len(queries))
        for _ in range(5):
            issue_key(owner=customer.user, networks=[alpha])
    assert counts[0] == counts[1]


def test_list_of_many_keys_has_pages(
    customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_keys, "KEYS", 2)
    for name in ("Second", "Third"):
        issue_key(owner=customer.user, name=name)
    newest, oldest = (customer.client.get(KEYS, {"page": number}) for number in (1, 2))
    assert [str(line.key) for line in newest.context["lines"]] == ["Third", "Second"]
    assert [str(line.key) for line in oldest.context["lines"]] == ["First"]
    assert 'rel="next" href="?page=2"' in text(newest)
    assert 'rel="prev" href="?page=1"' in text(oldest)


def test_pages_name_the_plan_and_what_it_allows(customer: Customer) -> None:
    assert "no limits" in customer.page()
    set_plan(slug="free", name="Free", credits_per_second=1500, is_default=True)
    assert "Plan <b>Free</b>: 1,500 credits per second, burst 3,000." in customer.page()
    assert '<td data-label="plan">Free</td>' in text(customer.client.get(KEYS))
    gold, _ = set_plan(slug="gold", name="Gold", credits_per_second=9000)
    set_limits(api_key=customer.key, plan=gold)
    assert "Plan <b>Gold</b>: 9,000 credits per second, burst 18,000." in (
        customer.page()
    )
    set_limits(api_key=customer.key, plan=gold, credits_per_second=20)
    own = "Plan <b>Gold</b>, with custom limits: 20 credits per second, burst 100."
    assert own in customer.page()
    assert '<td data-label="plan">Gold</td>' in text(customer.client.get(KEYS))


def test_customer_makes_so_many_keys_and_no_more(customer: Customer, settings) -> None:
    settings.KEYS_PER_CUSTOMER = 2
    form = {"name": "more"}
    for _ in range(2):  # in addition to the key that staff have issued
        assert customer.client.post("/dashboard/keys/new", form).status_code == 302
    refused = customer.client.post("/dashboard/keys/new", form)
    assert "You can create at most 2 keys" in text(refused)
    assert "Create a key" not in text(customer.client.get(KEYS))
    customer.post("delete", typed="First")
    assert "Create a key" not in text(customer.client.get(KEYS))
    own = ApiKey.objects.kept().first()
    customer.client.post(f"/dashboard/keys/{own.pk}/delete", {"typed": "more"})
    assert customer.client.post("/dashboard/keys/new", form).status_code == 302
    assert ApiKey.objects.kept().count() == 2


def test_page_says_which_keys_support_has_issued(customer: Customer) -> None:
    assert "UTC</time>, by support" in customer.page()
    customer.client.post("/dashboard/keys/new", {"name": "mine"})
    own = ApiKey.objects.get(name="mine")
    page = text(customer.client.get(f"/dashboard/keys/{own.pk}"))
    assert "by support" not in page


@pytest.mark.parametrize(
    "form",
    [
        {"name": ""},
        {"name": "x" * 101},
        {"name": "x", "networks": ["nothing"]},
        {"name": "x\0y"},
    ],
)
def test_wrong_forms_make_no_key(customer: Customer, form) -> None:
    answer = customer.client.post("/dashboard/keys/new", form)
    assert 'class="errorlist"' in text(answer)
    assert ApiKey.objects.count() == 1


def test_more_fields_than_are_asked_for_change_nothing(
    customer: Customer, stranger: Customer
) -> None:
    more = {
        "owner": stranger.user.pk,
        "expires_at": "2020-01-01",
        "staff_note": "vip",
        "is_enabled": "",
        "plan": "custom",
        "id": customer.key.pk,
    }
    customer.client.post("/dashboard/keys/new", {"name": "New", **more})
    new = ApiKey.objects.get(name="New")
    assert (new.owner, new.staff_note, new.expires_at) == (customer.user, "", None)
    assert new.is_enabled
    customer.post("rename", name="Other", **more)
    customer.key.refresh_from_db()
    assert (customer.key.name, customer.key.owner) == ("Other", customer.user)
    assert customer.key.staff_note == ""


def test_renamed_key_has_its_new_name(customer: Customer) -> None:
    assert customer.post("rename", name="Über <b>").status_code == 302
    assert "Über &lt;b&gt;" in customer.page()
    assert customer.events()[-1:] == ["key.updated"]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("x" * 101, "at most 100 characters"),
        ("", "This field is required."),
        ("a\u202eb", "U+202E"),
    ],
)
def test_invalid_name_of_a_key_stays_in_its_field(
    customer: Customer, name: str, fault: str
) -> None:
    answer = customer.post("rename", name=name)
    assert answer.status_code == 400
    page = text(answer)
    assert fault in page
    assert f'required value="{name}"' in page
    customer.key.refresh_from_db()
    assert customer.key.name == "First"


def test_roll_names_the_hour_and_the_old_secret_ends_then(customer: Customer) -> None:
    page = customer.page("roll")
    tomorrow = timezone.now() + timedelta(hours=24)
    assert f"{tomorrow:%Y-%m-%d}" in page
    shown = customer.post("roll", overlap="3600")
    secret = shown_secret(shown)
    old = customer.issued.version
    old.refresh_from_db()
    assert timedelta(minutes=59) < old.expires_at - timezone.now() <= timedelta(hours=1)
    assert f"remains valid until {old.expires_at:%Y-%m-%d %H:%M} UTC" in text(shown)
    assert secret != customer.issued.secret
    assert "no-store" in shown["Cache-Control"]


@pytest.mark.parametrize("overlap", ["", "5", "-3600", "99999999999999", "x"])
def test_other_overlaps_than_those_on_offer_are_refused(
    customer: Customer, overlap: str
) -> None:
    assert customer.post("roll", overlap=overlap).status_code == 400
    assert KeyVersion.objects.count() == 1


def test_too_many_live_secrets_are_refused_with_the_way_out(customer: Customer) -> None:
    for _ in range(2):
        issue_version(api_key=customer.key)
    answer = customer.post("roll", overlap="3600")
    assert answer.status_code == 400
    assert "at most 3 valid secrets" in text(answer)
    assert customer.post("roll", overlap="0").status_code == 200


def test_secret_is_revoked_when_its_end_is_typed(customer: Customer) -> None:
    path = f"secrets/{customer.issued.version.pk}"
    end = customer.issued.version.hint[-4:]
    assert f"Type {end} to confirm" in customer.page(path)
    assert "This is not" in text(customer.post(path, typed="wrong"))
    assert state_of(customer.key) == State.ACTIVE
    assert customer.post(path, typed=end).status_code == 302
    customer.key.refresh_from_db()
    assert state_of(customer.key) == State.REVOKED
    assert customer.events()[-1] == "key.revoked"
    again = customer.client.post(customer.path(path), {"typed": end}, follow=True)
    assert "is already revoked" in text(again)


def test_key_is_deleted_when_its_name_is_typed(customer: Customer) -> None:
    assert "This is not First" in text(customer.post("delete", typed="first"))
    assert customer.post("delete", typed="First")["Location"] == KEYS
    assert "First is deleted" in text(customer.client.get(KEYS))
    assert customer.client.get(customer.path()).status_code == 404
    customer.key.refresh_from_db()
    assert customer.key.deleted_at is not None


def test_owner_enables_a_key_that_they_disabled(customer: Customer) -> None:
    customer.post("disable")
    assert "until it is enabled again" in customer.page()
    customer.post("enable")
    assert "Disable" in customer.page()
    assert customer.events()[-2:] == ["key.disabled", "key.enabled"]


@pytest.mark.parametrize("first", ["support", "the owner"])
def test_owner_does_not_enable_what_support_has_disabled(
    customer: Customer, stranger: Customer, first: str
) -> None:
    """This also holds if the owner has disabled the key before."""
    if first == "the owner":
        customer.post("disable")
    disable_key(api_key=customer.key, reason="abuse", actor=Actor(stranger.user))
    disable_key(api_key=customer.key, reason="abuse", actor=Actor(stranger.user))
    customer.post("disable")
    assert "Support has disabled this key" in customer.page()
    answer = customer.client.post(customer.path("enable"), follow=True)
    assert "can enable it" in text(answer)
    customer.key.refresh_from_db()
    assert not customer.key.is_enabled
    disabled = customer.events().count(EventType.DISABLED)
    assert disabled == (2 if first == "the owner" else 1)


def test_changes_are_bounded(customer: Customer) -> None:
    KeyEvent.objects.bulk_create(
        KeyEvent(api_key=customer.key, type=EventType.UPDATED, actor=customer.user)
        for _ in range(MAX_CHANGES_AN_HOUR)
    )
    assert customer.post("rename", name="again").status_code == 429
    assert customer.client.get(customer.path()).status_code == 200
    customer.key.refresh_from_db()
    assert customer.key.name == "First"


def test_customers_whose_keys_are_made_by_staff_make_none(
    customer: Customer, settings
) -> None:
    settings.KEYS_PER_CUSTOMER = 0
    customer.post("delete", typed="First")
    assert "Ask support to create one" in text(customer.client.get(KEYS))
    customer.client.post("/dashboard/keys/new", {"name": "mine"})
    assert not ApiKey.objects.kept().exists()


def test_key_without_networks_opens_all(customer: Customer) -> None:
    make_network("beta")
    page = customer.page("connect")
    assert "/alpha/v3" in page
    assert "/beta/v3" in page
