"""Proofs that are read from stored nodes, without a worker process."""

from __future__ import annotations

import json
from typing import Any

import pytest

from networks.models import Network
from networks.services import configure_network
from nodeapi.store.proofs import SHORT_PROOF_KEYS
from portcullis.verify import verify_proof
from samples.signers import create_address
from tests.nodeapi.chain.trees import ALICE, PARENTS, Node, genesis, tree
from tests.support import chains
from tests.support.serving import Serving, serving

pytestmark = pytest.mark.django_db(transaction=True)

NODES = tree()
SLOTS = create_address(ALICE.address, 0)


def imported(keep_proofs: int | str) -> Network:
    """Import the tree of blocks into a network."""
    chains.import_blocks("tree", genesis(), [])
    network = Network.objects.get(slug="tree")
    configure_network(network=network, keep_proofs=keep_proofs)
    chains.import_blocks("tree", genesis(), [NODES[name].raw for name in PARENTS])
    return network


def is_proven(running: Serving, network: Network, node: Node, keys: int = 7) -> bool:
    """Return whether the store proves slots after a block; a proof has to be right."""
    names = tuple(hex(slot) for slot in range(keys))
    found = running.ask(
        running.service.store.proof, network.pk, node.hash, SLOTS, names
    )
    if found is None:
        return False
    assert node.state.root is not None
    _, values = verify_proof(
        json.loads(found), node.state.root, SLOTS, list(range(keys))
    )
    assert values == [node.state.storage(SLOTS, slot) for slot in range(keys)]
    return True


def head_line(network: Network) -> list[Node]:
    head = chains.head(network.slug)[1]
    found = next(node for node in NODES.values() if node.hash == head)
    return [NODES[name] for name in found.line]


@pytest.mark.parametrize("cache_bytes", [0, 2**20])
def test_only_the_head_is_proven_without_versions(
    settings: Any, cache_bytes: int
) -> None:
    settings.NODEAPI_CACHE_BYTES = cache_bytes
    network = imported(0)
    line = head_line(network)
    with serving() as running:
        assert [is_proven(running, network, node) for node in line] == (
            [False] * (len(line) - 1) + [True]
        )
        assert is_proven(running, network, line[-1])
        assert not is_proven(running, network, line[-1], SHORT_PROOF_KEYS + 1)


@pytest.mark.parametrize("cache_bytes", [0, 2**20])
def test_all_canonical_blocks_are_proven_with_versions(
    settings: Any, cache_bytes: int
) -> None:
    settings.NODEAPI_CACHE_BYTES = cache_bytes
    network = imported("all")
    line = head_line(network)
    with serving() as running:
        for node in NODES.values():
            assert is_proven(running, network, node) == (node in line)
