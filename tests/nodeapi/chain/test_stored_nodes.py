"""Reads of trie nodes' rows, by path and by subtree."""

from __future__ import annotations

import pytest

from evm.state_trie import STATE_OWNER
from nodeapi.chain import state_reader
from nodeapi.chain.database import importer_connection
from nodeapi.chain.state_reader import StoredNodes
from tests.support import chains

ACCOUNTS = 300


@pytest.mark.django_db(transaction=True)
def test_the_nodes_below_paths_are_those_of_their_subtrees_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    genesis = {
        "config": {"chainId": 7},
        "gasLimit": hex(10_000_000),
        "alloc": {f"0x{n:040x}": {"balance": hex(n)} for n in range(1, ACCOUNTS + 1)},
    }
    for name in ("below", "beside"):  # equal rows of another network are not returned
        chains.import_blocks(name, genesis, [])
    with importer_connection() as connection:
        network_id = chains.network_id(connection, "below")
        rows = {
            bytes(path): bytes(node)
            for path, node in connection.execute(
                "SELECT path, node FROM nodeapi_trienode"
                " WHERE network_id = %s AND owner = %s",
                (network_id, STATE_OWNER),
            )
        }
        assert len(rows) > ACCOUNTS
        nodes = StoredNodes(connection, network_id)
        tops = [b"\x00", b"\x07", b"\x0f"]
        found = nodes.nodes_below(STATE_OWNER, tops)
        assert sorted(found) == sorted(
            node for path, node in rows.items() if len(path) > 1 and path[:1] in tops
        )
        assert nodes.nodes_below(STATE_OWNER, [b"\x01" * 60]) == []
        assert nodes.nodes_below(b"\x11" * 32, [b""]) == []
        monkeypatch.setattr(state_reader, "BELOW_ONE_PATH", 10)
        inside = {path: node for path, node in rows.items() if path[:1] == b"\x07"}
        assert nodes.nodes_below(STATE_OWNER, [b"\x07"]) == [
            inside[path] for path in sorted(inside)[1:11]
        ]
        monkeypatch.setattr(state_reader, "BELOW_ALL_PATHS", 25)
        assert len(nodes.nodes_below(STATE_OWNER, tops)) == 25
