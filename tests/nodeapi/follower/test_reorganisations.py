"""Reorganisations: scenarios 7 to 12."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from nodeapi.follower import importing
from samples.builder import ChainBuilder
from samples.schedules import from_genesis, make_genesis
from tests.nodeapi.follower.conftest import StartNode
from tests.nodeapi.follower.net import SLUG, Net
from tests.support import chains
from tests.support.simulator import ALICE, genesis_of, grow, small_chain

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("patient"),
]


def forked(common: int, own: int, other: int) -> tuple[ChainBuilder, ChainBuilder]:
    """Return two chains with common blocks, and some blocks of each."""
    chain = grow(small_chain(), common)
    second = grow(chain.fork(), other, "second")
    return grow(chain, own, "first"), second


def check_rows(chain: ChainBuilder, genesis: dict[str, Any] | None = None) -> None:
    """Compare the canonical state with that of an import of one chain."""
    chains.import_blocks("straight", genesis or genesis_of(), chain.blocks)
    found, wanted = chains.rows(SLUG), chains.rows("straight")
    for table in ("accounts", "slots", "nodes", "head"):
        assert found[table] == wanted[table], table


def test_07_depth_1(start_node: StartNode) -> None:
    first, second = forked(5, 1, 1)
    node = start_node(first)
    net = Net(node)
    with net.followed():
        net.wait_for(first.blocks[-1])
        net.wait_for(node.show(second))
        assert net.reorganisations() == [(5, 1, 1)]
    check_rows(second)


def test_08_depth_7_to_a_shorter_chain(start_node: StartNode) -> None:
    first, second = forked(5, 7, 3)
    node = start_node(first)
    net = Net(node)
    with net.followed():
        net.wait_for(first.blocks[-1])
        net.wait_for(node.show(second))
        assert net.reorganisations() == [(5, 7, 3)]
    check_rows(second)


def test_08_a_second_upstream_confirms_a_lower_head(start_node: StartNode) -> None:
    first, second = forked(5, 7, 3)
    nodes = [start_node(first) for _ in range(2)]
    net = Net(*nodes)
    with net.followed():
        net.wait_for(first.blocks[-1])
        nodes[0].show(second)
        net.wait_for_looks(nodes[0], 5)
        assert net.head()[0] == 12, "the other one still has the head"
        nodes[1].show(second)
        net.wait_for(second.blocks[-1])
    check_rows(second)


def test_09_back_and_forth(start_node: StartNode) -> None:
    first, second = forked(5, 2, 3)
    node = start_node(first)
    net = Net(node)
    with net.followed():
        net.wait_for(first.blocks[-1])
        net.wait_for(node.show(second))
        net.wait_for(node.show(grow(first, 2, "first")))
        assert net.reorganisations() == [(5, 2, 3), (5, 3, 4)]
    check_rows(first)


def test_10_while_catching_up(start_node: StartNode) -> None:
    """The chain changes below the blocks that are being imported, more than once."""
    first, second = forked(150, 250, 260)
    node = start_node(first)
    net = Net(node)
    with net.followed():
        net.wait(lambda: net.head()[0] >= 1)
        node.show(second)
        net.wait(lambda: net.head()[0] >= 200)
        node.show(first)
        net.wait_for(node.show(second))
    check_rows(second)


@pytest.mark.parametrize("has_debug", [True, False])
def test_10_across_the_first_block_of_amsterdam(
    start_node: StartNode, has_debug: bool
) -> None:
    """Blocks are read raw, or rebuilt from JSON, in which headers have new members."""
    first_blocks = {**from_genesis("bpo2"), "amsterdam": 4}
    alloc = {f"0x{ALICE.address.hex()}": {"balance": hex(10**24)}}
    genesis = make_genesis(chain_id=1337, first_blocks=first_blocks, alloc=alloc)
    chain = ChainBuilder(genesis)
    grow(chain, 2)
    second = chain.fork()
    for branch, count, text in ((chain, 3, "first"), (second, 4, "second")):
        for number in range(count):
            branch.send(ALICE, bytes([number + 9]) * 20, value=7)
            grow(branch, 1, text)
    node = start_node(chain)
    node.has_debug = has_debug
    net = Net(node, genesis=genesis)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        net.wait_for(node.show(second))
        assert net.reorganisations() == [(2, 3, 4)]
    slots = [block.header.slot_number for block in second.blocks]
    assert slots == [None, None, None, 1, 2, 3]
    check_rows(second, genesis)


def test_11_rewound_to_an_ancestor(start_node: StartNode) -> None:
    chain = grow(small_chain(), 9)
    node = start_node(chain)
    net = Net(node)
    with net.followed():
        net.wait_for(chain.blocks[-1])
        net.wait_for(node.show(chain, 6))
        assert net.reorganisations() == [(6, 3, 0)]
        net.wait_for(node.show(chain, 8))
        net.wait_for(node.show(chain))


def test_12_deeper_than_batch_and_cache(start_node: StartNode) -> None:
    first, second = forked(4, 140, 145)
    node = start_node(first)
    net = Net(node)
    with net.followed():
        net.wait_for(first.blocks[-1])
        net.wait_for(node.show(second))
        assert net.reorganisations() == [(4, 140, 145)], "one commit"
    check_rows(second)


@pytest.mark.parametrize("other", [8, 3])
def test_12_beyond_finalized(start_node: StartNode, other: int) -> None:
    """Following stops with an alarm, and continues when the chain returns."""
    first, second = forked(5, 6, other)
    node = start_node(first)
    node.finalized = 7
    net = Net(node)
    with net.followed():
        net.wait_for(first.blocks[-1])
        net.wait_for_tags(node.line[7], node.line[7])
        node.finalized = None
        node.show(second)
        net.wait_for_alarm("finalized block 7")
        net.wait_for_looks(node, 4)
        assert net.head() == (11, first.blocks[-1].header.hash)
        net.wait_for(node.show(grow(first, 1)))
        net.wait_for_alarm("")
        assert net.reorganisations() == []


def test_line_that_is_too_long_is_an_alarm(
    start_node: StartNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "MAX_LINE", 20)
    first, second = forked(5, 60, 61)
    node = start_node(first)
    net = Net(node)
    with net.followed():
        net.wait_for(first.blocks[-1])
        node.show(second)
        net.wait_for_alarm("goes back by at most 20 blocks")
        assert net.head() == (65, first.blocks[-1].header.hash)
        net.wait_for(node.show(grow(first, 1)))
        net.wait_for_alarm("")


def test_no_upstream_is_blamed_for_a_safe_block_of_the_former_branch(
    start_node: StartNode,
) -> None:
    """The upstream does not name another one yet."""
    first, second = forked(5, 3, 4)
    node = start_node(first)
    node.safe = 7
    net = Net(node)
    with net.followed():
        net.wait_for(first.blocks[-1])
        net.wait_for_tags(node.line[7], None)
        node.safe = None
        # No earlier poll may still be in progress when the branch changes.
        net.wait_for_looks(node, 2)
        net.wait_for(node.show(second))
        net.wait_for_tags(None, None)
        moved = timezone.now()
        status = net.wait(
            lambda: (
                (found := net.upstream_status(0))
                and found.checked_at is not None
                and found.checked_at > moved
                and found
            )
        )
        assert "not on the chain" not in status.last_error
