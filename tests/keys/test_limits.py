from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.test import Client
from django.urls import reverse

from keys.limiter.gcra import MAX_RATE, Limits
from keys.models import EventType, KeyEvent, KeyLimits, Plan, User
from keys.plans import Terms, effective_limits
from keys.services import get_or_create_customer, issue_key
from keys.services.limits import set_limits
from outbox.models import Entry
from tests.support.serving import serving

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("own", "plan", "limits"),
    [
        (Terms(), Terms(), None),
        (Terms(), Terms(500, 1000, 3_000_000), Limits(500, 1000, 3_000_000)),
        (Terms(), Terms(500), Limits(500, 1000)),
        (Terms(), Terms(10), Limits(10, 100)),
        (Terms(rate=20), Terms(500, 1000, 9), Limits(20, 100, 9)),
        (Terms(burst=300), Terms(500, 1000, 9), Limits(500, 300, 9)),
        (Terms(daily=7), Terms(), Limits(MAX_RATE, 2 * MAX_RATE, 7)),
    ],
)
def test_own_terms_come_before_the_plans(own, plan, limits):
    assert effective_limits(own, plan) == limits


@pytest.fixture
def issued():
    return issue_key(owner=get_or_create_customer(email="o@example.org"))


@pytest.fixture
def free():
    return Plan.objects.create(
        slug="free",
        name="Free",
        is_default=True,
        credits_per_second=500,
        burst=1000,
        credits_per_day=3_000_000,
    )


def granted(running, issued):
    return running.ask(running.service.grants.resolve, issued.secret)


def test_grant_carries_the_limits(free, issued):
    growth = Plan.objects.create(slug="growth", name="Growth", credits_per_second=4000)
    with serving() as running:
        grant = granted(running, issued)
        assert grant.limits == Limits(500, 1000, 3_000_000)
        assert grant.version_id == issued.version.pk
        set_limits(api_key=issued.api_key, plan=growth, credits_per_day=10)
        running.until(lambda: not running.service.grants.is_cached(issued.secret))
        assert granted(running, issued).limits == Limits(4000, 8000, 10)
        set_limits(api_key=issued.api_key, credits_per_second=60)
        running.until(lambda: not running.service.grants.is_cached(issued.secret))
        assert granted(running, issued).limits == Limits(60, 120, 3_000_000)


def test_key_without_any_plan_is_not_limited(issued):
    with serving() as running:
        assert granted(running, issued).limits is None


def test_change_is_on_record_once(free, issued):
    for _ in range(2):
        set_limits(api_key=issued.api_key, plan=free, burst=500)
    event = KeyEvent.objects.get(type=EventType.LIMITS_CHANGED)
    assert event.data["before"] is None
    assert event.data["after"] == {
        "plan": "free",
        "credits_per_second": None,
        "burst": 500,
        "credits_per_day": None,
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"credits_per_second": 0},
        {"credits_per_second": MAX_RATE + 1},
        {"burst": 99},
        {"credits_per_day": 0},
    ],
)
def test_limits_that_mean_nothing_are_refused(issued, wrong):
    with pytest.raises(ValidationError):
        set_limits(api_key=issued.api_key, **wrong)
    assert not KeyLimits.objects.exists()


def test_there_is_one_default_plan(free):
    with pytest.raises(ValidationError, match="Another plan is the default"):
        Plan(slug="b", name="B", is_default=True).full_clean()


@pytest.fixture
def staff():
    User.objects.create_superuser("staff@example.org", "x")
    client = Client()
    assert client.login(username="staff@example.org", password="x")
    return client


def test_staff_gives_a_key_other_limits(staff, free, issued):
    page = reverse("admin:keys_keylimits_add")
    form = {"api_key": issued.api_key.pk, "plan": free.pk, "credits_per_second": 7}
    assert staff.post(page, form).status_code == 302
    limits = KeyLimits.objects.get(api_key=issued.api_key)
    assert (limits.plan, limits.credits_per_second) == (free, 7)
    event = KeyEvent.objects.get(type=EventType.LIMITS_CHANGED)
    assert event.actor.email == "staff@example.org"
    change = reverse("admin:keys_keylimits_change", args=[limits.pk])
    assert staff.post(change, {"burst": 50}).status_code == 200  # too small
    assert staff.post(change, {"burst": 150}).status_code == 302
    limits.refresh_from_db()
    assert (limits.plan, limits.burst) == (None, 150)


@pytest.mark.parametrize("model", ["plan", "keylimits", "usagebucket"])
def test_lists_are_shown(staff, free, issued, model):
    set_limits(api_key=issued.api_key, plan=free)
    assert staff.get(reverse(f"admin:keys_{model}_changelist")).status_code == 200


def test_usage_is_only_to_be_looked_at(staff):
    assert staff.get(reverse("admin:keys_usagebucket_add")).status_code == 403


def test_staff_announce_changes_of_plans_to_serving_processes():
    plans: Any = admin.site.get_model_admin(Plan)
    plan = Plan(slug="mine", name="Mine", credits_per_second=5)
    plans.save_model(None, plan, None, False)
    subject = f"plan:{plan.pk}"
    plans.delete_queryset(None, Plan.objects.filter(pk=plan.pk))
    found = Entry.objects.order_by("number")
    assert list(found.values_list("subject", flat=True)) == [subject] * 2
