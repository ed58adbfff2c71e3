"""The import of blocks on a sparse state gives the rows of an import on a complete one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from networks.models import Network
from nodeapi.chain.database import importer_connection
from nodeapi.chain.importers import FollowingImporter
from nodeapi.chain.networks import stored_config
from nodeapi.follower.proving import FollowerProver
from nodeapi.follower.thread import LoopThread
from tests.support import chains, copies, sample
from tests.support.full_node import FullNode
from tests.support.sparse import forget_state
from tests.support.state_node import LocalClient

pytestmark = pytest.mark.django_db(transaction=True)

CHECKPOINT = 68
"""A block of Cancun. The chain goes on to Amsterdam."""


class Clients:
    """The part of an upstream pool that a prover needs."""

    def __init__(self, *clients: LocalClient) -> None:
        self._clients = list(clients)

    def clients(self, number: int) -> list[LocalClient]:
        return self._clients

    def blame_client(self, client: LocalClient, reason: str) -> None:
        raise AssertionError(reason)


def two_networks() -> None:
    """Import the sample chain, and another time up to the checkpoint."""
    chains.import_blocks("full", sample.genesis(), sample.raw_blocks())
    chains.import_blocks("sparse", sample.genesis(), sample.raw_blocks()[:CHECKPOINT])
    forget_state("sparse")


@contextmanager
def sparse_importer(node: FullNode) -> Iterator[FollowingImporter]:
    """Yield an importer into the network `sparse`, whose only upstream is a node."""
    network = Network.objects.get(slug="sparse")
    pool: Any = Clients(LocalClient(node.methods))
    with importer_connection() as connection, LoopThread("upstreams") as thread:
        prover = FollowerProver(connection, network.pk, thread, pool, threading.Event())
        importer = FollowingImporter(
            connection, network.pk, stored_config(network.pk), prover=prover
        )
        with closing(importer):
            yield importer


@pytest.mark.parametrize(
    "lacks",
    [
        (),
        ("debug_executionWitness",),
        ("debug_executionWitness", "debug_traceBlockByHash"),
    ],
    ids=lambda each: ",".join(each) or "nothing",
)
def test_blocks_change_what_they_change_on_a_complete_state(
    lacks: tuple[str, ...],
) -> None:
    copies.once("full and sparse", two_networks)
    with (
        importer_connection() as connection,
        sparse_importer(node := FullNode(connection, "full")) as importer,
    ):
        for method in lacks:
            del node.methods[method]
        for raw in sample.raw_blocks()[CHECKPOINT:]:
            importer.add(raw)
    assert chains.head("sparse") == chains.head("full")
    wanted = chains.state_rows("full", CHECKPOINT)
    assert chains.state_rows("sparse", CHECKPOINT) == wanted
