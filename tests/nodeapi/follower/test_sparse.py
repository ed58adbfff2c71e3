"""Following from a checkpoint: what blocks read is fetched, and proved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest

from networks.services import Checkpoint
from nodeapi.chain.database import importer_connection
from samples.builder import ChainBuilder
from tests.nodeapi.follower.conftest import StartNode
from tests.nodeapi.follower.net import SLUG, Net
from tests.support import chains, copies
from tests.support.full_node import FullNode
from tests.support.simulator import Simulator
from tests.support.sparse import genesis, grow, storage_chain

pytestmark = pytest.mark.django_db(transaction=True)

CHECKPOINT, HEAD = 260, 300
BRANCH = 280
"""The block at which another branch begins."""


@cache
def chain() -> ChainBuilder:
    """Return a chain up to `HEAD`."""
    return grow(trunk().fork(), HEAD - BRANCH, seed=2)


@cache
def branch() -> ChainBuilder:
    """Return a chain that is longer by a block, and branches off after `BRANCH`."""
    return grow(trunk().fork(), HEAD - BRANCH + 1, seed=3)


@cache
def trunk() -> ChainBuilder:
    """Return what both chains begin with."""
    made = grow(storage_chain(), BRANCH - 40, seed=0, transactions=0)
    return grow(made, 40, seed=1)


def import_full() -> None:
    """Import the chain and its branch into a complete network."""
    chains.import_blocks("full", genesis(), chain().blocks)


@contextmanager
def state_methods(node: Simulator) -> Iterator[FullNode]:
    """Let a simulator serve the state of the complete network."""
    with importer_connection() as connection:
        full = FullNode(connection, "full")
        node.server.methods |= full.methods
        yield full


def sparse_net(*nodes: Simulator) -> Net:
    """Create a network that starts at the checkpoint."""
    block = chain().blocks[CHECKPOINT - 1]
    return Net(
        *nodes,
        genesis=genesis(),
        checkpoint=Checkpoint(CHECKPOINT, block.header.hash, 256),
    )


def test_a_sparse_network_has_the_rows_of_a_complete_one(start_node: StartNode) -> None:
    copies.once("full storage", import_full)
    node = start_node(chain())
    with state_methods(node):
        net = sparse_net(node)
        with net.followed():
            net.wait_for(chain().blocks[-1])
    assert chains.state_rows(SLUG, CHECKPOINT) == chains.state_rows("full", CHECKPOINT)
