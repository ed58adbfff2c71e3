from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from keys.format import hint, is_well_formed
from keys.models import ApiKey, Entitlement, KeyVersion, Plan, User
from keys.selectors import get_key_version
from keys.services.limits import set_plan
from tests.support.rows import make_network

pytestmark = pytest.mark.django_db


def output(*arguments: str) -> str:
    stdout = StringIO()
    call_command(*arguments, stdout=stdout, stderr=StringIO())
    return stdout.getvalue()


def issue(*arguments: str) -> str:
    return output("issue_key", "--owner", "mail@example.org", *arguments)


def test_plain_output_is_the_key_alone() -> None:
    key = issue().strip()
    assert is_well_formed(key)
    assert KeyVersion.objects.get().hint == hint(key)
    assert not ApiKey.objects.get().entitlements.exists()


def test_json_output_says_what_was_issued() -> None:
    make_network("alpha")
    make_network("beta")
    issued = json.loads(
        issue(
            *("--network", "beta", "--network", "alpha", "--debug", "--name", "dapp"),
            *("--expires", "2999-01-01", "--json"),
        )
    )
    key = issued.pop("api_key")
    assert is_well_formed(key)
    assert issued == {
        "hint": hint(key),
        "owner": "mail@example.org",
        "networks": ["alpha", "beta"],
        "tracing": ["alpha", "beta"],
        "plan": None,
        "expires_at": "2999-01-01T00:00:00+00:00",
    }
    assert ApiKey.objects.get().name == "dapp"


def test_plan_limits_the_key() -> None:
    set_plan(slug="growth", name="Growth", credits_per_second=500)
    issued = json.loads(issue("--plan", "growth", "--json"))
    assert issued["plan"] == "growth"
    assert get_key_version(issued["api_key"]).api_key.limits.plan.slug == "growth"


@pytest.mark.parametrize(
    ("slugs", "known"),
    [
        ([], "there are no plans yet"),
        (["scale", "growth"], "the plans are growth, scale"),
    ],
)
def test_unknown_plan_is_refused_with_the_plans_there_are(
    slugs: list[str], known: str
) -> None:
    Plan.objects.all().delete()
    for slug in slugs:
        set_plan(slug=slug, name=slug)
    with pytest.raises(CommandError, match=f"^there is no plan 'grow'; {known}$"):
        issue("--plan", "grow")
    assert not ApiKey.objects.exists()
    assert not User.objects.exists()


def test_key_for_all_networks_names_none() -> None:
    assert json.loads(issue("--json"))["networks"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--network", "gamma"], "there is no network 'gamma'"),
        (["--expires", "soon"], "'soon' is not an ISO 8601 date"),
        (["--expires", "2020-01-01"], "in the past"),
        (["--owner", "nobody"], "valid email"),
    ],
)
def test_mistake_is_reported_in_one_line_and_issues_nothing(
    arguments: list[str], message: str
) -> None:
    with pytest.raises(CommandError, match=message) as caught:
        issue(*arguments)
    assert "\n" not in str(caught.value)
    assert not ApiKey.objects.exists()
    assert not User.objects.exists()


def test_key_is_revoked_by_itself_or_by_its_hint() -> None:
    first, second = issue().strip(), issue().strip()
    output("revoke_key", first, "--reason", "leaked")
    assert first not in output("revoke_key", hint(second), "--reason", "unused")
    assert not KeyVersion.objects.live().exists()
    reasons = set(KeyVersion.objects.values_list("revoke_reason", flat=True))
    assert reasons == {"leaked", "unused"}


def test_key_that_cannot_be_revoked_is_named_as_the_reason() -> None:
    with pytest.raises(CommandError, match="no API key has this"):
        output("revoke_key", "nk_none", "--reason", "x")
    key = issue().strip()
    output("revoke_key", key, "--reason", "x")
    with pytest.raises(CommandError, match="already revoked"):
        output("revoke_key", key, "--reason", "x")


def test_hint_of_several_keys_is_not_enough() -> None:
    issue()
    issue()
    KeyVersion.objects.update(hint="nk_same…same")
    with pytest.raises(CommandError, match="several secrets"):
        output("revoke_key", "nk_same...same", "--reason", "x")


def test_tracing_is_granted_to_a_key_or_its_hint_on_the_named_networks() -> None:
    for slug in ("alpha", "beta", "gamma"):
        make_network(slug)
    key = issue().strip()
    told = output(
        *("grant", key, "--network", "alpha", "--network", "beta"),
        *("--tracers", "callTracer, 4byteTracer", "--expires", "2999-01-01"),
        *("--note", "ticket 7"),
    )
    assert f"{hint(key)}: tracing granted on alpha, beta" in told
    assert key not in told
    for entitlement in Entitlement.objects.all():
        assert entitlement.tracers == ["callTracer", "4byteTracer"]
        assert entitlement.expires_at is not None
        assert entitlement.expires_at.isoformat() == "2999-01-01T00:00:00+00:00"
        assert (entitlement.note, entitlement.granted_by) == ("ticket 7", None)
    output("grant", hint(key), "--network", "beta")
    terms = Entitlement.objects.values_list("network__slug", "tracers", "note")
    assert set(map(str, terms)) == {
        "('alpha', ['callTracer', '4byteTracer'], 'ticket 7')",
        "('beta', [], '')",
    }


def test_tracing_is_withdrawn_where_it_was_granted() -> None:
    make_network("alpha")
    make_network("beta")
    key = issue("--debug").strip()
    assert Entitlement.objects.count() == 2
    output("grant", key, "--network", "alpha", "--withdraw")
    assert Entitlement.objects.get().network.slug == "beta"
    with pytest.raises(CommandError, match="no entitlement for tracing on alpha"):
        output("grant", key, "--network", "beta", "--network", "alpha", "--withdraw")
    assert Entitlement.objects.get().network.slug == "beta"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--network", "gamma"], "there is no network 'gamma'"),
        (["--network", "beta"], "has no access to beta"),
        (["--network", "alpha", "--expires", "soon"], "'soon' is not an ISO 8601 date"),
        (["--network", "alpha", "--expires", "2020-01-01"], "in the past"),
        (
            ["--network", "alpha", "--tracers", "x"],
            "there is no tracer 'x'; the tracers are",
        ),
        (["--network", "alpha", "--tracers", "none"], "use --withdraw to withdraw"),
    ],
)
def test_mistake_in_a_grant_grants_nothing_anywhere(
    arguments: list[str], message: str
) -> None:
    make_network("alpha")
    make_network("beta")
    key = issue("--network", "alpha").strip()
    with pytest.raises(CommandError, match=message):
        output("grant", key, "--network", "alpha", *arguments)
    assert not Entitlement.objects.exists()
