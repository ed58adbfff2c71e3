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
    configure_network(
        network=alpha,
        host_names=["a.example"],
        tracers=["callTracer"],
        upstream_urls=["http://node.example/SECRET"],
    )
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
        "upstreams",
        "following",
        "state",
    ]
    assert lines[1].split() == [
        *("alpha", "Alpha", str(alpha.chain_id), "42", "a.example", "callTracer"),
        *("1", "stopped", "visible"),
    ]
    assert lines[2].split()[0] == "beta"
    assert lines[2].split()[-5:] == ["all", "0", "no", "upstreams", "visible"]


def test_list_without_networks_says_where_they_come_from() -> None:
    stderr = StringIO()
    call_command("list_networks", stderr=stderr)
    assert "add_network and import_chain" in stderr.getvalue()


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


def test_upstreams_are_replaced_switched_and_removed() -> None:
    network = make_network("alpha")
    first, second = "http://node:8545/SECRET", "ws://node:8546"
    shown = output(
        *("configure_network", "alpha", "--upstream", first, "--upstream", second),
        *("--header", "Authorization: Bearer SECRET", "--header", "X-Key:1"),
        *("--agree", "2", "--keep-side-blocks", "64", "--proofs", "8192"),
    )
    assert "SECRET" not in shown + output("list_networks")
    assert [upstream.url for upstream in network.upstreams.all()] == [first, second]
    for upstream in network.upstreams.all():
        assert upstream.headers == {"Authorization": "Bearer SECRET", "X-Key": "1"}
    network.refresh_from_db()
    assert (network.agree, network.keep_side_blocks) == (2, 64)
    assert network.keep_proofs == 8192
    number = str(network.upstreams.get(url=second).pk)
    output("configure_network", "alpha", "--disable", number, "--agree", "1")
    assert not network.upstreams.get(url=second).is_enabled
    output("configure_network", "alpha", "--enable", number)
    assert network.upstreams.get(url=second).is_enabled
    output("configure_network", "alpha", "--upstream", second, "--upstream", first)
    assert [upstream.url for upstream in network.upstreams.all()] == [second, first]
    assert network.upstreams.get(url=first).headers["X-Key"] == "1"
    output("configure_network", "alpha", "--keep-side-blocks", "all")
    output("configure_network", "alpha", "--proofs", "all")
    output("configure_network", "alpha", "--upstream", "")
    assert not network.upstreams.exists()
    network.refresh_from_db()
    assert network.keep_side_blocks is None
    assert network.keep_proofs is None
    output("configure_network", "alpha", "--proofs", "0")
    network.refresh_from_db()
    assert network.keep_proofs == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gamma"], "there is no network 'gamma'"),
        (["alpha", "--tracers", "callTracer,magic"], "there is no tracer 'magic'"),
        (["alpha", "--host", "beta.example"], "already exists"),
        (["alpha", "--host", "a.example:80"], "without scheme and port"),
        (["alpha", "--name", ""], "cannot be blank"),
        (["alpha", "--upstream", "ftp://node/SECRET"], "begin with http://"),
        (["alpha", "--upstream", "https:///SECRET"], "it has no host"),
        (["alpha", "--upstream", "http://a", "--upstream", "http://a"], "twice"),
        (["alpha", "--header", "X: 1"], "requires --upstream"),
        (["alpha", "--upstream", "http://a", "--header", "SECRET"], "has no colon"),
        (
            ["alpha", "--upstream", "http://a", "--header", "Host: b"],
            "set automatically",
        ),
        (["alpha", "--upstream", "http://a", "--agree", "2"], "only 1 is enabled"),
        (["alpha", "--agree", "0"], "greater than or equal to 1"),
        (["alpha", "--agree", "two"], "invalid int value"),
        (["alpha", "--enable", "0"], "alpha has no upstream 0"),
        (["alpha", "--keep-side-blocks", "-1"], "must be a number of blocks, or all"),
        (["alpha", "--keep-side-blocks", "9" * 12], "less than or equal to"),
        (["alpha", "--proofs", "many"], "must be a number of blocks, or all"),
    ],
)
def test_invalid_argument_is_reported_in_one_line_and_changes_nothing(
    arguments: list[str], message: str
) -> None:
    alpha = make_network("alpha")
    configure_network(network=alpha, host_names=["a.example"])
    configure_network(network=make_network("beta"), host_names=["beta.example"])
    with pytest.raises(CommandError, match=message) as caught:
        output("configure_network", *arguments)
    assert "\n" not in str(caught.value)
    assert "SECRET" not in str(caught.value)
    assert not alpha.upstreams.exists()
    alpha.refresh_from_db()
    assert alpha.name == "Alpha"
    assert [host.name for host in alpha.host_names.all()] == ["a.example"]


def test_configuring_does_not_move_the_head_back() -> None:
    network = make_network("alpha")
    set_head(network, "newer", 9)  # the row changes, but not the object of this test
    configure_network(network=network, name="First")
    network.refresh_from_db()
    assert (network.head_number, network.name) == (9, "First")
