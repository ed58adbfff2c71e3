"""Former versions of trie nodes: complete for each block of the window."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from networks.models import Network
from networks.services import configure_network
from nodeapi.chain import node_versions
from nodeapi.chain.database import importer_connection
from nodeapi.chain.node_versions import NodesAt
from nodeapi.chain.trie_at import TooManyChanges, trie_at
from tests.nodeapi.chain.proving import check_proofs
from tests.nodeapi.chain.trees import PARENTS, genesis, tree
from tests.support import chains

pytestmark = pytest.mark.django_db(transaction=True)

NODES = tree()
LONGEST = NODES["b5"]


def make_network(slug: str, **settings: Any) -> Network:
    """Create a network with block 0 and these settings."""
    chains.import_blocks(slug, genesis(), [])
    network = Network.objects.get(slug=slug)
    return configure_network(network=network, **settings)


def import_line(slug: str, *names: str, batch_blocks: int = 8) -> None:
    raws = [NODES[name].raw for name in names]
    chains.import_blocks(slug, genesis(), raws, batch_blocks=batch_blocks)


def versions(connection: psycopg.Connection[Any], network: Network) -> list[Any]:
    return connection.execute(
        "SELECT owner, path, block_number, node FROM nodeapi_trienodeversion"
        " WHERE network_id = %s ORDER BY owner, path, block_number",
        (network.pk,),
        binary=True,
    ).fetchall()


@pytest.mark.parametrize("batch_blocks", [1, 2, 8])
def test_each_block_is_proven_without_rewinding(batch_blocks: int) -> None:
    network = make_network("kept", keep_proofs="all")
    import_line("kept", *LONGEST.line, batch_blocks=batch_blocks)
    with importer_connection() as connection:
        for name in LONGEST.line:
            node = NODES[name]
            # Without versions, a single change since the block would exceed the limit.
            tries = trie_at(connection, network.pk, node.hash, max_changes=0)
            check_proofs(tries, node.state)


def test_side_blocks_are_proven_from_their_fork_point() -> None:
    network = make_network("kept", keep_proofs="all")
    import_line("kept", *PARENTS)
    with importer_connection() as connection:
        for node in NODES.values():
            tries = trie_at(connection, network.pk, node.hash, max_changes=0)
            check_proofs(tries, node.state)


def test_reorganisations_leave_the_versions_of_the_present_chain() -> None:
    moved, straight = (
        make_network(slug, keep_proofs="all") for slug in ("moved", "straight")
    )
    import_line("moved", *PARENTS)
    with importer_connection() as connection:
        head = chains.head("moved")[1]
        line = next(node.line for node in NODES.values() if node.hash == head)
        import_line("straight", *line)
        effective = {}
        for network in (moved, straight):
            for number, name in enumerate(line, 1):
                reader = NodesAt(connection, network.pk, number)
                paths = {
                    (bytes(r[0]), bytes(r[1])) for r in versions(connection, network)
                }
                effective[network.slug, name] = {
                    (owner, path): reader.nodes(owner, [path]).get(path)
                    for owner, path in paths
                }
        for name in line:
            found = effective["moved", name]
            expected = effective["straight", name]
            assert {k: v for k, v in found.items() if v} == {
                k: v for k, v in expected.items() if v
            }
    assert chains.rows("moved")["nodes"] == chains.rows("straight")["nodes"]


def test_nodes_are_the_same_as_without_versions() -> None:
    make_network("kept", keep_proofs="all")
    import_line("kept", *LONGEST.line, batch_blocks=2)
    make_network("plain")
    import_line("plain", *LONGEST.line, batch_blocks=2)
    assert chains.rows("kept")["nodes"] == chains.rows("plain")["nodes"]
    with importer_connection() as connection:
        assert versions(connection, Network.objects.get(slug="plain")) == []


def test_versions_below_the_window_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_versions, "PRUNED_AT_ONCE", 1)
    network = make_network("window", keep_proofs=2)
    import_line("window", *LONGEST.line, batch_blocks=1)
    with importer_connection() as connection:
        numbers = {row[2] for row in versions(connection, network)}
        assert numbers == {4, 5}
        for name in ("b3", "b4", "b5"):
            node = NODES[name]
            tries = trie_at(connection, network.pk, node.hash, max_changes=0)
            check_proofs(tries, node.state)
        with pytest.raises(TooManyChanges):
            trie_at(connection, network.pk, NODES["b2"].hash, max_changes=0)
        check_proofs(
            trie_at(connection, network.pk, NODES["b2"].hash), NODES["b2"].state
        )


def test_versions_begin_and_end_with_the_setting() -> None:
    network = make_network("late")
    import_line("late", "t1", "b2")
    configure_network(network=network, keep_proofs="all")
    import_line("late", "b3", "b4")
    with importer_connection() as connection:
        assert {row[2] for row in versions(connection, network)} == {3, 4}
        trie_at(connection, network.pk, NODES["b2"].hash, max_changes=0)
        with pytest.raises(TooManyChanges):
            trie_at(connection, network.pk, NODES["t1"].hash, max_changes=0)
        # Versions with a gap would be useless. Therefore all are deleted.
        configure_network(network=network, keep_proofs=0)
        import_line("late", "b5")
        assert versions(connection, network) == []
        check_proofs(
            trie_at(connection, network.pk, NODES["t1"].hash), NODES["t1"].state
        )
