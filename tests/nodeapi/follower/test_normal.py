"""Following without faults: scenarios 1 to 6."""

from __future__ import annotations

import signal

import pytest

from evm import kzg
from evm.blocks import decode_block
from nodeapi.follower import follower
from nodeapi.models import Block, ImportTiming
from outbox.models import Stream
from outbox.streams import blocks
from samples.builder import ChainBuilder
from tests.nodeapi.follower.conftest import StartNode
from tests.nodeapi.follower.net import SLUG, Net, start_follower
from tests.support import chains, copies, sample
from tests.support.simulator import genesis_of, grow, small_chain
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("patient"),
]


def test_01_start_at_genesis_catch_up_and_stay(
    start_node: StartNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads: list[int] = []
    monkeypatch.setattr(follower, "SETTLED_SECONDS", 0.0)
    monkeypatch.setattr(kzg, "prepare", lambda: heads.append(chains.head(SLUG)[0]))
    chain = grow(small_chain(), 300)  # some segments
    node = start_node(chain)
    net = Net(node)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        net.wait(lambda: heads)  # what rare blocks need is loaded at the head, once
        for _ in range(3):
            grow(chain, 1)
            net.wait_for(node.show(chain))
        status = net.wait(
            lambda: (
                (found := net.status())
                and (found.best_number, found.starting_number) == (303, None)
                and found
            )
        )
        assert bytes(status.best_hash) == chain.blocks[-1].header.hash
        assert status.alarm == ""
        assert heads == [300]
        # Timings are stored for the blocks that were imported one by one.
        assert ImportTiming.objects.filter(network_id=net.id, number=303).exists()
        upstream = net.wait(
            lambda: (
                (found := net.upstream_status(0)) and found.head_number == 303 and found
            )
        )
        assert upstream.client_version == "Simulator/1"
        assert upstream.latency_ms > 0
    numbers = Block.objects.filter(network_id=net.id).order_by("id")
    assert list(numbers.values_list("number", flat=True)) == list(range(304))


def test_02_kill_anywhere_and_resume(start_node: StartNode) -> None:
    chain = grow(small_chain(), 150)
    node = start_node(chain)
    net = Net(node)
    for number in (1, 100):
        process = start_follower(net)
        net.wait(lambda number=number: net.head()[0] >= number)
        process.kill()
        process.wait()
    last = start_follower(net)
    net.wait_for(chain.blocks[-1])
    last.send_signal(signal.SIGTERM)
    assert last.wait(PATIENCE_SECONDS) == 0
    chains.import_blocks("straight", genesis_of(), chain.blocks)
    assert chains.rows(SLUG) == chains.rows("straight")


def test_02_a_standby_takes_over(start_node: StartNode) -> None:
    chain = grow(small_chain(), 3)
    node = start_node(chain)
    net = Net(node)
    active = start_follower(net)
    net.wait_for(chain.blocks[-1])
    with net.followed():
        active.kill()
        active.wait()
        grow(chain, 1)
        net.wait_for(node.show(chain))


def test_03_skipped_slots_and_empty_blocks(start_node: StartNode) -> None:
    chain = small_chain()
    node = start_node(chain)
    net = Net(node)
    with net.followed():
        for slots in (1, 2, 7, 1):
            chain.block(timestamp=chain.head.timestamp + slots)
            net.wait_for(node.show(chain))


@pytest.mark.parametrize("has_debug", [True, False])
def test_04_each_fork_and_type(start_node: StartNode, has_debug: bool) -> None:
    """The sample chain has all of them; raw and rebuilt blocks have the same bytes."""
    copies.sample_chain()
    chain = ChainBuilder(sample.genesis())
    chain.blocks = [decode_block(raw) for raw in sample.raw_blocks()]
    node = start_node(chain)
    node.has_debug = has_debug
    net = Net(node, genesis=sample.genesis())
    with net.followed():
        net.wait_for(chain.blocks[-1])
    assert chains.rows(SLUG) == chains.rows("sample")


@pytest.mark.parametrize("scheme", ["http", "ws"])
def test_05_each_head_is_visible_and_published(
    start_node: StartNode, scheme: str
) -> None:
    chain = grow(small_chain(), 2)
    node = start_node(chain)
    net = Net(node, scheme=scheme)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        if scheme == "ws":
            net.wait(lambda: node.announce() == 1)
        for _ in range(3):
            before = last_number(net)
            grow(chain, 1)
            net.wait_for(node.show(chain))
            assert last_number(net) == before + 1


def last_number(net: Net) -> int:
    """Return the last number of the stream that announces heads to sockets."""
    number: int = Stream.objects.get(name=blocks(net.id)).last_number
    return number


def test_06_finality_advances_stalls_and_does_not_exist_yet(
    start_node: StartNode,
) -> None:
    chain = grow(small_chain(), 10)
    node = start_node(chain)
    net = Net(node)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        assert net.tags() == (None, None)
        node.safe, node.finalized = 6, 4
        net.wait_for_tags(node.line[6], node.line[4])
        grow(chain, 2)
        net.wait_for(node.show(chain))
        assert net.tags() == (node.line[6].header.hash, node.line[4].header.hash)
        node.safe, node.finalized = 10, 9
        net.wait_for_tags(node.line[10], node.line[9])
        # A node that was restarted does not know them for a while.
        node.safe = node.finalized = None
        grow(chain, 1)
        net.wait_for(node.show(chain))
        assert net.tags() == (node.line[10].header.hash, node.line[9].header.hash)
