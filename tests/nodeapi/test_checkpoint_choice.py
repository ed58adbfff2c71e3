"""The block at which a new network starts: by the command and in the admin."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client

from keys.models import User
from networks.models import Network
from networks.services import configure_network
from nodeapi.models import AccountVersion, Block
from samples.builder import ChainBuilder
from tests.support.simulator import Simulator, genesis_of, grow, simulator, small_chain

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def chain() -> ChainBuilder:
    return grow(small_chain(fork="cancun"), 300)


@pytest.fixture
def nodes(chain: ChainBuilder) -> Iterator[list[Simulator]]:
    """Run three nodes, whose finalized blocks differ."""
    with ExitStack() as stack:
        running = [stack.enter_context(simulator(chain)) for _ in range(3)]
        for node, finalized in zip(running, (290, 280, 270), strict=True):
            node.finalized = finalized
        yield running


@pytest.fixture
def genesis(tmp_path: Path) -> Path:
    path = tmp_path / "genesis.json"
    path.write_text(json.dumps(genesis_of(fork="cancun")))
    return path


def add(genesis: Path, nodes: list[Simulator], *arguments: str) -> str:
    """Add the network `dev`, and return what is written to stdout."""
    stdout = io.StringIO()
    urls = [part for node in nodes for part in ("--upstream", node.server.url("http"))]
    call_command(
        *("add_network", "dev", "--genesis", str(genesis), *urls, *arguments),
        stdout=stdout,
    )
    return stdout.getvalue()


def test_newest_finalized_block_on_which_upstreams_agree(
    chain: ChainBuilder, nodes: list[Simulator], genesis: Path
) -> None:
    other = chain.fork()
    stale = grow(ChainBuilder(genesis_of(fork="cancun"), 1), 295, "other")
    nodes[0].show(stale)
    shown = add(genesis, nodes, "--agree", "2", "--checkpoint", "finalized", "--yes")
    block_hash = other.blocks[279].header.hash
    assert f"Checkpoint: block 280, 0x{block_hash.hex()}, 20" in shown
    assert "on the chain of 2 of 3 upstreams" in shown
    assert "beacon node" in shown
    network = Network.objects.get()
    assert (network.checkpoint_number, network.head_number) == (280, 0)
    assert bytes(network.checkpoint_hash or b"") == block_hash
    assert network.history_blocks == 8192
    assert not network.emit_total_difficulty
    assert Block.objects.count() == 1
    assert not AccountVersion.objects.exists()
    with pytest.raises(ValidationError, match="is not known"):
        configure_network(network=network, emit_total_difficulty=True)


def test_finalized_block_has_to_be_confirmed(
    nodes: list[Simulator], genesis: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CommandError, match="there is no terminal"):
        add(genesis, nodes, "--checkpoint", "finalized")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: "n")
    with pytest.raises(CommandError, match="was not added"):
        add(genesis, nodes, "--checkpoint", "finalized")
    assert not Network.objects.exists()
    monkeypatch.setattr("builtins.input", lambda _: "y")
    add(genesis, nodes, "--checkpoint", "finalized", "--history", "7")
    network = Network.objects.get()
    assert (network.checkpoint_number, network.history_blocks) == (290, 7)


def test_checkpoint_by_hash(
    chain: ChainBuilder, nodes: list[Simulator], genesis: Path
) -> None:
    def refusal(number: int) -> str:
        block_hash = chain.blocks[number - 1].header.hash.hex()
        with pytest.raises(CommandError) as error:
            add(genesis, nodes, "--checkpoint", f"0x{block_hash}")
        assert not Network.objects.exists()
        return str(error.value)

    assert "block 256 is too early" in refusal(256)
    nodes[0].altered[chain.blocks[256].header.hash] = chain.blocks[255]
    for node in nodes[1:]:
        node.unknown.add(chain.blocks[256].header.hash)
    assert "no upstream sends block 0x" in refusal(257)
    nodes[1].unknown.clear()
    block_hash = chain.blocks[256].header.hash
    shown = add(genesis, nodes, "--checkpoint", f"0x{block_hash.hex()}")
    assert "block 257" in shown
    assert "1 of 3 upstreams" in shown
    for text in ("latest", "0x12", ""):
        with pytest.raises(CommandError, match="must be finalized, or the hash"):
            add(genesis, nodes, "--checkpoint", text)


def test_checkpoint_before_cancun_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "genesis.json"
    path.write_text(json.dumps(genesis_of()))
    chain = grow(small_chain(), 257)
    with simulator(chain) as node:
        node.finalized = 257
        with pytest.raises(CommandError, match="of Cancun or later"):
            add(path, [node], "--checkpoint", "finalized", "--yes")
        node.finalized = None
        with pytest.raises(CommandError, match="no upstream has a finalized block"):
            add(path, [node], "--checkpoint", "finalized", "--yes")
    with pytest.raises(CommandError, match="needs at least one upstream"):
        add(path, [], "--checkpoint", "finalized", "--yes")


def test_form_shows_the_finalized_block_before_it_adds_the_network(
    client: Client, chain: ChainBuilder, nodes: list[Simulator]
) -> None:
    client.force_login(User.objects.create_superuser("staff@example.org"))

    def post(checkpoint: str, **fields: str) -> str:
        text = json.dumps(genesis_of(fork="cancun")).encode()
        data = {
            "slug": "dev",
            "name": "Dev",
            "genesis": SimpleUploadedFile("genesis.json", text),
            "upstreams": nodes[0].server.url("http"),
            "checkpoint": checkpoint,
            **fields,
        }
        path = "/admin/networks/network/add/"
        return client.post(path, data, follow=True).content.decode()

    shown = post("finalized")
    block_hash = f"0x{chain.blocks[289].header.hash.hex()}"
    assert f"Checkpoint: block 290, {block_hash}" in shown
    assert re.search(rf'name="checkpoint" value="{block_hash}"', shown)
    assert not Network.objects.exists()
    assert "Enter finalized, or the hash" in post("latest")
    assert "Dev was added" in post(block_hash, history="300")
    network = Network.objects.get()
    assert (network.checkpoint_number, network.history_blocks) == (290, 300)


def test_form_names_the_cost_of_a_public_network_from_block_0(client: Client) -> None:
    client.force_login(User.objects.create_superuser("staff@example.org"))
    data = {"slug": "sepolia", "name": "Sepolia", "public": "sepolia"}
    shown = client.post("/admin/networks/network/add/", data).content.decode()
    assert "about three months of execution" in shown
    assert not Network.objects.exists()
