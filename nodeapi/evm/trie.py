"""The Merkle trie that proves state roots, its nodes addressed by their path.

A trie here is "secure": its keys are hashes, all of 32 bytes. The nodes come from rows
`path → RLP` and go back to them, a changed node replacing the one in its place. An
update runs in three steps over nodes in memory:

1. descend: the changes go down together, level by level, opening (decoding) the nodes
   on their way; what memory lacks is asked of the reader in one question per level;
2. fold: where something was deleted, branches left with one child melt into it;
3. seal: the open nodes are encoded and hashed, children first, each once.

Opening a node notes that its row goes; sealing one notes the row that comes. So the
rows are right whatever happened to the shape between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from sha3 import keccak_256

from nodeapi.evm.trie_nodes import (
    EMPTY,
    EMPTY_ROOT,
    HASH_HEAD,
    HASHED_SIZE,
    NIBBLES,
    Branch,
    Extension,
    Leaf,
    Node,
    common_prefix_length,
    decode_node,
    extension_path_rlp,
    from_nibbles,
    leaf_path_rlp,
    list_rlp,
    string_rlp,
    subtree,
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


Recall: TypeAlias = Callable[[bytes], bytes]
"""Key → the value that it had before a change, empty when that is not known."""


class _Changes(NamedTuple):
    """The changes of an update: three lists side by side, sorted by key.

    leaves: None for a key that is deleted.
    """

    keys: list[bytes]
    nibbles: list[bytes]
    leaves: list[Leaf | None]
    recall: Recall | None


_Place: TypeAlias = tuple[Any, int, bytes, int, int]
"""A node to be visited: the list it stands in and its index there, its path, and the
first and past-the-last of the changes below it."""


_LEVELS_AHEAD = 3
"""Levels read with a missing node: a trie of a thousand keys comes in one question."""


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
        batch = _Changes(keys, [to_nibbles(key) for key in keys], leaves, recall)
        if None in leaves:
            self._shrunk = True
        places: list[_Place] = [(self._top, 0, b"", 0, len(keys))] if keys else []
        # Below the first node that is missing there mostly is a leaf to be recalled.
        looks_ahead = recall is None
        while places:
            places = self._descend(places, batch)
            likely = _paths_ahead(places, batch.nibbles) if looks_ahead else ()
            self._load({place[2] for place in places}, likely)
            looks_ahead = True

    def root_hash(self) -> bytes:
        """Return the root hash as of the last update."""
        if type(self._top[0]) is not bytes:
            if self._shrunk:
                self._fold_all()
            self._top[0] = self._seal(self._top[0], b"")
            self._cache.age()
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

    # Descend

    def _descend(self, places: list[_Place], batch: _Changes) -> list[_Place]:
        """Bring changes down as far as memory goes; return the places it lacks."""
        keys, nibbles, leaves, recall = batch
        missing = []
        while places:
            place = places.pop()
            holder, index, path, low, high = place
            node = holder[index]
            depth = len(path)
            if type(node) is bytes:
                if node == EMPTY:
                    holder[index] = _grow(batch, low, high, depth, None)
                    continue
                reference = node
                node = self._open(reference, path, keys[low])
                if node is None and recall is not None and high - low == 1:
                    node = self._recall_leaf(reference, path, keys[low], recall)
                if node is None:
                    missing.append(place)
                    continue
                holder[index] = node
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
                    holder[index] = _grow(batch, low, high, depth, node)
            else:
                places.append(_enter_extension(place, node, batch))
        return missing

    def _open(self, reference: bytes, path: bytes, near: bytes) -> Node | None:
        """Take a node out of its row and decode it, None where it has to be read."""
        rlp = self._find(reference, path)
        if rlp is None:
            return None
        if len(reference) == HASHED_SIZE:
            self._rows[path] = None
            self._cache.young.pop(reference, None)
        return decode_node(rlp, len(path), near)

    def _recall_leaf(
        self, reference: bytes, path: bytes, key: bytes, recall: Recall
    ) -> Leaf | None:
        """Return the leaf of a key, made of the value that it had, if it stands here."""
        value = recall(key)
        if not value:
            return None
        leaf = (key, string_rlp(value))
        if HASH_HEAD + keccak_256(_leaf_rlp(leaf, len(path))).digest() != reference:
            return None  # a node further up, or what is remembered is wrong
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
            return _melt(node.nibbles, child)
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
        return _melt(NIBBLES[nibble], child)

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

    def _seal(self, node: Any, path: bytes) -> bytes:
        """Encode and hash an open node after its open children; return its reference."""
        kind = type(node)
        if kind is tuple:
            rlp = _leaf_rlp(node, len(path))
        elif kind is list:
            for nibble, child in enumerate(node):
                if type(child) is not bytes:
                    node[nibble] = self._seal(child, path + NIBBLES[nibble])
            rlp = list_rlp(b"".join(node))
        elif kind is Extension:
            child = self._seal(node[0], path + node.nibbles)
            rlp = list_rlp(extension_path_rlp(node.nibbles) + child)
        else:
            sealed: bytes = node
            return sealed
        if len(rlp) < 32:  # never the root: keys alone are that long
            return rlp
        reference: bytes = HASH_HEAD + keccak_256(rlp).digest()
        self._rows[path] = rlp
        if kind is not tuple:  # leaves are most of all nodes, and can be recalled
            self._cache.young[reference] = rlp
        return reference


def _leaf_rlp(leaf: Leaf, depth: int) -> bytes:
    return list_rlp(leaf_path_rlp(leaf[0], depth) + leaf[1])


def _paths_ahead(places: list[_Place], nibbles: list[bytes]) -> set[bytes]:
    """Return the paths where the nodes below some places may be, if they exist.

    A question with paths too many is cheaper than a question more.
    """
    return {
        nibbles[change][: len(path) + ahead]
        for _, _, path, low, high in places
        for change in range(low, high)
        for ahead in range(1, _LEVELS_AHEAD + 1)
    }


def _melt(nibbles: bytes, child: Any) -> Any:
    """Return the node that stands for nibbles with one folded child below them."""
    kind = type(child)
    if kind is tuple or (kind is bytes and child == EMPTY):
        return child
    if kind is Extension:
        return Extension(nibbles + child.nibbles, child[0])
    return Extension(nibbles, child)


def _enter_extension(place: _Place, node: Extension, batch: _Changes) -> _Place:
    """Return where changes go on at an extension, splitting it if they part from it."""
    holder, index, path, low, high = place
    depth = len(path)
    nibbles = node.nibbles
    shared = min(
        common_prefix_length(nibbles, batch.nibbles[i][depth:]) for i in (low, high - 1)
    )
    if shared == len(nibbles):
        return node, 0, path + nibbles, low, high
    branch: Branch = [EMPTY] * 17
    rest = nibbles[shared + 1 :]
    branch[nibbles[shared]] = Extension(rest, node[0]) if rest else node[0]
    holder[index] = Extension(nibbles[:shared], branch) if shared else branch
    return place


def _grow(batch: _Changes, low: int, high: int, depth: int, old: Leaf | None) -> Any:
    """Return a new subtree of changes, and of the leaf that stood in its place."""
    entries = [
        (nibbles, leaf)
        for nibbles, leaf in zip(
            batch.nibbles[low:high], batch.leaves[low:high], strict=True
        )
        if leaf is not None
    ]
    if old is not None and old[0] not in batch.keys[low:high]:
        entries.append((to_nibbles(old[0]), old))
        entries.sort()
    return subtree(entries, depth) if entries else EMPTY
