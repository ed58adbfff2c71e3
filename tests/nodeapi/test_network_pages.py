"""Showing, hiding, retiring and deleting networks in the admin."""

from __future__ import annotations

import re
import threading

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from keys.models import User
from keys.services import create_key, get_or_create_customer
from networks.models import Network, NetworkDeletion, NetworkState
from nodeapi.chain.database import import_lock, importer_connection
from nodeapi.deletion.job import run_deletion
from tests.support.rows import add_block, make_network

NETWORKS = "/admin/networks/network/"
CONFIRMED = {"confirmed": "on"}


@pytest.fixture
def staff(transactional_db: None, client: Client) -> Client:
    client.force_login(User.objects.create_superuser("staff@example.org"))
    return client


def buttons(client: Client, network: Network) -> list[str]:
    text = client.get(f"{NETWORKS}{network.pk}/change/").content.decode()
    return re.findall(r'/do/\w+/">([^<]+)<', text)


def do(client: Client, network: Network, action: str, **answers: str) -> str:
    address = f"{NETWORKS}{network.pk}/do/{action}/"
    return client.post(address, answers, follow=True).content.decode()


def test_network_is_hidden_retired_and_shown_again(staff: Client) -> None:
    network = make_network("alpha")
    assert buttons(staff, network) == ["Hide", "Retire"]
    assert "no longer see Alpha" in do(staff, network, "hide")
    for action, state, offered in (
        ("hide", NetworkState.HIDDEN, ["Show", "Retire"]),
        ("retire", NetworkState.RETIRED, ["Show", "Hide", "Delete"]),
        ("show", NetworkState.VISIBLE, ["Hide", "Retire"]),
    ):
        shown = do(staff, network, action, **CONFIRMED)
        assert f"Alpha is {state.label} now" in shown
        network.refresh_from_db()
        assert network.state == state
        assert buttons(staff, network) == offered
    assert '"field-state_text">visible<' in staff.get(NETWORKS).content.decode()


def test_deletion_states_what_it_deletes_and_asks_for_the_slug(staff: Client) -> None:
    network = make_network("alpha", state=NetworkState.RETIRED)
    add_block(network, "one", 1)
    create_key(owner=get_or_create_customer(email="o@example.org"), networks=[network])
    question = do(staff, network, "delete_network")
    assert re.search(r'row">blocks</th><td class="number">\s*1</td>', question)
    assert "1 API key for this network only will be disabled" in question
    wrong = do(staff, network, "delete_network", typed="beta", **CONFIRMED)
    assert "This is not the slug alpha." in wrong
    assert not NetworkDeletion.objects.exists()
    with importer_connection() as other, import_lock(other, network.pk):
        held = do(staff, network, "delete_network", typed="alpha", **CONFIRMED)
    assert "A follower or an import is still writing" in held
    assert not NetworkDeletion.objects.exists()
    begun = do(staff, network, "delete_network", typed="alpha", **CONFIRMED)
    deletion = NetworkDeletion.objects.get()
    assert deletion.requested_by == "staff@example.org"
    assert "waiting for manage.py follow" in begun
    assert buttons(staff, network) == []
    assert run_deletion(network.pk, threading.Event())
    page = f"/admin/networks/networkdeletion/{deletion.pk}/change/"
    done = staff.get(page).content.decode()
    assert "finished" in done
    assert "100 %" in done
    assert "alpha" in staff.get("/admin/networks/networkdeletion/").content.decode()


def test_states_and_deletions_need_permissions(client: Client, db: None) -> None:
    network = make_network("alpha", state=NetworkState.RETIRED)
    user = User.objects.create_user("some@example.org", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_network"))
    client.force_login(user)
    assert buttons(client, network) == []
    for action in ("show", "delete_network"):
        address = f"{NETWORKS}{network.pk}/do/{action}/"
        assert client.post(address, CONFIRMED).status_code == 403
    change = Permission.objects.get(codename="change_network")
    user.user_permissions.add(change)
    assert buttons(client, network) == ["Show", "Hide"]
