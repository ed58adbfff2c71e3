from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from keys.format import digest, is_well_formed
from keys.models import ApiKey, Entitlement, KeyVersion, User
from keys.services import get_or_create_customer, grant_entitlement, issue_key
from tests.support.rows import add_block, hash_of, make_network, set_head

pytestmark = pytest.mark.django_db

API_KEYS = "/admin/keys/apikey/"


@pytest.fixture
def staff(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("staff@example.org"))
    return client


def formset(prefix: str, *rows: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an inline: its rows, old ones with an id before new ones."""
    fields: dict[str, Any] = {
        f"{prefix}-TOTAL_FORMS": len(rows),
        f"{prefix}-INITIAL_FORMS": sum("id" in row for row in rows),
    }
    for number, row in enumerate(rows):
        fields |= {f"{prefix}-{number}-{name}": value for name, value in row.items()}
    return fields


def test_secret_of_a_new_key_is_shown_once_and_never_again(staff: Client) -> None:
    owner = get_or_create_customer(email="owner@example.org")
    network = make_network("alpha")
    answer = staff.post(
        f"{API_KEYS}add/",
        {
            "owner": owner.pk,
            "name": "dapp",
            "is_enabled": "on",
            "networks": [network.pk],
            "show_secret": "on",
            **formset("versions"),
            **formset("allowlist"),
            **formset("entitlements", {"network": network.pk, "capability": "trace"}),
        },
    )
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    found = re.search(r'id="secret">([^<]+)<', answer.content.decode())
    assert found is not None
    secret = found[1]
    assert is_well_formed(secret)
    version = KeyVersion.objects.get()
    assert version.digest == digest(secret)
    assert version.created_by is not None
    assert list(version.api_key.networks.all()) == [network]
    assert version.api_key.entitlements.get().network == network
    for page in (API_KEYS, f"{API_KEYS}{version.api_key_id}/change/"):
        content = staff.get(page).content.decode()
        assert secret not in content
        assert version.digest not in content
        assert version.hint in content


def test_api_key_is_changed_without_another_secret(staff: Client) -> None:
    owner = get_or_create_customer(email="owner@example.org")
    issued = issue_key(owner=owner)
    answer = staff.post(
        f"{API_KEYS}{issued.api_key.pk}/change/",
        {
            "owner": owner.pk,
            "name": "renamed",
            "initial-is_enabled": "True",
            **formset("entitlements"),
            **formset("allowlist"),
            **formset(
                "versions", {"id": issued.version.pk, "api_key": issued.api_key.pk}
            ),
        },
    )
    assert answer.status_code == 302
    api_key = ApiKey.objects.get()
    assert (api_key.name, api_key.is_enabled) == ("renamed", False)
    assert KeyVersion.objects.count() == 1


def save_entitlements(staff: Client, api_key: ApiKey, *rows: dict[str, Any]) -> str:
    """Save a key's page with these entitlements; return the page that follows."""
    answer = staff.post(
        f"{API_KEYS}{api_key.pk}/change/",
        {
            "owner": api_key.owner_id,
            "is_enabled": "on",
            "networks": [network.pk for network in api_key.networks.all()],
            **formset("versions"),
            **formset("allowlist"),
            **formset("entitlements", *({"api_key": api_key.pk, **r} for r in rows)),
        },
        follow=True,
    )
    assert answer.status_code == 200
    return answer.content.decode()


def test_tracing_is_granted_changed_and_withdrawn_on_the_keys_page(
    staff: Client,
) -> None:
    alpha = make_network("alpha")
    api_key = issue_key(owner=get_or_create_customer(email="o@example.org")).api_key
    save_entitlements(
        staff,
        api_key,
        {
            "network": alpha.pk,
            "capability": "trace",
            "tracers": ["callTracer", "muxTracer"],
            "expires_at_0": "2999-01-01",
            "expires_at_1": "00:00:00",
            "note": "ticket 7",
        },
    )
    granted = Entitlement.objects.get()
    assert (granted.network, granted.note) == (alpha, "ticket 7")
    assert granted.tracers == ["callTracer", "muxTracer"]
    assert granted.expires_at == datetime(2999, 1, 1, tzinfo=UTC)
    assert granted.granted_by is not None
    assert granted.granted_by.email == "staff@example.org"
    row = {"id": granted.pk, "capability": "trace", "network": alpha.pk}
    page = staff.get(f"{API_KEYS}{api_key.pk}/change/").content.decode()
    assert "staff@example.org" in page
    assert page.count('value="callTracer"') == 2  # the row, and the empty one to copy

    save_entitlements(staff, api_key, {**row, "tracers": ["noopTracer"]})
    changed = Entitlement.objects.get()
    assert changed.pk == granted.pk
    assert (changed.tracers, changed.expires_at) == (["noopTracer"], None)
    assert changed.granted_at > granted.granted_at

    save_entitlements(staff, api_key, {**row, "DELETE": "on"})
    assert not Entitlement.objects.exists()


def test_granted_row_offers_its_networks_tracers_and_those_it_has(
    staff: Client,
) -> None:
    alpha = make_network("alpha", tracers=["callTracer", "noopTracer"])
    owner = get_or_create_customer(email="o@example.org")
    api_key = issue_key(owner=owner, networks=[alpha]).api_key
    entitlement = grant_entitlement(
        api_key=api_key, network=alpha, tracers=["callTracer"]
    )
    alpha.tracers = ["noopTracer", "prestateTracer"]
    alpha.save(update_fields=["tracers"])
    page = staff.get(f"{API_KEYS}{api_key.pk}/change/").content.decode()
    offered = re.findall(r'name="entitlements-0-tracers" value="(\w+)"', page)
    assert sorted(offered) == ["callTracer", "noopTracer", "prestateTracer"]
    row = {"id": entitlement.pk, "capability": "trace", "network": alpha.pk}
    save_entitlements(staff, api_key, {**row, "tracers": ["muxTracer"]})
    entitlement.refresh_from_db()
    assert entitlement.tracers == ["callTracer"]


def test_entitlement_that_makes_no_sense_is_not_granted(staff: Client) -> None:
    alpha, beta = make_network("alpha"), make_network("beta")
    owner = get_or_create_customer(email="owner@example.org")
    api_key = issue_key(owner=owner, networks=[alpha]).api_key
    row = {"network": alpha.pk, "capability": "trace"}
    for rows, told in (
        ([{**row, "tracers": ["newTracer"]}], "newTracer is not one of the available"),
        ([{**row, "expires_at_0": "2020-01-01"}], "The expiry is in the past."),
        ([row, row], "Please correct the duplicate data for network and capability"),
        ([{**row, "network": beta.pk}], "The key has no access to beta."),
    ):
        if "expires_at_0" in rows[0]:
            rows[0]["expires_at_1"] = "00:00"
        assert told in save_entitlements(staff, api_key, *rows), told
        assert not Entitlement.objects.exists()


def test_page_of_a_key_is_saved_beside_an_entitlement_that_has_expired(
    staff: Client,
) -> None:
    api_key = issue_key(owner=get_or_create_customer(email="o@example.org")).api_key
    past = timezone.now().replace(microsecond=0) - timedelta(days=1)
    granted = grant_entitlement(api_key=api_key, network=make_network("alpha"))
    Entitlement.objects.update(expires_at=past)
    save_entitlements(
        staff,
        api_key,
        {
            "id": granted.pk,
            "expires_at_0": f"{past:%Y-%m-%d}",
            "expires_at_1": f"{past:%H:%M:%S}",
        },
    )
    unchanged = Entitlement.objects.get()
    assert (unchanged.expires_at, unchanged.granted_by) == (past, None)
    assert '"field-tracing">-<' in staff.get(API_KEYS).content.decode()
    Entitlement.objects.update(expires_at=None)
    assert '"field-tracing">alpha<' in staff.get(API_KEYS).content.decode()


def test_keys_are_filtered_by_where_they_may_trace(staff: Client) -> None:
    alpha, beta = make_network("alpha"), make_network("beta")
    owner = get_or_create_customer(email="owner@example.org")
    issue_key(owner=owner, name="nowhere")
    for name, networks in (("here", [alpha]), ("both", [alpha, beta])):
        issue_key(owner=owner, name=name, networks=networks, may_trace=True)
    late = issue_key(owner=owner, name="late", networks=[beta], may_trace=True)
    late.api_key.entitlements.update(expires_at=timezone.now())
    for chosen, expected in (
        ({}, {"nowhere", "here", "both", "late"}),
        ({"tracing": "alpha"}, {"here", "both"}),
        ({"tracing": "beta"}, {"both"}),
    ):
        shown = staff.get(API_KEYS, chosen).context["cl"].result_list
        assert {api_key.name for api_key in shown} == expected


def test_revoking_asks_for_a_reason_first(staff: Client) -> None:
    issued = issue_key(owner=get_or_create_customer(email="owner@example.org"))
    chosen = {"action": "revoke", "_selected_action": [issued.api_key.pk]}
    question = staff.post(API_KEYS, chosen)
    assert issued.version.hint in question.content.decode()
    assert KeyVersion.objects.live().exists()
    answer = staff.post(API_KEYS, {**chosen, "confirmed": "on", "reason": "leaked"})
    assert answer.status_code == 302
    version = KeyVersion.objects.get()
    assert version.revoked_at is not None
    assert version.revoke_reason == "leaked"
    assert version.revoked_by is not None
    assert version.revoked_by.email == "staff@example.org"


def test_staff_who_may_only_view_keys_revoke_none(client: Client) -> None:
    viewer = User.objects.create_user("viewer@example.org", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_apikey"))
    client.force_login(viewer)
    issued = issue_key(owner=get_or_create_customer(email="owner@example.org"))
    chosen = {"action": "revoke", "_selected_action": [issued.api_key.pk]}
    client.post(API_KEYS, {**chosen, "confirmed": "on", "reason": "malice"})
    assert KeyVersion.objects.live().exists()
    assert issued.version.hint in client.get(API_KEYS).content.decode()


def test_user_is_added_by_address(staff: Client) -> None:
    answer = staff.post(
        "/admin/keys/user/add/",
        {"email": "New@Example.org", "usable_password": "false"},
    )
    assert answer.status_code == 302
    user = User.objects.get(email="new@example.org")
    assert staff.get(f"/admin/keys/user/{user.pk}/change/").status_code == 200
    assert get_or_create_customer(email="NEW@example.org") == user


def test_staff_logs_in_with_any_spelling_of_the_address(client: Client) -> None:
    User.objects.create_superuser("Staff@Example.org", "open sesame 1")
    assert client.login(username="STAFF@example.org", password="open sesame 1")
    assert not client.login(username="nobody@example.org", password="open sesame 1")


def test_network_is_configured_with_tick_boxes_and_its_head_stays(
    staff: Client,
) -> None:
    network = make_network("alpha")
    set_head(network, "head", 7)
    page = f"/admin/networks/network/{network.pk}/change/"
    assert hash_of("head").hex() in staff.get(page).content.decode()
    answer = staff.post(
        page,
        {
            "name": "First",
            "tracers": ["callTracer", "muxTracer"],
            "agree": 1,
            "upstreams-TOTAL_FORMS": 0,
            "upstreams-INITIAL_FORMS": 0,
            "host_names-TOTAL_FORMS": 1,
            "host_names-INITIAL_FORMS": 0,
            "host_names-0-name": "a.example",
        },
    )
    assert answer.status_code == 302
    network.refresh_from_db()
    assert (network.name, network.head_number) == ("First", 7)
    assert network.tracers == ["callTracer", "muxTracer"]
    assert network.emit_total_difficulty is False
    assert network.host_names.get().name == "a.example"


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("3", {"three", "three-side"}),
        ("0x" + hash_of("three").hex(), {"three"}),
        (hash_of("two").hex().upper(), {"two"}),
        ("", {"two", "three", "three-side"}),
        ("9" * 5000, set()),
        ("nonsense", set()),
    ],
)
def test_blocks_are_searched_by_exact_number_or_hash(
    staff: Client, search: str, expected: set[str]
) -> None:
    network = make_network("alpha")
    add_block(network, "two", 2)
    add_block(network, "three", 3, "two")
    add_block(network, "three-side", 3, "two", is_canonical=False)
    answer = staff.get("/admin/nodeapi/block/", {"q": search})
    assert answer.status_code == 200
    shown = {bytes(block.hash) for block in answer.context["cl"].result_list}
    assert shown == {hash_of(name) for name in expected}


def test_block_is_shown_and_cannot_be_changed(staff: Client) -> None:
    block = add_block(make_network("alpha"), "one", 1)
    page = f"/admin/nodeapi/block/{block.pk}/change/"
    assert hash_of("one").hex() in staff.get(page).content.decode()
    assert staff.post(page, {}).status_code == 403
    assert staff.get("/admin/nodeapi/block/add/").status_code == 403
