"""Proofs of keys, which the reference library verifies."""

from __future__ import annotations

import random

import pytest
import rlp
from trie import HexaryTrie

from evm.trie import EMPTY_ROOT, CorruptTrieNode, PathTrie
from evm.trie_proofs import KeyProof
from tests.evm.tries import OWNER, Rows, keccak


def build(content: dict[bytes, bytes]) -> tuple[Rows, bytes]:
    """Store a trie, and return its rows and its root."""
    rows = Rows()
    trie = PathTrie(OWNER, rows, None)
    trie.update(content)
    rows.store(trie)
    return rows, trie.root_hash()


def accepted_value(root: bytes, proof: KeyProof, key: bytes) -> bytes:
    """Return the value that the reference library finds in a proof."""
    nodes = [rlp.decode(node) for node in proof.nodes]
    found: bytes = HexaryTrie.get_from_proof(root, key, nodes)
    return found


def embedded_content() -> dict[bytes, bytes]:
    """Return keys that differ in their last nibbles, with short values."""
    return {b"\x01" * 31 + bytes([last]): bytes([last]) for last in range(1, 40, 3)}


@pytest.mark.parametrize("count", [1, 2, 17, 500])
def test_the_reference_library_accepts_proofs_of_values_and_of_absence(
    count: int,
) -> None:
    content = {keccak(b"%d" % n): rlp.encode(b"%d" % n * 12) for n in range(count)}
    rows, root = build(content)
    absent = [keccak(b"absent %d" % n) for n in range(50)]
    keys = [*content, *absent]
    proofs = PathTrie(OWNER, rows, root).prove(keys)
    for key, proof in zip(keys, proofs, strict=True):
        assert proof.reference is None
        assert proof.value == content.get(key, b"")
        assert accepted_value(root, proof, key) == proof.value


def test_nodes_that_their_parents_embed_are_not_listed() -> None:
    content = embedded_content()
    rows, root = build(content)
    absent = [b"\x01" * 31 + b"\x02", b"\x01" * 31 + b"\xff", b"\x02" * 32]
    for key in [*content, *absent]:
        (proof,) = PathTrie(OWNER, rows, root).prove([key])
        assert proof.value == content.get(key, b"")
        assert accepted_value(root, proof, key) == proof.value
        assert all(len(node) >= 32 for node in proof.nodes)
        assert set(proof.nodes) <= set(rows.rows.values())


def test_an_empty_trie_needs_no_node() -> None:
    (proof,) = PathTrie(OWNER, Rows(), None).prove([keccak(b"any")])
    assert (proof.nodes, proof.reference, proof.value) == ([], None, b"")
    assert KeyProof(EMPTY_ROOT, bytes(32)).reference is None


def test_proofs_show_changes_that_are_not_stored_yet() -> None:
    chance = random.Random(20)
    content = {keccak(b"%d" % n): b"value %d" % n for n in range(300)}
    rows, root = build(content)
    trie = PathTrie(OWNER, rows, root)
    changes = dict.fromkeys(chance.sample(list(content), 100), b"")
    changes |= {keccak(b"new %d" % n): b"new value %d" % n for n in range(100)}
    trie.update(changes)
    after = content | changes
    for key, proof in zip(after, trie.prove(after), strict=True):
        assert accepted_value(trie.root_hash(), proof, key) == after[key]


def test_nodes_are_read_with_one_query_for_several_levels() -> None:
    content = {keccak(b"%d" % n): b"value %d" % n for n in range(1000)}
    rows, root = build(content)
    PathTrie(OWNER, rows, root).prove([*content])
    assert len(rows.questions) <= 2


def test_a_damaged_node_is_an_error() -> None:
    content = {keccak(b"%d" % n): b"value %d" % n for n in range(20)}
    rows, root = build(content)
    key = next(iter(content))
    path = max(
        (path for path in rows.rows if to_text(key).startswith(path.hex()[1::2])),
        key=len,
    )
    node = bytearray(rows.rows[path])
    node[-1] ^= 1
    rows.rows[path] = bytes(node)
    with pytest.raises(CorruptTrieNode):
        PathTrie(OWNER, rows, root).prove([key])
    proof = KeyProof(root, key)
    assert not proof.add(bytes(node))
    assert proof.nodes == []


def to_text(key: bytes) -> str:
    """Return the nibbles of a key as text."""
    return key.hex()
