"""Visible, hidden and retired networks, and networks that are preparing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.test import Client

from config.management.followers import followed_networks
from keys.models import User
from keys.services import create_key, issue_key
from networks.models import Network, NetworkDeletion, NetworkState
from networks.services import (
    add_upstream,
    announce_network,
    change_state,
    configure_network,
    finish_preparing,
)
from tests.support import chains, sample
from tests.support.live import Api, Live, live_service, request
from tests.support.node_sockets import open_socket
from tests.support.rows import add_block, make_network, set_head
from tests.support.serving import serving
from tests.support.waiting import in_time, wait_until
from wallets.offers import wallet_offer
from wallets.pages.words import scope_names
from wallets.services.targets import network_of

pytestmark = pytest.mark.django_db(transaction=True)

NUMBER = request("eth_blockNumber")


def state_of(slug: str) -> str:
    return Network.objects.get(slug=slug).state


@pytest.mark.parametrize(
    "fields",
    [
        {"state": NetworkState.HIDDEN},
        {"state": NetworkState.RETIRED},
        {"is_preparing": True},
    ],
    ids=str,
)
def test_customers_see_visible_networks_only(fields: dict[str, Any]) -> None:
    seen, unseen = make_network("atlantis"), make_network("lemuria", **fields)
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
    unnamed = scope_names().keys() & {f"eip155:{unseen.chain_id}"}
    if unseen.is_preparing:
        assert not unnamed
        assert network_of(unseen.chain_id) is None
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


async def refusals_on_a_socket(live: Live, key: str) -> list[tuple[int, str]]:
    """Return code and reason of calls on a WebSocket of the network `other`."""
    async with await open_socket(live, key, "other") as socket:
        assert await socket.ask("eth_blockNumber") == "0x2"
        return [
            (error["code"], error["data"]["reason"])
            for error in (
                await socket.ask("eth_gasPrice"),
                await socket.ask("eth_subscribe", "newHeads"),
            )
        ]


def test_hidden_network_answers_and_retired_network_names_itself() -> None:
    chains.import_blocks("first", sample.genesis(), sample.raw_blocks()[:1])
    chains.import_blocks("other", sample.genesis(), sample.raw_blocks()[:2])
    network = Network.objects.get(slug="other")
    with live_service() as live, live.api("other") as api:
        key = live.new_key()
        Network.objects.filter(pk=network.pk).update(
            is_preparing=True, state=NetworkState.HIDDEN
        )
        announce_network(network)
        refused = wait_until(lambda: _refused(api, "eth_getBlockByNumber", "0x1", True))
        assert refused["error"]["code"] == -32005
        assert refused["error"]["message"] == (
            "the network other is being imported: block 2"
        )
        data = refused["error"]["data"]
        assert data.pop("see").endswith("/docs/errors#network_preparing")
        assert data == {
            **{"reason": "network_preparing", "network": "other"},
            **{"block": 2, "highest_block": None},
        }
        for method, params in (
            ("eth_call", [{}, "latest"]),
            ("debug_traceBlockByNumber", ["0x1", {"tracer": "callTracer"}]),
            ("eth_sendRawTransaction", ["0x00"]),
            ("web3_clientVersion", []),
        ):
            assert _refused(api, method, *params)
        assert api.result("eth_blockNumber") == "0x2"
        assert api.result("eth_syncing")["currentBlock"] == "0x2"
        assert api.result("eth_chainId") == hex(network.chain_id)
        assert api.result("net_version") == str(network.chain_id)
        assert api.result("rpc.discover")["openrpc"]
        assert api.result("eth_capabilities")["head"]["number"] == "0x2"
        assert asyncio.run(in_time(refusals_on_a_socket(live, key))) == [
            (-32005, "network_preparing"),
            (-32005, "network_preparing"),
        ]
        finish_preparing(network.pk)
        wait_until(lambda: not _refused(api, "eth_getBlockByNumber", "0x1", True))
        assert api.result("eth_syncing") is False
        assert api.result("eth_blockNumber") == "0x2"
        change_state(network=network, state=NetworkState.RETIRED)
        wait_until(lambda: api.send(NUMBER).status_code == 410)
        error = api.send(NUMBER).json()["error"]
        assert error["data"]["reason"] == "network_retired"
        assert "other is no longer served" in error["message"]
        change_state(network=network, state=NetworkState.VISIBLE)
        wait_until(lambda: api.send(NUMBER).status_code == 200)


def _refused(api: Api, method: str, *params: Any) -> Any:
    """Return the response with status 503 to a call, None if the status is another one."""
    response = api.send(request(method, *params))
    return response.json() if response.status_code == 503 else None


def test_network_that_is_shown_is_not_preparing_any_more() -> None:
    network = make_network("alpha", is_preparing=True)
    change_state(network=network, state=NetworkState.HIDDEN)
    assert Network.objects.get().is_preparing
    call_command("configure_network", "alpha", "--state", "visible")
    assert not Network.objects.get().is_preparing


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
