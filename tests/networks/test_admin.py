"""Upstreams in the admin: permissions to view and change them, and masked URLs."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from keys.models import User
from networks.models import Network, Upstream
from networks.services import add_upstream, configure_network
from networks.upstream_forms import HIDDEN
from tests.support.rows import make_network

pytestmark = pytest.mark.django_db

A, B = "http://a.example/SECRET", "http://b.example/SECRET"
NO_HOSTS = {"host_names-TOTAL_FORMS": 0, "host_names-INITIAL_FORMS": 0}


@pytest.fixture
def network() -> Network:
    return make_network()


@pytest.fixture
def staff() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("staff@example.org"))
    return client


def staff_with(*codenames: str) -> Client:
    user = User.objects.create_user("some@example.org", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return client


def page(network: Network) -> str:
    return reverse("admin:networks_network_change", args=[network.pk])


def form(network: Network, *rows: dict[str, Any], agree: int = 1) -> dict[str, Any]:
    """Return the data of a network's form. rows: changes of the upstreams, in order."""
    stored = list(network.upstreams.all())
    data: dict[str, Any] = {"name": network.name, "agree": agree, **NO_HOSTS}
    data["upstreams-INITIAL_FORMS"] = len(stored)
    data["upstreams-TOTAL_FORMS"] = len(rows)
    for number, row in enumerate(rows):
        fields: dict[str, Any] = {"network": network.pk, "position": number, "id": ""}
        fields |= {"url": "", "headers": "", "note": "", "is_enabled": "on"}
        if number < len(stored):
            upstream = stored[number]
            lines = "\r\n".join(f"{name}: {HIDDEN}" for name in upstream.headers)
            fields |= {"id": upstream.pk, "url": upstream.url, "headers": lines}
        fields |= row
        data |= {f"upstreams-{number}-{name}": value for name, value in fields.items()}
    return data


def errors(staff: Client, network: Network, data: dict[str, Any]) -> str:
    """Send a form that is not saved, and return the page with its errors."""
    response = staff.post(page(network), data)
    assert response.status_code == 200
    formset = response.context["inline_admin_formsets"][1].formset
    text = f"{response.context['errors']} {formset.non_form_errors()}"
    assert "SECRET" not in text
    return text


def test_staff_add_change_and_remove_upstreams(staff: Client, network: Network) -> None:
    row = {"url": A, "headers": "Authorization: Bearer SECRET\r\nX-Key: 1"}
    response = staff.post(page(network), form(network, {**row, "note": "rack 1"}))
    assert response.status_code == 302
    (upstream,) = network.upstreams.all()
    assert upstream.url == A
    assert upstream.headers == {"Authorization": "Bearer SECRET", "X-Key": "1"}
    assert upstream.note == "rack 1"
    changes = {"headers": f"X-Key: 2\r\nAuthorization: {HIDDEN}", "is_enabled": ""}
    staff.post(page(network), form(network, changes, {"url": B}))
    upstream.refresh_from_db()
    assert upstream.headers == {"X-Key": "2", "Authorization": "Bearer SECRET"}
    assert not upstream.is_enabled
    assert network.upstreams.count() == 2
    staff.post(page(network), form(network, {"DELETE": "on"}, {}))
    assert [each.url for each in network.upstreams.all()] == [B]


def test_unchanged_upstream_is_not_changed(staff: Client, network: Network) -> None:
    add_upstream(network=network, url=A, headers={"X-Key": "SECRET", "X-Other": "1"})
    staff.post(page(network), form(network, {}))
    assert network.upstreams.get().headers == {"X-Key": "SECRET", "X-Other": "1"}
    assert "pstream" not in LogEntry.objects.get().get_change_message()


def test_history_has_no_address(staff: Client, network: Network) -> None:
    staff.post(page(network), form(network, {"url": A, "headers": "X: SECRET"}))
    staff.post(page(network), form(network, {"url": B}))
    staff.post(page(network), form(network, {"DELETE": "on"}))
    assert not Upstream.objects.exists()
    entries = LogEntry.objects.all()
    assert len(entries) == 3
    told = " ".join(f"{e.object_repr} {e.get_change_message()}" for e in entries)
    assert "http://a.example/…" in told
    assert "SECRET" not in told
    history = reverse("admin:networks_network_history", args=[network.pk])
    for address in (history, reverse("admin:index")):
        assert "SECRET" not in staff.get(address).content.decode()


def test_page_shows_the_url_in_its_field_alone(staff: Client, network: Network) -> None:
    add_upstream(network=network, url=A, headers={"X-Key": "hidden-value"})
    shown = staff.get(page(network)).content.decode()
    assert shown.count("SECRET") == 1
    assert f'value="{A}"' in shown
    assert "hidden-value" not in shown
    assert f"X-Key: {HIDDEN}" in shown
    assert (
        "SECRET"
        not in staff.get(reverse("admin:networks_network_changelist")).content.decode()
    )


@pytest.mark.parametrize(
    "permissions",
    [
        ["view_network", "view_upstream"],
        ["change_network", "view_upstream"],
        ["change_network", "view_upstream", "add_upstream"],
    ],
)
def test_staff_who_may_not_change_upstreams_see_no_address(
    network: Network, permissions: list[str]
) -> None:
    add_upstream(network=network, url=A, headers={"X-Key": "SECRET"}, note="rack 1")
    some = staff_with(*permissions)
    shown = some.get(page(network)).content.decode()
    assert "SECRET" not in shown
    assert "http://a.example/…" in shown
    assert f"X-Key: {HIDDEN}" in shown
    some.post(page(network), form(network, {"url": B}, {"url": B}))
    assert [each.url for each in network.upstreams.all()] == [A]


def test_staff_without_the_permission_see_no_upstreams(network: Network) -> None:
    add_upstream(network=network, url=A, note="rack 1")
    shown = staff_with("change_network").get(page(network)).content.decode()
    assert "a.example" not in shown
    assert "rack 1" not in shown


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"url": "ftp://a/SECRET"}, "begin with http://"),
        ({"url": A}, "listed twice"),
        ({"url": B, "headers": "SECRET"}, "Header 1 has no colon"),
        ({"url": B, "headers": "X: SECRET\nX: SECRET"}, "X occurs twice"),
        ({"url": B, "headers": f"X: {HIDDEN}"}, "X is new"),
        ({"url": B, "headers": "Host: SECRET"}, "is set automatically"),
    ],
)
def test_mistakes_are_reported_without_secrets(
    staff: Client, network: Network, row: dict[str, str], message: str
) -> None:
    add_upstream(network=network, url=A)
    assert message in errors(staff, network, form(network, {}, row))
    assert network.upstreams.count() == 1


def test_as_many_upstreams_as_have_to_agree_stay_enabled(
    staff: Client, network: Network
) -> None:
    configure_network(network=network, upstream_urls=[A, B], agree=2)
    off = form(network, {}, {"is_enabled": ""}, agree=2)
    assert "only 1 is enabled" in errors(staff, network, off)
    gone = form(network, {"DELETE": "on"}, {}, agree=2)
    assert "only 1 is enabled" in errors(staff, network, gone)
    response = staff.post(page(network), {**gone, "agree": 1})
    assert response.status_code == 302
    network.refresh_from_db()
    assert (network.agree, network.upstreams.count()) == (1, 1)
