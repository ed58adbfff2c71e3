"""Preparing, visible, hidden and retired networks."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.test import Client

from config.management.followers import followed_networks
from keys.models import User
from keys.services import create_key, issue_key
from networks.models import Network, NetworkDeletion, NetworkState
from networks.services import add_upstream, change_state, configure_network
from tests.support import chains, sample
from tests.support.live import live_service, request
from tests.support.rows import add_block, make_network, set_head
from tests.support.serving import serving
from tests.support.waiting import wait_until
from wallets.offers import wallet_offer

pytestmark = pytest.mark.django_db(transaction=True)

NUMBER = request("eth_blockNumber")


def state_of(slug: str) -> str:
    return Network.objects.get(slug=slug).state


def test_first_imported_block_makes_a_network_visible() -> None:
    chains.import_blocks("new", sample.genesis(), [])
    assert state_of("new") == NetworkState.PREPARING
    chains.import_blocks("new", sample.genesis(), sample.raw_blocks()[:1])
    assert state_of("new") == NetworkState.VISIBLE


def test_import_does_not_show_a_hidden_network() -> None:
    chains.import_blocks("new", sample.genesis(), [])
    change_state(network=Network.objects.get(), state=NetworkState.HIDDEN)
    chains.import_blocks("new", sample.genesis(), sample.raw_blocks()[:1])
    assert state_of("new") == NetworkState.HIDDEN


@pytest.mark.parametrize("state", [s for s in NetworkState if s != "visible"])
def test_customers_see_visible_networks_only(state: NetworkState) -> None:
    seen, unseen = make_network("atlantis"), make_network("lemuria", state=state)
    for network in (seen, unseen):
        add_block(network, f"{network.slug}-1", 1)
        set_head(network, f"{network.slug}-1", 1)
    owner = User.objects.create_user("customer@example.org")
    networks = [seen, unseen]
    key = issue_key(owner=owner, networks=networks, may_trace=True).api_key
    client = Client()
    client.force_login(owner)
    for address in (
        "/docs/networks",
        "/openrpc.json",
        "/dashboard/keys/new",
        f"/dashboard/keys/{key.pk}/connect",
        "/explore/",
    ):
        text = client.get(address).content.decode()
        assert "atlantis" in text, address
        assert "lemuria" not in text, address
    assert client.get("/explore/atlantis/").status_code == 200
    assert client.get("/explore/lemuria/").status_code == 404
    scopes = wallet_offer(can_sign=False)
    assert f"eip155:{seen.chain_id}" in scopes
    assert f"eip155:{unseen.chain_id}" not in scopes


def test_key_for_a_hidden_network_only_shows_no_other() -> None:
    make_network("seen")
    hidden = make_network("hidden", state=NetworkState.HIDDEN)
    owner = User.objects.create_user("customer@example.org")
    key = create_key(owner=owner, networks=[hidden])
    client = Client()
    client.force_login(owner)
    text = client.get(f"/dashboard/keys/{key.pk}/connect").content.decode()
    assert "/seen/v3" not in text


def test_retired_network_is_found_neither_by_slug_nor_by_host() -> None:
    first, second = make_network("first"), make_network("second")
    configure_network(network=second, host_names=["second.example"])
    with serving() as running:
        directory = running.service.directory
        change_state(network=second, state=NetworkState.RETIRED)
        running.ask(directory.refresh)
        assert [view.slug for view in directory.all()] == ["first"]
        assert directory.by_slug("second") is None
        assert directory.by_host("second.example:80") is None
        assert directory.retired("second", "") == "second"
        assert directory.retired("", "Second.example:80") == "second"
        assert directory.retired("", "other.example") == ""
        default = directory.by_host("other.example")
        assert default is not None
        assert default.slug == "first"
        change_state(network=first, state=NetworkState.RETIRED)
        change_state(network=second, state=NetworkState.HIDDEN)
        running.ask(directory.refresh)
        # Another chain must not answer the requests to the default network.
        assert directory.by_host("other.example") is None
        assert directory.retired("", "other.example") == "first"
        assert directory.retired("", "second.example") == ""
        hidden = directory.by_host("second.example")
        assert hidden is not None
        assert not hidden.is_visible


def test_hidden_network_answers_and_retired_network_names_itself() -> None:
    chains.import_blocks("first", sample.genesis(), sample.raw_blocks()[:1])
    chains.import_blocks("other", sample.genesis(), sample.raw_blocks()[:2])
    network = Network.objects.get(slug="other")
    with live_service() as live, live.api("other") as api:
        change_state(network=network, state=NetworkState.HIDDEN)
        assert api.result("eth_blockNumber") == "0x2"
        change_state(network=network, state=NetworkState.RETIRED)
        wait_until(lambda: api.send(NUMBER).status_code == 410)
        error = api.send(NUMBER).json()["error"]
        assert error["data"]["reason"] == "network_retired"
        assert "other is no longer served" in error["message"]
        change_state(network=network, state=NetworkState.VISIBLE)
        wait_until(lambda: api.send(NUMBER).status_code == 200)


def test_retired_network_is_not_followed() -> None:
    network = make_network("alpha")
    add_upstream(network=network, url="http://node.example")
    set_head(network, "head", 1)
    assert followed_networks() == {"alpha"}
    call_command("configure_network", "alpha", "--state", "retired")
    assert followed_networks() == set()


def test_network_that_is_being_deleted_keeps_its_state() -> None:
    network = make_network("alpha", state=NetworkState.RETIRED)
    NetworkDeletion.objects.create(
        network=network, slug="alpha", name="Alpha", chain_id=1
    )
    with pytest.raises(ValidationError, match="being deleted"):
        change_state(network=network, state=NetworkState.VISIBLE)
    assert state_of("alpha") == NetworkState.RETIRED
