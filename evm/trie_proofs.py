"""Merkle proofs: the nodes of a trie from its root to a key.

A proof shows the value of a key, or that the trie does not contain the key. Only the
root hash is needed to verify it. Nodes shorter than 32 bytes are part of their parent's
RLP, and are not listed, except for the root.

Source: Yellow Paper, appendix D; EIP-1186.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sha3 import keccak_256

from evm import rlp
from evm.trie_nodes import (
    EMPTY,
    EMPTY_ROOT,
    FULL_BRANCH_SIZE,
    HASH_HEAD,
    HASHED_SIZE,
    branch_children,
    to_nibbles,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


class KeyProof:
    """The proof of one key, which grows node by node from the root downwards.

    nodes: the RLP of each node so far, the root first.
    reference: the reference of the next node, or None if the proof is complete.
    value: the key's value if the proof is complete, b"" if the trie does not contain
        the key.
    """

    __slots__ = ("_depth", "_nibbles", "nodes", "reference", "value")

    def __init__(self, root: bytes, key: bytes) -> None:
        """Begin at a root hash. key: 32 bytes."""
        self._nibbles = to_nibbles(key)
        self._depth = 0
        self.nodes: list[bytes] = []
        self.reference: bytes | None = None if root == EMPTY_ROOT else HASH_HEAD + root
        self.value = b""

    @property
    def nibbles(self) -> bytes:
        """The key, one nibble per byte."""
        return self._nibbles

    @property
    def path(self) -> bytes:
        """The path of the next node, one nibble per byte."""
        return self._nibbles[: self._depth]

    @property
    def depth(self) -> int:
        """The length of `path`."""
        return self._depth

    def add(self, node: bytes) -> bool:
        """Add the next node. Return False if it does not have the expected hash."""
        reference = self.reference
        if reference is None or keccak_256(node).digest() != reference[1:]:
            return False
        self.nodes.append(node)
        if len(node) == FULL_BRANCH_SIZE:
            at = 3 + HASHED_SIZE * self._nibbles[self._depth]
            self.reference = node[at : at + HASHED_SIZE]
            self._depth += 1
        else:
            self._enter(node)
        return True

    def _enter(self, node: bytes) -> None:
        """Follow the key through a node, and through nodes that it embeds."""
        while True:
            items: Sequence[bytes] = branch_children(node) or rlp.list_items(node)
            if len(items) == 2:
                child = self._enter_short(*items)
            else:
                child = items[self._nibbles[self._depth]]
                self._depth += 1
            if child is None or child == EMPTY:
                self.reference = None
                return
            if len(child) == HASHED_SIZE:
                self.reference = child
                return
            node = child

    def _enter_short(self, path: bytes, item: bytes) -> bytes | None:
        """Return the child of an extension, or None for a leaf or another path."""
        own, is_leaf = decode_path(path)
        rest = self._nibbles[self._depth :]
        if is_leaf:
            if own == rest:
                self.value = rlp.decode_string(rlp.decode(item))
            return None
        if not rest.startswith(own):
            return None
        self._depth += len(own)
        return item


def decode_path(path: bytes) -> tuple[bytes, bool]:
    """Return the nibbles of a short node's hex-prefix path, and whether it is a leaf.

    path: the RLP of the node's first item.
    """
    nibbles = to_nibbles(rlp.decode_string(rlp.decode(path)))
    flags = nibbles[0]
    return nibbles[1:] if flags & 1 else nibbles[2:], bool(flags & 2)
