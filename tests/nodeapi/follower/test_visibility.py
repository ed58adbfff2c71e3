"""The first import of a network ends when its follower is close to its upstreams."""

from __future__ import annotations

import pytest

from tests.nodeapi.follower.conftest import StartNode
from tests.nodeapi.follower.net import Net
from tests.support.simulator import grow, small_chain

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_network_without_new_blocks_is_prepared(start_node: StartNode) -> None:
    node = start_node(small_chain())  # its head is block 0
    net = Net(node)
    assert net.row().is_preparing
    with net.followed():
        net.wait(lambda: not net.row().is_preparing)


def test_a_network_is_prepared_once(start_node: StartNode) -> None:
    """When at most two blocks are missing."""
    chain = grow(small_chain(), 12)
    node = start_node(chain)
    ninth, eleventh = (chain.blocks[index].header.hash for index in (8, 10))
    node.unknown |= {ninth, eleventh}
    net = Net(node)
    with net.followed():
        net.wait_for(chain.blocks[7])
        net.wait_for_looks(node, 3)
        assert net.row().is_preparing, "4 blocks are missing"
        node.unknown.discard(ninth)
        net.wait_for(chain.blocks[9])
        net.wait(lambda: not net.row().is_preparing)
        node.show(grow(chain, 8))
        net.wait_for_looks(node, 3)
        assert not net.row().is_preparing, "10 blocks are missing"
