from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from networks.models import Network
from networks.services import configure_network
from tests.support.rows import make_network, set_head

pytestmark = pytest.mark.django_db


def output(*arguments: str) -> str:
    stdout = StringIO()
    call_command(*arguments, stdout=stdout)
    return stdout.getvalue()


def test_list_shows_each_network_in_a_line() -> None:
    alpha = make_network("alpha")
    make_network("beta")
    configure_network(network=alpha, host_names=["a.example"], tracers=["callTracer"])
    set_head(alpha, "head", 42)
    lines = output("list_networks").splitlines()
    assert lines[0].split() == [
        "slug",
        "name",
        "chain",
        "id",
        "head",
        "hosts",
        "tracers",
    ]
    assert lines[1].split() == [
        *("alpha", "Alpha", str(alpha.chain_id), "42", "a.example", "callTracer")
    ]
    assert lines[2].split()[0] == "beta"
    assert lines[2].split()[-1] == "all"


def test_list_without_networks_says_where_they_come_from() -> None:
    stderr = StringIO()
    call_command("list_networks", stderr=stderr)
    assert "import_chain" in stderr.getvalue()


def test_what_is_given_is_changed_and_the_rest_stays() -> None:
    make_network("alpha")
    output("configure_network", "alpha", "--host", "a.example", "--host", "B.example")
    output("configure_network", "alpha", "--name", "First", "--no-total-difficulty")
    output("configure_network", "alpha", "--tracers", "callTracer,prestateTracer")
    network = Network.objects.get()
    assert [host.name for host in network.host_names.all()] == [
        "a.example",
        "b.example",
    ]
    assert network.name == "First"
    assert network.emit_total_difficulty is False
    assert network.tracers == ["callTracer", "prestateTracer"]
    output("configure_network", "alpha", "--total-difficulty", "--host", "c.example")
    network.refresh_from_db()
    assert network.emit_total_difficulty is True
    assert [host.name for host in network.host_names.all()] == ["c.example"]


def test_hosts_and_tracers_can_be_emptied_and_tracers_filled() -> None:
    make_network("alpha")
    output("configure_network", "alpha", "--host", "a.example", "--tracers", "none")
    output("configure_network", "alpha", "--host", "")
    network = Network.objects.get()
    assert not network.host_names.exists()
    assert network.tracers == []
    output("configure_network", "alpha", "--tracers", "all")
    network.refresh_from_db()
    assert "flatCallTracer" in network.tracers
    output("configure_network", "alpha", "--upstream", "http://node:8545/secret")
    network.refresh_from_db()
    assert network.upstream_url == "http://node:8545/secret"
    assert "secret" not in output("list_networks")
    output("configure_network", "alpha", "--upstream", "")
    network.refresh_from_db()
    assert network.upstream_url == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gamma"], "there is no network 'gamma'"),
        (["alpha", "--tracers", "callTracer,magic"], "there is no tracer 'magic'"),
        (["alpha", "--host", "beta.example"], "already exists"),
        (["alpha", "--host", "a.example:80"], "without port"),
        (["alpha", "--name", ""], "cannot be blank"),
        (["alpha", "--upstream", "ftp://node"], "http:// or https://"),
        (["alpha", "--upstream", "https:///rpc"], "http:// or https://"),
    ],
)
def test_mistake_is_told_in_one_line_and_changes_nothing(
    arguments: list[str], message: str
) -> None:
    alpha = make_network("alpha")
    configure_network(network=alpha, host_names=["a.example"])
    configure_network(network=make_network("beta"), host_names=["beta.example"])
    with pytest.raises(CommandError, match=message) as caught:
        output("configure_network", *arguments)
    assert "\n" not in str(caught.value)
    alpha.refresh_from_db()
    assert alpha.name == "Alpha"
    assert [host.name for host in alpha.host_names.all()] == ["a.example"]


def test_configuring_does_not_move_the_head_back() -> None:
    network = make_network("alpha")
    set_head(network, "newer", 9)  # behind the back of the object in our hands
    configure_network(network=network, name="First")
    network.refresh_from_db()
    assert (network.head_number, network.name) == (9, "First")
