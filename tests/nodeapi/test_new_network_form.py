"""Adding a network in the admin."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from keys.models import User
from networks.models import Network
from nodeapi.admin import new_network_form
from tests.support import sample
from tests.support.upstream_node import refuse, running_node

pytestmark = pytest.mark.django_db(transaction=True)

ADD = "/admin/networks/network/add/"


@pytest.fixture
def staff(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("staff@example.org"))
    return client


def post(client: Client, genesis: object = None, **fields: str) -> str:
    data: dict[str, object] = {"slug": "new", "name": "New", **fields}
    if genesis is not None:
        text = genesis if isinstance(genesis, bytes) else json.dumps(genesis).encode()
        data["genesis"] = SimpleUploadedFile("genesis.json", text)
    return client.post(ADD, data, follow=True).content.decode()


def test_network_is_added_and_prepared(staff: Client) -> None:
    assert "New was added" in post(staff, sample.genesis())
    network = Network.objects.get()
    assert (network.slug, network.head_number) == ("new", 0)
    assert network.is_preparing


def test_second_network_with_the_same_genesis_is_confirmed(staff: Client) -> None:
    post(staff, sample.genesis())
    again = {"slug": "twin", "name": "Twin"}
    shown = post(staff, sample.genesis(), **again)
    assert "network new has the same chain id and genesis" in shown
    assert Network.objects.count() == 1
    assert "Twin was added" in post(staff, sample.genesis(), may_repeat="on", **again)
    assert Network.objects.count() == 2


def test_network_is_added_with_hosts_upstreams_headers_and_agreement(
    staff: Client,
) -> None:
    with running_node() as one, running_node() as other:
        for node in (one, other):
            node.chain_id = sample.genesis()["config"]["chainId"]
            node.answers["eth_getBlockByNumber"] = {"hash": sample.genesis_hash()}
            node.answers["eth_config"] = refuse(-32601, "the method does not exist")
        fields = {
            "upstreams": f"{one.url}\n{other.url}",
            "headers": "Authorization: Bearer SECRET\n\nX-Team: 1",
            "agree": "2",
            "host_names": "A.example\nb.example",
        }
        shown = post(staff, sample.genesis(), **fields)
        assert "New was added" in shown
        assert "SECRET" not in shown
        assert other.headers["Authorization"] == "Bearer SECRET"
    network = Network.objects.get()
    assert network.agree == 2
    names = network.host_names.values_list("name", flat=True)
    assert set(names) == {"a.example", "b.example"}
    headers = {"Authorization": "Bearer SECRET", "X-Team": "1"}
    assert [each.headers for each in network.upstreams.all()] == [headers, headers]


def test_mistakes_are_shown_and_nothing_is_stored(
    staff: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Either select a built-in network, or upload" in post(staff)
    assert "The file is invalid: " in post(staff, b"{")
    assert "must be a JSON object" in post(staff, b"[]")
    url = "http://127.0.0.1:9/SECRET"
    refused = post(staff, sample.genesis(), upstreams=url)
    assert "http://127.0.0.1:9/… does not respond" in refused
    for fields, message in (
        ({"headers": "SECRET"}, "Header 1 has no colon"),
        ({"headers": "Host: SECRET"}, "set automatically"),
        ({"upstreams": url, "agree": "2"}, "only 1 is enabled"),
        ({"agree": "0"}, "greater than or equal to 1"),
        ({"host_names": "a.example:80"}, "without scheme and port"),
    ):
        refused = post(staff, sample.genesis(), **fields)
        assert message in refused
        assert "Bearer SECRET" not in refused
    assert "v3 is reserved" in post(staff, sample.genesis(), slug="v3")
    assert "of at most 1 MB" in post(staff, b" " * 2**21)
    monkeypatch.setattr(new_network_form, "MAX_GENESIS_BYTES", 10)
    assert "larger than 1 MB" in post(staff, sample.genesis())
    assert not Network.objects.exists()


def test_adding_needs_the_permission(client: Client) -> None:
    user = User.objects.create_user("some@example.org", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="change_network"))
    client.force_login(user)
    assert client.get(ADD).status_code == 403
