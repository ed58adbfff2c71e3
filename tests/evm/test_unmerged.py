"""The node beside a deleted key is found in the proof that the key is absent."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping

import pytest

from evm import rlp
from evm.proof_nodes import ProofNodes
from evm.signatures import keccak
from evm.trie import PathTrie
from evm.trie_rows import UNREAD_BRANCH
from tests.evm.tries import OWNER, Rows


class Sparse(Rows):
    """Rows of which only the nodes on the paths of some keys are known."""

    def __init__(
        self, known: dict[bytes, bytes], proofs: ProofNodes, after: bytes
    ) -> None:
        super().__init__()
        self.rows = known
        self._proofs = proofs
        self._after = after
        self.kinds: set[str] = set()

    def nodes(
        self, owner: bytes, paths: Collection[bytes], likely: Collection[bytes] = ()
    ) -> Mapping[bytes, bytes]:
        found = dict(super().nodes(owner, paths, likely))
        for path in paths:
            if path in found:
                continue
            parent = rlp.list_items(self.rows[path[:-1]])
            node = self._proofs.unmerged(self._after, path, parent[path[-1]])
            assert node is not None
            found[path] = node
            self.kinds.add("branch" if node == UNREAD_BRANCH else "leaf or extension")
        return found


@pytest.mark.parametrize("size", [3, 20, 200])
def test_deletions_need_only_the_proofs_of_deleted_keys(size: int) -> None:
    seen: set[str] = set()
    for seed in range(60):
        chosen = random.Random(seed)
        keys = [keccak(chosen.randbytes(8)) for _ in range(size)]
        full = Rows()
        trie = PathTrie(OWNER, full, None)
        trie.update({key: chosen.randbytes(33) for key in keys})
        before = trie.root_hash()
        full.store(trie)
        deleted = chosen.sample(keys, chosen.randint(1, min(size - 1, 8)))
        rows, _ = proofs_of(full, before, deleted).trie(before)
        trie = PathTrie(OWNER, full, before)
        trie.update(dict.fromkeys(deleted, b""))
        after = trie.root_hash()
        changed = Rows()
        changed.rows = dict(full.rows)
        changed.store(trie)
        sparse = Sparse(rows, proofs_of(changed, after, deleted), after)
        own = PathTrie(OWNER, sparse, before)
        own.update(dict.fromkeys(deleted, b""))
        assert own.root_hash() == after
        seen |= sparse.kinds
    if size == 200:
        assert seen == {"leaf or extension", "branch"}


def proofs_of(rows: Rows, root: bytes, keys: list[bytes]) -> ProofNodes:
    """Return the nodes of the proofs of keys in a trie."""
    nodes = ProofNodes()
    for proof in PathTrie(OWNER, rows, root).prove(keys):
        nodes.add(proof.nodes)
    return nodes


def test_malformed_nodes_are_not_sufficient() -> None:
    short = rlp.encode([b"\x31", b"value" * 8])  # a leaf with a path of one nibble
    nodes = ProofNodes([short])
    assert nodes.unmerged(keccak(short), b"\1", bytes(33)) is None
    assert nodes.unmerged(keccak(short), b"", None) is None
