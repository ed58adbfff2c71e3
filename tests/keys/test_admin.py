from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from keys.format import digest, is_well_formed
from keys.models import ApiKey, KeyVersion, User
from keys.services import get_or_create_customer, issue_key
from tests.support.rows import add_block, hash_of, make_network, set_head

pytestmark = pytest.mark.django_db

API_KEYS = "/admin/keys/apikey/"


@pytest.fixture
def staff(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("staff@example.org"))
    return client


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
            "versions-TOTAL_FORMS": 0,
            "versions-INITIAL_FORMS": 0,
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
            "versions-TOTAL_FORMS": 1,
            "versions-INITIAL_FORMS": 1,
            "versions-0-id": issued.version.pk,
            "versions-0-api_key": issued.api_key.pk,
        },
    )
    assert answer.status_code == 302
    api_key = ApiKey.objects.get()
    assert (api_key.name, api_key.is_enabled) == ("renamed", False)
    assert KeyVersion.objects.count() == 1


def test_revoking_asks_for_a_reason_first(staff: Client) -> None:
    issued = issue_key(owner=get_or_create_customer(email="owner@example.org"))
    chosen = {"action": "revoke", "_selected_action": [issued.api_key.pk]}
    question = staff.post(API_KEYS, chosen)
    assert issued.version.hint in question.content.decode()
    assert KeyVersion.objects.live().exists()
    answer = staff.post(API_KEYS, {**chosen, "reason": "leaked"})
    assert answer.status_code == 302
    version = KeyVersion.objects.get()
    assert version.revoked_at is not None
    assert version.revoke_reason == "leaked"
    assert version.revoked_by is not None
    assert version.revoked_by.email == "staff@example.org"


def test_who_may_only_look_at_keys_revokes_none(client: Client) -> None:
    viewer = User.objects.create_user("viewer@example.org", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_apikey"))
    client.force_login(viewer)
    issued = issue_key(owner=get_or_create_customer(email="owner@example.org"))
    chosen = {"action": "revoke", "_selected_action": [issued.api_key.pk]}
    client.post(API_KEYS, {**chosen, "reason": "malice"})
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


def test_staff_logs_in_however_he_writes_his_address(client: Client) -> None:
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
