"""Networks that start at a checkpoint, made from complete ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import psycopg
from django.db import connection

from evm.blocks import Block
from evm.changes import Changes
from evm.proof_nodes import ProofNodes
from evm.proved_state import Keys, ProvedState
from networks.models import Network
from nodeapi.chain.trie_at import trie_at
from nodeapi.proofs.keys import changed_below, probes_below
from nodeapi.proofs.values import (
    Anchor,
    head_anchor,
    insert_nodes,
    insert_values,
)


def forget_state(slug: str) -> None:
    """Make a network's head its checkpoint, of whose state nothing is known."""
    network = Network.objects.get(slug=slug)
    Network.objects.filter(pk=network.pk).update(checkpoint_number=network.head_number)
    with connection.cursor() as cursor:
        for table in ("accountversion", "storageversion", "trienode"):
            cursor.execute(
                f"DELETE FROM nodeapi_{table} WHERE network_id = %s", [network.pk]
            )


class FullProver:
    """Proves the values of a sparse network from a complete one of the same chain."""

    def __init__(
        self, connection: psycopg.Connection[Any], network_id: int, full_id: int
    ) -> None:
        self._connection = connection
        self._network_id = network_id
        self._full_id = full_id
        self.asked: list[Keys] = []

    def expect(self, block: Block) -> Keys:
        """Name nothing beforehand."""
        return Keys()

    def values(self, keys: Keys) -> None:
        """Store values."""
        self.asked.append(keys)
        anchor = head_anchor(self._connection, self._network_id)
        nodes, codes = self._prove(anchor, keys)
        values, unknown = ProvedState(anchor.state_root, nodes, codes).values(keys)
        assert not unknown
        insert_values(self._connection, self._network_id, anchor, values)
        insert_nodes(self._connection, self._network_id, nodes.rows(anchor.state_root))

    def nodes(
        self, owner: bytes, paths: Collection[bytes], changes: Changes
    ) -> Mapping[bytes, bytes]:
        """Return trie nodes."""
        anchor = head_anchor(self._connection, self._network_id)
        keys = changed_below(owner, paths, changes)
        below = [path for path in paths if not changed_below(owner, [path], changes)]
        keys.update(probes_below(owner, below, changes))
        nodes, _ = self._prove(anchor, keys)
        rows = nodes.rows(anchor.state_root)
        insert_nodes(self._connection, self._network_id, rows)
        found = rows.get(owner, {})
        return {path: found[path] for path in paths if path in found}

    def _prove(self, anchor: Anchor, keys: Keys) -> tuple[ProofNodes, dict[Any, bytes]]:
        tries = trie_at(self._connection, self._full_id, anchor.hash)
        addresses = keys.accounts | {address for address, _ in keys.slots}
        nodes = ProofNodes()
        for proof in tries.prove_accounts(sorted(addresses)):
            nodes.add(proof.nodes)
        for address in addresses:
            slots = [slot for each, slot in keys.slots if each == address]
            for proof in tries.prove_slots(address, slots):
                nodes.add(proof.nodes)
        rows = self._connection.execute("SELECT hash, code FROM nodeapi_code")
        return nodes, dict(rows.fetchall())
