"""Networks whose blocks, transactions and addresses anyone sees."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus

import pytest
from django.test import Client

from abi.addresses import checksummed
from keys.models import User
from keys.services import grant_entitlement, issue_key
from networks.models import Network
from networks.services import configure_network
from tests.explorer import chain
from tests.explorer.pages import (
    MIXED,
    block_hash,
    block_path,
    see,
    text,
    transaction_path,
)

pytestmark = pytest.mark.usefixtures("hard_network", "public")

ADDRESS = f"/explore/hard/address/{checksummed(chain.ALICE.address)}"


@pytest.fixture
def public(hard_network: None) -> Iterator[Network]:
    network = Network.objects.get(slug="hard")
    configure_network(network=network, public_explorer=True)
    yield network
    configure_network(network=network, public_explorer=False)


def test_anonymous_visitors_see_blocks_transactions_and_addresses() -> None:
    client = Client()
    for path in ("/explore/", "/explore/hard/", block_path(), ADDRESS):
        page = text(client.get(path))
        assert "/other/" not in page
    page = text(client.get(transaction_path(MIXED)))
    assert 'id="logs"' in page
    for hidden in ('id="calls"', 'id="gas"', 'id="changes"', "not today"):
        assert hidden not in page
    assert f'<a href="/account/login?next={transaction_path(MIXED)}">Log in</a>' in page


def test_the_navigation_leads_anonymous_visitors_to_the_explorer() -> None:
    page = text(Client().get("/"))
    assert 'href="/explore/"' in page


def test_networks_that_are_not_public_stay_hidden() -> None:
    for path in ("/explore/other/", f"/explore/other/block/{block_hash(1)}"):
        response = Client().get(path)
        assert response.status_code == HTTPStatus.FOUND
        assert response["Location"] == f"/account/login?next={path}"
    assert text(Client().get("/explore/")).count('class="card"') == 1


def test_anonymous_visitors_search_public_networks_only() -> None:
    response = Client().get("/explore/search?q=1")
    assert response["Location"] == "/explore/hard/block/1"


def test_customers_without_a_grant_are_led_to_the_request(customer: User) -> None:
    path = transaction_path(MIXED)
    assert '<a href="/dashboard/">Request access</a>' in text(see(customer, path))
    key = issue_key(owner=customer).api_key
    page = text(see(customer, path))
    assert f'<a href="/dashboard/keys/{key.pk}/tracing/hard">Request access</a>' in page
    assert 'id="calls"' not in page
    hard = Network.objects.get(slug="hard")
    grant_entitlement(api_key=key, network=hard, tracers=["callTracer"])
    page = text(see(customer, path))
    assert 'id="calls"' in page
    assert "To see state changes, you need an API key" in page


def test_a_network_becomes_private_again(public: Network) -> None:
    configure_network(network=public, public_explorer=False)
    for path in ("/explore/", block_path(), ADDRESS, transaction_path(MIXED)):
        assert Client().get(path).status_code == HTTPStatus.FOUND
    assert 'href="/explore/"' not in text(Client().get("/"))
