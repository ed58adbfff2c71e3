"""Trie nodes of untrusted origin, found only by the hashes that a trusted root leads to.

Proofs (EIP-1186) and execution witnesses are sets of nodes. Their order, and what their
sender says about them, does not matter: a node is found by the hash that its parent names,
and the first parent is a trusted root. A false node is therefore never found, and an
omitted one is reported as unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from evm import rlp
from evm.signatures import keccak
from evm.state_trie import STATE_OWNER, decode_account_leaf
from evm.trie_nodes import (
    EMPTY,
    EMPTY_ROOT,
    HASH_HEAD,
    HASHED_SIZE,
    NIBBLES,
    extension_path_rlp,
    from_nibbles,
    hash_reference,
    leaf_path_rlp,
    list_rlp,
)
from evm.trie_proofs import KeyProof, decode_path
from evm.trie_rows import UNREAD_BRANCH

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NO_NODE = b"\xc0"

NodeRows: TypeAlias = dict[bytes, dict[bytes, bytes]]
"""Owner of a trie, as in `evm.state_trie` → path → RLP of a node."""


class ProofNodes:
    """Nodes by their hash. Nodes of several proofs and witnesses can be added."""

    def __init__(self, nodes: Iterable[bytes] = ()) -> None:
        """Start with the RLP of some nodes."""
        self._nodes: dict[bytes, bytes] = {}
        self.add(nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def size(self) -> int:
        """The size of all nodes in bytes."""
        return sum(map(len, self._nodes.values()))

    def add(self, nodes: Iterable[bytes]) -> None:
        """Add the RLP of nodes, in any order. Anything else that is added is never found."""
        self._nodes.update((keccak(node), node) for node in nodes)

    def update(self, other: ProofNodes) -> None:
        """Add the nodes of another set."""
        self._nodes |= other._nodes

    def prove(self, root: bytes, key: bytes) -> KeyProof:
        """Return the proof of a key (32 bytes) in the trie with a root hash.

        If a node is unknown, `reference` of the result is that of the node.
        """
        proof = KeyProof(root, key)
        while proof.reference is not None:
            node = self._nodes.get(proof.reference[1:])
            if node is None:
                break
            proof.add(node)
        return proof

    def rows(self, state_root: bytes) -> NodeRows:
        """Return all known nodes below a state root.

        The nodes of an account's storage are found through the account's leaf.
        """
        accounts, leaves = self.trie(state_root)
        rows: NodeRows = {STATE_OWNER: accounts}
        for key, leaf in leaves:
            root = decode_account_leaf(leaf).storage_root
            if root is not None and root in self._nodes:
                rows[key], _ = self.trie(root)
        return rows

    def unmerged(
        self, root: bytes, path: bytes, reference: bytes | None
    ) -> bytes | None:
        """Return a node of an earlier trie, from the proof of a key beside it.

        When all other children of a branch have been deleted, the branch is merged with
        the node that remains. The proof that a deleted key is absent ends at the merged
        node, whose path contains that of the earlier node.

        root: of the trie after the deletion.
        path, reference: of the node before it, a child of the branch. The reference is
            None if it is unknown.

        The root may be as untrusted as the nodes if the reference is known.

        `UNREAD_BRANCH` stands for a branch. None if the nodes are not sufficient.
        """
        try:
            return self._unmerged(root, path, reference)
        except (ValueError, IndexError):
            return None

    def root_of(self, state_root: bytes, owner: bytes) -> bytes | None:
        """Return the root of one trie of a state, None if it is unknown or empty.

        The state root may be untrusted.
        """
        if owner == STATE_OWNER:
            return state_root
        try:
            proof = self.prove(state_root, owner)
            leaf = proof.value if proof.reference is None else b""
            return decode_account_leaf(leaf).storage_root if leaf else None
        except (ValueError, IndexError):
            return None

    def siblings(
        self,
        state_root: bytes,
        owner: bytes,
        paths: Iterable[bytes],
        parents: Mapping[bytes, bytes],
        *,
        are_unchanged: bool = False,
    ) -> dict[bytes, bytes]:
        """Return nodes of one trie beside keys that are deleted, as far as they are shown.

        state_root: of a state without the keys; untrusted as for `unmerged`. paths: of
            the nodes. parents: path → RLP of the branches above them, with the keys.
        are_unchanged: whether the state root is trusted, and the nodes are the same with
            and without the keys. The branches may then be unknown.
        """
        root = self.root_of(state_root, owner)
        found: dict[bytes, bytes] = {}
        for path in paths:
            items = rlp.list_items(parents.get(path[:-1], _NO_NODE))
            reference = items[path[-1]] if len(items) == 17 else None
            if root is None or (reference is None and not are_unchanged):
                continue
            node = self.unmerged(root, path, reference)
            if node is not None:
                found[path] = node
        return found

    def _unmerged(
        self, root: bytes, path: bytes, reference: bytes | None
    ) -> bytes | None:
        depth, node = 0, HASH_HEAD + root
        while True:
            if len(node) == HASHED_SIZE:
                known = self._nodes.get(node[1:])
                if known is None:
                    return None
                node = known
            items = rlp.list_items(node)
            if len(items) == 2:
                nibbles, is_leaf = decode_path(items[0])
                whole = path[:depth] + nibbles
                if whole.startswith(path):
                    return _split(whole, is_leaf, items[1], len(path), reference)
                if is_leaf or not path.startswith(whole):
                    return None
                depth, node = len(whole), items[1]
            elif depth == len(path):
                return node if reference in (None, hash_reference(node)) else None
            else:
                node = items[path[depth]]
                depth += 1
                if node == EMPTY:
                    return None

    def trie(self, root: bytes) -> tuple[dict[bytes, bytes], list[tuple[bytes, bytes]]]:
        """Return the known nodes of one trie by path, and the keys and values of leaves."""
        found: dict[bytes, bytes] = {}
        leaves: list[tuple[bytes, bytes]] = []
        references = [] if root == EMPTY_ROOT else [(b"", HASH_HEAD + root)]
        while references:
            path, node = references.pop()
            if node == EMPTY:
                continue
            if len(node) == HASHED_SIZE:
                known = self._nodes.get(node[1:])
                if known is None:
                    continue
                node = found[path] = known
            items = rlp.list_items(node)
            if len(items) == 2:
                nibbles, is_leaf = decode_path(items[0])
                if is_leaf:
                    value = rlp.decode_string(rlp.decode(items[1]))
                    leaves.append((from_nibbles(path + nibbles), value))
                else:
                    references.append((path + nibbles, items[1]))
            else:
                references += [
                    (path + NIBBLES[nibble], items[nibble]) for nibble in range(16)
                ]
        return found, leaves


def _split(
    whole: bytes, is_leaf: bool, item: bytes, depth: int, reference: bytes | None
) -> bytes | None:
    """Return the part of a leaf or an extension below a depth, if it has the reference.

    whole: the nibbles from the root to the end of the node's path. item: its value or
        child.
    """
    if is_leaf:
        path = leaf_path_rlp(from_nibbles(whole), depth)
    elif len(whole) == depth:
        return UNREAD_BRANCH if reference in (None, item) else None
    else:
        path = extension_path_rlp(whole[depth:])
    node = list_rlp(path + item)
    return node if reference in (None, hash_reference(node)) else None
