"""The Merkle trie that proves state roots, its nodes addressed by their path.

A trie here is "secure": its keys are hashes, all of 32 bytes. The nodes come from rows
`path → RLP` and go back to them, a changed node replacing the one in its place. An
update runs in three steps over nodes in memory:

1. descend: the changes go down together, level by level, opening (decoding) the nodes
   on their way; what memory lacks is asked of the reader in one question per level.
   Where a change goes on alone and only puts another value into a leaf, as most do in
   a large trie, the nodes above are sealed again at once, none of them decoded;
2. fold: where something was deleted, branches left with one child melt into it;
3. seal: the open nodes are encoded and hashed, children first, each once.

Opening a node notes that its row goes; sealing one notes the row that comes. So the
rows are right whatever happened to the shape between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sha3 import keccak_256

from nodeapi.evm.trie_batch import Batch
from nodeapi.evm.trie_nodes import (
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
    melt,
    string_rlp,
    to_nibbles,
)
from nodeapi.evm.trie_roots import build_root, ordered_root
from nodeapi.evm.trie_rows import (
    CorruptTrieNode,
    MissingTrieNode,
    NodeCache,
    NodeReader,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from nodeapi.evm.trie_batch import Lacking, Place, Recall

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
    """A trie in change: many updates, a root whenever asked, rows in the end.

    It opens at the root that the reader's rows have, None or `EMPTY_ROOT` for none.
    Without `mark_clean` nothing is final: a trie given up leaves no trace. And its
    shape depends on its content alone, so that writing old values back undoes changes.
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
        """Where nodes are open, parents before their children: the list that a node
        stands in, its index there, its path. What grew in one place counts as one."""
        self._rows: dict[bytes, bytes | None] = {}
        self._loaded: Mapping[bytes, bytes] = {}
        self._shrunk = False

    def update(
        self, changes: Mapping[bytes, bytes], recall: Recall | None = None
    ) -> None:
        """Set the values of keys (32 bytes each); an empty value deletes its key.

        recall: gives the value that a key has had, where it is known. It spares reading
            the key's leaf; one that does not fit the leaf's hash is not taken.
        Raises: MissingTrieNode, CorruptTrieNode: this trie is of no use after that.
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
        """Return the root hash as of the last update."""
        if type(self._top[0]) is not bytes:
            if self._shrunk:
                self._fold_all()  # after which open nodes may stand elsewhere
            else:
                self._seal_places()
            self._top[0] = self._seal_all(self._top[0], b"")
            self._cache.age()
        self._open_places.clear()
        self._shrunk = False
        reference: bytes = self._top[0]
        return EMPTY_ROOT if reference == EMPTY else reference[1:]

    def dirty_nodes(self) -> Mapping[bytes, bytes | None]:
        """Return path → RLP of the rows to write since `mark_clean`, None to remove."""
        self.root_hash()
        return self._rows

    def mark_clean(self) -> None:
        """Take it that the reader now has what `dirty_nodes` returned."""
        self._rows = {}

    # Nodes that come in

    def _find(self, reference: bytes, path: bytes) -> bytes | None:
        """Return a node's RLP from memory, None where it has to be read.

        Raises: CorruptTrieNode when what was read is not what was referred to.
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
        """Read nodes that must exist, and with them some that may."""
        if not needed:
            self._loaded = {}
            return
        self._loaded = self._reader.nodes(self.owner, {*needed, *likely})
        for path in needed:
            if path not in self._loaded:
                raise MissingTrieNode(self.owner, path)
        self._cache.keep_around(self.owner, self._loaded, needed)

    # Descend

    def _descend(self, places: list[Place], batch: Batch) -> list[Lacking]:
        """Bring changes down as far as memory goes; return what it lacks."""
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
        """Return what stands for a sealed node now that changes go down there.

        That is the node opened, or its new reference if no more is to be done; or the
        depth of a node that has to be read first, itself or one below it.
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
        """Take a node out of its row and decode it, None where it has to be read."""
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
        """Change the value of a leaf below a sealed node; return the new reference.

        Most changes in a large trie are so simple, and need no node decoded; it is
        tried again from above when a node on the way, whose depth is returned, has been
        read. None, and nothing is done, where it is not so simple: the leaf's key
        differs or goes away, the value that it has had is not known, a node is unusual.
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
            # It is another node, or what is remembered is wrong.
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
        """Return the leaf of a deleted key, made of the value that it had, if it is here."""
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
        """Bring the open nodes into the one shape that a trie of their keys has."""
        while True:
            wanted: set[bytes] = set()
            self._top[0] = self._fold(self._top[0], b"", wanted)
            self._load(wanted, ())
            if not wanted:
                return

    def _fold(self, node: Any, path: bytes, wanted: set[bytes]) -> Any:
        """Return what a node becomes after its children were folded.

        Where an only child is not in memory, its path is added to what is wanted, and
        the branch stays as it is until the next round.
        """
        kind = type(node)
        if kind is bytes or kind is tuple:
            return node
        if kind is Extension:
            child = self._fold(node[0], path + node.nibbles, wanted)
            return melt(node.nibbles, child)
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
        if type(child) is bytes:
            rlp = self._find(child, child_path)
            if rlp is None:
                wanted.add(child_path)
                return node
            child = self._open_unless_branch(child, rlp, child_path)
        return melt(NIBBLES[nibble], child)

    def _open_unless_branch(self, reference: bytes, rlp: bytes, path: bytes) -> Any:
        """Return an only child, opened if it is going to melt into its parent."""
        near = from_nibbles(path.ljust(64, b"\0"))
        node = decode_node(rlp, len(path), near)
        if type(node) is list:
            return reference
        if len(reference) == HASHED_SIZE:
            self._rows[path] = None
        return node

    # Seal

    def _seal_places(self) -> None:
        """Seal what has been opened, but for the root: the last first.

        So the children of a node are sealed before it, and need not be looked for.
        """
        for holder, index, path in reversed(self._open_places):
            node = holder[index]
            if type(node) is bytes or not path:
                continue
            try:
                holder[index] = self._seal(node, path)
            except TypeError:  # a child is open that is no place: both were grown
                holder[index] = self._seal_all(node, path)

    def _seal_all(self, node: Any, path: bytes) -> bytes:
        """Seal a node and whatever is open below it; return its reference."""
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
        """Encode and hash a node whose children are sealed; return its reference.

        Raises: TypeError when one is not.
        """
        kind = type(node)
        if kind is tuple:
            rlp = leaf_rlp(node, len(path))
        elif kind is list:
            rlp = list_rlp(b"".join(node))
        else:
            rlp = list_rlp(extension_path_rlp(node.nibbles) + node[0])
        if len(rlp) < 32:  # never the root: keys alone are that long
            return rlp
        reference: bytes = hash_reference(rlp)
        self._rows[path] = rlp
        if kind is not tuple:  # leaves are most of all nodes, and can be recalled
            self._cache.young[reference] = rlp
        return reference
