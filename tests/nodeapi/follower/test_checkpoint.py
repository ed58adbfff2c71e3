"""A follower stores the checkpoint with its ancestors first, and then the history below it."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from evm.receipts import Log
from networks.services import Checkpoint
from nodeapi.chain.database import importer_connection
from nodeapi.chain.proved_blocks import history_lock
from nodeapi.follower import history
from nodeapi.models import Block
from samples.builder import ChainBuilder
from tests.nodeapi.follower.conftest import StartNode
from tests.nodeapi.follower.net import SLUG, Net
from tests.support.simulator import ALICE, forged, genesis_of, grow, small_chain

pytestmark = pytest.mark.django_db(transaction=True)

CHECKPOINT = 260


@pytest.fixture(scope="module")
def chain() -> ChainBuilder:
    """Return a chain of which some blocks have transactions."""
    made = grow(small_chain(fork="osaka"), 254)
    for number in range(6):
        made.send(ALICE, bytes(20), gas=21_000, value=number)
        made.block()
    return made


def network(chain: ChainBuilder, *nodes: Any, history_blocks: int = 8192) -> Net:
    """Create a network that starts at the checkpoint."""
    block_hash = chain.blocks[CHECKPOINT - 1].header.hash
    return Net(
        *nodes,
        genesis=genesis_of(fork="osaka"),
        checkpoint=Checkpoint(CHECKPOINT, block_hash, history_blocks),
    )


def numbers(net: Net) -> list[int]:
    """Return the numbers of the stored blocks."""
    found = Block.objects.filter(network_id=net.id).order_by("number")
    return list(found.values_list("number", flat=True))


def test_a_network_starts_at_its_checkpoint(
    chain: ChainBuilder, start_node: StartNode
) -> None:
    net = network(chain, start_node(chain))
    with net.followed():
        net.wait_for(chain.blocks[-1])
        net.wait(lambda: net.row().oldest_number == 1)
        net.wait(lambda: not net.row().is_preparing)
    assert numbers(net) == list(range(CHECKPOINT + 1))
    tip = chain.blocks[-1].header.hash
    assert net.tags() == (tip, tip)


def test_false_blocks_and_receipts_are_not_stored(
    chain: ChainBuilder, start_node: StartNode
) -> None:
    liar, honest = start_node(chain), start_node(chain)
    tip, below = chain.blocks[-1], chain.blocks[-2]
    (receipt,) = liar.receipts[tip.header.hash]
    false = Log(ALICE.address, (), b"never emitted")
    liar.receipts[tip.header.hash] = [replace(receipt, logs=[false])]
    liar.altered[below.header.hash] = forged(below, extra_data=b"false")
    net = network(chain, liar)
    with net.followed():
        net.wait_for_alarm("the checkpoint can't be stored")
        assert numbers(net) == [0]
        net.add(honest)
        net.wait_for(tip)
    assert numbers(net)[1] <= CHECKPOINT - 255


def test_a_command_stores_the_history_that_an_upstream_has(
    chain: ChainBuilder, start_node: StartNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "FIRST_PAUSE_SECONDS", 0.01)
    node = start_node(chain)
    net = network(chain, node, history_blocks=0)
    node.pruned = 3
    with net.followed():
        net.wait_for(chain.blocks[-1])
    assert numbers(net) == [0, *range(CHECKPOINT - 255, CHECKPOINT + 1)]

    def store(first: int, *more: str) -> str:
        stdout = io.StringIO()
        arguments = "--network", SLUG, "--from", str(first), "--rate", "1000", *more
        call_command("backfill", *arguments, stdout=stdout)
        return stdout.getvalue()

    with pytest.raises(CommandError, match="use --to 4"):
        store(1, "--to", "3")
    assert "net: blocks from 3 on are stored" in store(3)
    with pytest.raises(CommandError, match=r"pruned history unavailable \(4444\)"):
        store(1)
    node.pruned = 0
    with importer_connection() as opened, history_lock(opened, net.id) as is_held:
        assert is_held
        with pytest.raises(CommandError, match="another process"):
            store(1)
    store(1)
    assert numbers(net) == list(range(CHECKPOINT + 1))


def test_a_chain_that_leaves_below_the_checkpoint_is_refused(
    chain: ChainBuilder, start_node: StartNode
) -> None:
    node = start_node(chain)
    net = network(chain, node, history_blocks=0)
    with net.followed():
        net.wait_for(chain.blocks[-1])
    other = grow(small_chain(fork="osaka"), CHECKPOINT + 5, "other")
    node.show(other)
    with net.followed():
        net.wait_for_alarm(f"does not descend from the finalized block {CHECKPOINT}")
    assert net.head() == (CHECKPOINT, chain.blocks[-1].header.hash)
    assert not net.reorganisations()
