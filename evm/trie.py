"""Merkle-Patricia tries with hashed keys, whose nodes are stored by path.

Keys are hashes of 32 bytes ("secure" tries). Nodes are read from rows `path → RLP`. A
changed node replaces the row at its path. An update takes three steps in memory:

1. Descend: all changes are applied together, level by level. The nodes on their paths are
   decoded ("opened"). Missing nodes are read with one query per level. A single change
   that only replaces a leaf's value, the most frequent case in a large trie, is
   applied to the encoded nodes instead.
2. Fold: after deletions, branches with a single child are merged with the child.
3. Seal: decoded nodes are encoded and hashed, children first, each node once.

Opening a node marks its row as deleted. Sealing it marks its row as changed. Therefore
the changed rows are complete, however the shape of the trie has changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sha3 import keccak_256

from evm.trie_batch import LEVELS_AHEAD, Batch
from evm.trie_nodes import (
    EMPTY,
    EMPTY_ROOT,
    HASH_HEAD,
    HASHED_SIZE,
    NIBBLES,
    Extension,
    Leaf,
    Node,
    decode_node,
    extension_path_rlp,
    from_nibbles,
    hash_reference,
    leaf_path_rlp,
    leaf_rlp,
    list_rlp,
    merge_path,
    string_rlp,
    to_nibbles,
)
from evm.trie_proofs import KeyProof
from evm.trie_roots import build_root, ordered_root
from evm.trie_rows import (
    UNREAD_BRANCH,
    CorruptTrieNode,
    MissingTrieNode,
    NodeCache,
    NodeReader,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from evm.trie_batch import Lacking, Place, Recall

__all__ = [
    "EMPTY_ROOT",
    "CorruptTrieNode",
    "MissingTrieNode",
    "NodeCache",
    "NodeReader",
    "PathTrie",
    "build_root",
    "ordered_root",
]


class PathTrie:
    """A trie that collects updates, computes roots on demand, and returns changed rows.

    It starts at the root of the reader's rows. None or `EMPTY_ROOT` stands for an empty
    trie. A trie that is discarded before `mark_clean` has no effect. The nodes depend
    only on the content, so that writing old values back undoes changes.
    """

    def __init__(
        self,
        owner: bytes,
        reader: NodeReader,
        root: bytes | None,
        cache: NodeCache | None = None,
    ) -> None:
        self.owner = owner
        self._reader = reader
        self._cache = NodeCache(0) if cache is None else cache
        top = EMPTY if root is None or root == EMPTY_ROOT else HASH_HEAD + root
        self._top: list[Any] = [top]
        self._open_places: list[tuple[list[Any], int, bytes]] = []
        """Positions of open nodes, parents before children: the list that contains the
        node, the index in it, and the node's path. A new subtree has one entry."""
        self._rows: dict[bytes, bytes | None] = {}
        self._loaded: Mapping[bytes, bytes] = {}
        self._shrunk = False

    def update(
        self, changes: Mapping[bytes, bytes], recall: Recall | None = None
    ) -> None:
        """Set the values of keys (32 bytes each). An empty value deletes its key.

        recall: returns a key's previous value, if known, which saves reading the leaf.
            A value that does not match the leaf's hash is ignored.

        Raises: MissingTrieNode, CorruptTrieNode. The trie must not be used afterwards.
        """
        keys = sorted(changes)
        leaves = [
            (key, string_rlp(value)) if (value := changes[key]) else None
            for key in keys
        ]
        batch = Batch(keys, [to_nibbles(key) for key in keys], leaves, recall)
        if None in leaves:
            self._shrunk = True
        places: list[Place] = [(self._top, 0, b"", 0, len(keys))] if keys else []
        while places:
            lacking = self._descend(places, batch)
            self._load({path for _, path in lacking}, batch.paths_ahead(lacking))
            places = [place for place, _ in lacking]

    def root_hash(self) -> bytes:
        """Return the root hash after the last update."""
        if type(self._top[0]) is not bytes:
            if self._shrunk:
                self._fold_all()  # Folding may move decoded nodes to other paths.
            else:
                self._seal_places()
            self._top[0] = self._seal_all(self._top[0], b"")
            self._cache.age()
        self._open_places.clear()
        self._shrunk = False
        reference: bytes = self._top[0]
        return EMPTY_ROOT if reference == EMPTY else reference[1:]

    def dirty_nodes(self) -> Mapping[bytes, bytes | None]:
        """Return path → RLP of rows changed since `mark_clean`.

        None stands for a row to delete.
        """
        self.root_hash()
        return self._rows

    def mark_clean(self) -> None:
        """Mark all nodes as unchanged, because the rows of `dirty_nodes` were written."""
        self._rows = {}

    def prove(self, keys: Iterable[bytes]) -> list[KeyProof]:
        """Return the proof of each key (32 bytes) after the last update.

        Raises: MissingTrieNode, CorruptTrieNode.
        """
        root = self.root_hash()
        proofs = [KeyProof(root, key) for key in keys]
        waiting = [proof for proof in proofs if self._extend(proof)]
        while waiting:
            self._load(
                {proof.path for proof in waiting},
                {
                    proof.nibbles[: proof.depth + ahead]
                    for proof in waiting
                    for ahead in range(1, LEVELS_AHEAD + 1)
                },
            )
            waiting = [proof for proof in waiting if self._extend(proof)]
        return proofs

    def _extend(self, proof: KeyProof) -> bool:
        """Add nodes that are in memory. Return whether more nodes have to be read."""
        while (reference := proof.reference) is not None:
            node = self._find(reference, proof.path)
            if node is None:
                return True
            if not proof.add(node):
                raise CorruptTrieNode(self.owner, proof.path)
        return False

    # Loading nodes

    def _find(self, reference: bytes, path: bytes) -> bytes | None:
        """Return a node's RLP from memory, or None if it has to be read.

        Raises: CorruptTrieNode if the node that was read does not match the reference.
        """
        if len(reference) != HASHED_SIZE:
            return reference
        node = (
            self._cache.young.get(reference)
            or self._cache.old.get(reference)
            or self._rows.get(path)
        )
        if node is None:
            node = self._loaded.get(path)
            if node is not None and keccak_256(node).digest() != reference[1:]:
                raise CorruptTrieNode(self.owner, path)
        return node

    def _load(self, needed: Collection[bytes], likely: Collection[bytes]) -> None:
        """Read needed nodes, which must exist, and likely nodes, which may not."""
        if not needed:
            self._loaded = {}
            return
        self._loaded = self._reader.nodes(self.owner, needed, likely)
        for path in needed:
            if path not in self._loaded:
                raise MissingTrieNode(self.owner, path)
        self._cache.keep_around(self.owner, self._loaded, needed)

    # Descend

    def _descend(self, places: list[Place], batch: Batch) -> list[Lacking]:
        """Apply changes as far as nodes are in memory.

        Return the places with missing nodes.
        """
        keys, nibbles, leaves, _ = batch
        note = self._open_places.append
        lacking: list[Lacking] = []
        while places:
            holder, index, path, low, high = place = places.pop()
            node = holder[index]
            depth = len(path)
            if type(node) is bytes:
                if node == EMPTY:
                    holder[index] = batch.grow(low, high, depth, None)
                    note((holder, index, path))
                    continue
                node = self._enter(place, batch)
                if type(node) is int:
                    lacking.append((place, nibbles[low][:node]))
                    continue
                holder[index] = node
                if type(node) is bytes:
                    continue
                note((holder, index, path))
            kind = type(node)
            if kind is list:
                while low < high:
                    nibble = nibbles[low][depth]
                    end = low + 1
                    while end < high and nibbles[end][depth] == nibble:
                        end += 1
                    places.append((node, nibble, path + NIBBLES[nibble], low, end))
                    low = end
            elif kind is tuple:
                if high - low == 1 and node[0] == keys[low]:
                    holder[index] = leaves[low] or EMPTY
                else:
                    holder[index] = batch.grow(low, high, depth, node)
            else:
                places.append(batch.enter_extension(place, node))
        return lacking

    def _enter(self, place: Place, batch: Batch) -> Node | bytes | int:
        """Return the replacement of an encoded node that has changes below it.

        This is the decoded node, or its new reference if all changes are applied. An int
        is the depth of a node that has to be read first.
        """
        holder, index, path, low, high = place
        reference: bytes = holder[index]
        node: Node | bytes | int | None = None
        if high - low == 1:
            node = self._swap_leaf(reference, len(path), batch, low)
        if node is None:
            node = self._open(reference, path, batch.keys[low])
        if node is None and high - low == 1:
            node = self._recall_deleted(reference, path, batch, low)
        return len(path) if node is None else node

    def _open(self, reference: bytes, path: bytes, near: bytes) -> Node | None:
        """Decode a node and mark its row as deleted.

        Return None if the node has to be read first.
        """
        rlp = self._find(reference, path)
        if rlp is None:
            return None
        if len(reference) == HASHED_SIZE:
            self._rows[path] = None
            self._cache.young.pop(reference, None)
        return decode_node(rlp, len(path), near)

    def _swap_leaf(
        self, reference: bytes, depth: int, batch: Batch, change: int
    ) -> bytes | int | None:
        """Replace the value of one leaf below an encoded node. Return the new reference.

        Most changes in a large trie are of this kind, and do not require decoded nodes.
        An int is the depth of a node that has to be read before a new attempt. None
        means that the change is not of this kind, and nothing was changed: the leaf has
        another key or is deleted, its previous value is unknown, or a node has an
        unusual form.
        """
        leaf, recall = batch.leaves[change], batch.recall
        value = recall(batch.keys[change]) if leaf and recall else b""
        if not leaf or not value:
            return None
        nibbles = batch.nibbles[change]
        way = self._cache.follow(reference, nibbles, depth)
        if way is None:
            return None
        spine, reference = way
        depth += len(spine)
        path_rlp = leaf_path_rlp(leaf[0], depth)
        rows, young = self._rows, self._cache.young
        if hash_reference(list_rlp(path_rlp + string_rlp(value))) != reference:
            # The cached leaf is another node or outdated.
            path = nibbles[:depth]
            is_here = path in self._loaded or path in rows
            return None if is_here or len(reference) != HASHED_SIZE else depth
        rlp = list_rlp(path_rlp + leaf[1])
        if len(rlp) < 32:
            return None
        rows[nibbles[:depth]] = rlp
        reference = hash_reference(rlp)
        for replaced, branch, at in reversed(spine):
            depth -= 1
            rlp = branch[:at] + reference + branch[at + HASHED_SIZE :]
            rows[nibbles[:depth]] = rlp
            reference = hash_reference(rlp)
            young.pop(replaced, None)
            young[reference] = rlp
        return reference

    def _recall_deleted(
        self, reference: bytes, path: bytes, batch: Batch, change: int
    ) -> Leaf | None:
        """Return the leaf of a deleted key, built from its previous value, or None."""
        key, recall = batch.keys[change], batch.recall
        value = recall(key) if recall and batch.leaves[change] is None else b""
        if not value:
            return None
        leaf = (key, string_rlp(value))
        if hash_reference(leaf_rlp(leaf, len(path))) != reference:
            return None
        self._rows[path] = None
        return leaf

    # Fold

    def _fold_all(self) -> None:
        """Normalize modified nodes (merge single-child branches, extensions)."""
        while True:
            wanted: set[bytes] = set()
            self._top[0] = self._fold(self._top[0], b"", wanted)
            self._load(wanted, ())
            if not wanted:
                return

    def _fold(self, node: Any, path: bytes, wanted: set[bytes]) -> Any:
        """Fold a node's children, then return its normalized form.

        If an only child is not in memory, its path is added to `wanted`, and the branch
        is kept until the next round.
        """
        kind = type(node)
        if kind is bytes or kind is tuple:
            return node
        if kind is Extension:
            child = self._fold(node[0], path + node.nibbles, wanted)
            return merge_path(node.nibbles, child)
        for nibble, child in enumerate(node):
            if type(child) is not bytes:
                node[nibble] = self._fold(child, path + NIBBLES[nibble], wanted)
        count = 17 - node.count(EMPTY)
        if count > 1:
            return node
        if count == 0:
            return EMPTY
        nibble, child = next(
            (nibble, child) for nibble, child in enumerate(node) if child != EMPTY
        )
        child_path = path + NIBBLES[nibble]
        is_unread = self._loaded.get(child_path) == UNREAD_BRANCH
        if type(child) is bytes and not is_unread:
            rlp = self._find(child, child_path)
            if rlp is None:
                wanted.add(child_path)
                return node
            child = self._open_unless_branch(child, rlp, child_path)
        return merge_path(NIBBLES[nibble], child)

    def _open_unless_branch(self, reference: bytes, rlp: bytes, path: bytes) -> Any:
        """Return an only child. Decode it unless it is a branch, which is not merged."""
        near = from_nibbles(path.ljust(64, b"\0"))
        node = decode_node(rlp, len(path), near)
        if type(node) is list:
            return reference
        if len(reference) == HASHED_SIZE:
            self._rows[path] = None
        return node

    # Seal

    def _seal_places(self) -> None:
        """Encode and hash all decoded nodes except the root, the last decoded one first.

        This order ensures that children are encoded before their parents.
        """
        for holder, index, path in reversed(self._open_places):
            node = holder[index]
            if type(node) is bytes or not path:
                continue
            try:
                holder[index] = self._seal(node, path)
            except TypeError:
                # An open child is not in `_open_places`: this update created both nodes.
                holder[index] = self._seal_all(node, path)

    def _seal_all(self, node: Any, path: bytes) -> bytes:
        """Encode and hash a node and all decoded nodes below it. Return its reference."""
        kind = type(node)
        if kind is bytes:
            sealed: bytes = node
            return sealed
        if kind is list:
            for nibble, child in enumerate(node):
                if type(child) is not bytes:
                    node[nibble] = self._seal_all(child, path + NIBBLES[nibble])
        elif kind is Extension:
            node[0] = self._seal_all(node[0], path + node.nibbles)
        return self._seal(node, path)

    def _seal(self, node: Any, path: bytes) -> bytes:
        """Encode and hash a node whose children are encoded. Return its reference.

        Raises: TypeError if a child is a decoded node.
        """
        kind = type(node)
        if kind is tuple:
            rlp = leaf_rlp(node, len(path))
        elif kind is list:
            rlp = list_rlp(b"".join(node))
        else:
            rlp = list_rlp(extension_path_rlp(node.nibbles) + node[0])
        if len(rlp) < 32:  # Never the root, because a key has 32 bytes.
            return rlp
        reference: bytes = hash_reference(rlp)
        self._rows[path] = rlp
        if kind is not tuple:  # Leaves can be recomputed, and are the most numerous.
            self._cache.young[reference] = rlp
        return reference
