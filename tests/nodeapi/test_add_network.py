"""`manage.py add_network`: a genesis, upstreams that serve its chain, and mistakes."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from evm.public import PUBLIC_NETWORKS
from networks.models import Network, Upstream
from nodeapi.models import AccountVersion, Block
from tests.support import sample
from tests.support.rows import make_network
from tests.support.upstream_node import PATH, UpstreamNode, refuse, running_node

pytestmark = pytest.mark.django_db(transaction=True)

GENESIS_HASH = "0x" + "00" * 32
UNUSED = "http://127.0.0.1:9/SECRET"


@pytest.fixture(scope="module")
def block_0() -> str:
    return sample.genesis_hash()


@pytest.fixture
def node(block_0: str) -> Iterator[UpstreamNode]:
    """Run a node of the sample chain."""
    with running_node() as running:
        running.chain_id = sample.genesis()["config"]["chainId"]
        running.answers["eth_getBlockByNumber"] = {"hash": block_0}
        running.answers["eth_config"] = refuse(-32601, "the method does not exist")
        yield running


def add(*arguments: str, genesis: Path | None = sample.GENESIS_FILE) -> tuple[str, str]:
    """Add the network `dev`; return what is written to stdout and to stderr."""
    stdout, stderr = io.StringIO(), io.StringIO()
    given = () if genesis is None else ("--genesis", str(genesis))
    call_command("add_network", "dev", *given, *arguments, stdout=stdout, stderr=stderr)
    return stdout.getvalue(), stderr.getvalue()


def refusal(*arguments: str, genesis: Path | None = sample.GENESIS_FILE) -> str:
    """Run `add_network`, which has to fail, and return its message of one line."""
    before = Network.objects.count()
    with pytest.raises(CommandError) as error:
        add(*arguments, genesis=genesis)
    message = str(error.value)
    assert "\n" not in message
    assert "SECRET" not in message
    assert PATH not in message
    assert Network.objects.count() == before
    assert not Upstream.objects.exists()
    return message


def test_network_gets_block_0_and_its_upstreams(
    node: UpstreamNode, block_0: str
) -> None:
    stdout, stderr = add(
        *("--upstream", node.url, "--upstream", node.url + "?2", "--agree", "2"),
        *("--header", "X-Key: SECRET", "--name", "Development"),
        *("--host", "dev.example", "--no-check"),
    )
    network = Network.objects.get()
    assert stdout.strip() == (
        f"dev: added, chain id {network.chain_id}, block 0 {block_0}, upstreams: 2"
    )
    assert not stderr
    assert (network.slug, network.name, network.agree) == ("dev", "Development", 2)
    assert [host.name for host in network.host_names.all()] == ["dev.example"]
    assert [each.url for each in network.upstreams.all()] == [node.url, node.url + "?2"]
    assert network.upstreams.all()[0].headers == {"X-Key": "SECRET"}
    assert network.head_number == 0
    assert Block.objects.get().number == 0
    assert AccountVersion.objects.count() == len(sample.genesis()["alloc"])


def test_upstream_is_asked_for_its_chain(node: UpstreamNode) -> None:
    add("--upstream", node.url, "--header", "X-Key: SECRET")
    assert node.calls == ["eth_chainId", "eth_getBlockByNumber", "eth_config"]
    assert node.headers["X-Key"] == "SECRET"
    assert Network.objects.get().name == "dev"


def test_network_without_upstreams_can_be_added() -> None:
    stdout, _ = add()
    assert "upstreams: 0" in stdout


@pytest.mark.parametrize("name", PUBLIC_NETWORKS)
def test_public_networks_are_built_in(name: str) -> None:
    public = PUBLIC_NETWORKS[name]
    public_network = "--public", name, "--upstream", UNUSED, "--no-check"
    refused = refusal(*public_network, genesis=None)
    assert f"all blocks of {public.title} from block 0 on take about" in refused
    add(*public_network, "--from-genesis", genesis=None)
    network = Network.objects.get()
    assert bytes(network.genesis_hash) == public.genesis_hash
    assert bytes(Block.objects.get().hash) == public.genesis_hash
    assert (network.chain_id, network.name) == (public.chain_id, public.title)
    assert AccountVersion.objects.count() == len(public.genesis()["alloc"])


def test_upcoming_fork_that_is_not_supported_is_reported(
    tmp_path: Path, node: UpstreamNode
) -> None:
    genesis = sample.genesis()
    genesis["config"]["futureTime"] = 2_000_000_000
    path = tmp_path / "genesis.json"
    path.write_text(json.dumps(genesis))
    _, stderr = add("--upstream", node.url, genesis=path)
    assert "The fork future at time 2000000000 is not supported" in stderr
    assert Network.objects.get().genesis["config"]["futureTime"] == 2_000_000_000


def test_other_fork_schedule_of_an_upstream_is_reported(node: UpstreamNode) -> None:
    fork = {
        "activationTime": 2_000_000_000,
        "blobSchedule": None,
        "chainId": hex(node.chain_id),
        "precompiles": {},
        "systemContracts": {},
    }
    node.answers["eth_config"] = {"current": fork, "next": None, "last": None}
    _, stderr = add("--upstream", node.url)
    assert "The upstream has a fork at 2033-05-18 03:33:20 UTC" in stderr
    assert PATH not in stderr
    Network.objects.all().delete()
    node.answers["eth_config"] = {"current": "soon"}
    assert add("--upstream", node.url)[1] == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--upstream", "ftp://a/SECRET"], "begin with http://"),
        (["--upstream", "http://a:0/SECRET"], "host or port is malformed"),
        (["--upstream", UNUSED, "--upstream", UNUSED], "listed twice"),
        (["--upstream", UNUSED, "--agree", "2"], "only 1 is enabled"),
        (["--agree", "0"], "greater than or equal to 1"),
        (["--upstream", UNUSED, "--header", "SECRET"], "has no colon"),
        (["--upstream", UNUSED, "--header", "Host: SECRET"], "set automatically"),
        (
            ["--upstream", UNUSED],
            "http://127.0.0.1:9/… does not respond: connection refused",
        ),
        (["--host", "a.example:80"], "without scheme and port"),
        (["--public", "mainnet"], "not allowed with argument --genesis"),
    ],
)
def test_mistakes_are_reported_in_one_line(arguments: list[str], message: str) -> None:
    assert message in refusal(*arguments)


def test_second_network_of_a_chain_has_to_be_asked_for() -> None:
    add()
    arguments = "twin", "--genesis", str(sample.GENESIS_FILE)
    with pytest.raises(CommandError) as error:
        call_command("add_network", *arguments)
    assert str(error.value) == (
        "the network dev has the same chain id and genesis; --second adds another one"
    )
    call_command("add_network", *arguments, "--second")
    assert set(Network.objects.values_list("slug", flat=True)) == {"dev", "twin"}


def test_genesis_or_a_public_name_is_needed() -> None:
    assert "--genesis --public is required" in refusal(genesis=None)
    assert "invalid choice: 'holesky'" in refusal("--public", "holesky", genesis=None)


def test_slug_has_to_be_new_and_valid() -> None:
    make_network("dev")
    assert refusal() == (
        "the slug 'dev' is in use; configure_network changes that network"
    )
    for slug in ("v3", "Dev", "a b"):
        with pytest.raises(CommandError):
            call_command("add_network", slug, "--genesis", str(sample.GENESIS_FILE))
    assert Network.objects.count() == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file"),
        ("{", "line 1 column"),
        ("[]", "must be a JSON object"),
        ("{}", "the genesis has no config"),
        ('{"config": {}}', "has no chainId"),
        ('{"config": {"chainId": 1, "clique": {}}}', "clique consensus"),
        ('{"config": {"chainId": 1}}', "alloc: expected an object"),
        (
            '{"config": {"chainId": 1}, "alloc": {"0x12": {}}}',
            "alloc.0x12: not an address",
        ),
    ],
)
def test_unreadable_genesis_is_reported(
    tmp_path: Path, text: str | None, message: str
) -> None:
    path = tmp_path / "genesis.json"
    if text is not None:
        path.write_text(text)
    assert message in refusal(genesis=path)


def test_upstream_of_another_chain_is_refused(node: UpstreamNode, block_0: str) -> None:
    shown = node.url.replace(PATH, "/…")
    other = "0x" + "11" * 32
    node.answers["eth_getBlockByNumber"] = {"hash": other}
    assert refusal("--upstream", node.url) == (
        f"{shown} has another block 0: its hash is {other}, but that of the genesis is "
        f"{block_0}"
    )
    node.answers["eth_getBlockByNumber"] = None
    assert node.answers["eth_getBlockByNumber"] is None
    assert refusal("--upstream", node.url) == f"{shown} has no block 0"
    node.chain_id = 5
    assert refusal("--upstream", node.url) == (
        f"{shown} has the chain id 5, but the genesis has the chain id "
        f"{sample.genesis()['config']['chainId']}"
    )


@pytest.mark.parametrize(
    ("method", "answer", "message"),
    [
        ("eth_chainId", "five", "does not respond: eth_chainId returned no quantity"),
        ("eth_chainId", refuse(-32000, "no"), "returned an error: no (-32000)"),
        ("eth_getBlockByNumber", {"hash": "0x1"}, "block 0 has no hash"),
        ("eth_getBlockByNumber", ["0x1"], "block 0 has no hash"),
    ],
)
def test_upstream_without_a_valid_answer_is_refused(
    node: UpstreamNode, method: str, answer: Any, message: str
) -> None:
    node.answers[method] = answer
    assert message in refusal("--upstream", node.url)


def test_host_name_in_use_leaves_no_network_behind() -> None:
    from networks.services import configure_network

    configure_network(network=make_network("alpha"), host_names=["a.example"])
    assert "already exists" in refusal("--host", "a.example")
    assert not Block.objects.exists()
