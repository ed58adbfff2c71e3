"""A network becomes visible to customers when its follower has reached its upstreams."""

from __future__ import annotations

import pytest

from networks.models import Network, NetworkState
from tests.nodeapi.follower.conftest import StartNode
from tests.nodeapi.follower.net import SLUG, Net
from tests.support.simulator import small_chain
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def state() -> str:
    return Network.objects.get(slug=SLUG).state


def test_first_successful_start_shows_a_network_without_new_blocks(
    start_node: StartNode,
) -> None:
    node = start_node(small_chain())  # its head is block 0
    net = Net(node)
    assert state() == NetworkState.PREPARING
    with net.followed():
        wait_until(lambda: state() == NetworkState.VISIBLE)
    net.set(state=NetworkState.HIDDEN)
    with net.followed():
        net.wait_for_looks(node, 2)
    assert state() == NetworkState.HIDDEN
