"""Access to stored trie nodes: the interface of the rows' reader, and a cache."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from evm.trie_nodes import HASHED_SIZE, child_offset, hash_reference, is_inner

if TYPE_CHECKING:
    from collections.abc import Mapping


class NodeReader(Protocol):
    """Reader of stored trie nodes."""

    def nodes(
        self, owner: bytes, paths: Collection[bytes], likely: Collection[bytes] = ()
    ) -> Mapping[bytes, bytes]:
        """Return path → RLP of the existing nodes. Paths have one nibble per byte.

        paths: of nodes that exist, because others refer to them. likely: of nodes that
            may exist.
        """


UNREAD_BRANCH = b""
"""What a reader returns for a node that is known to be a branch, but not its content. Only a
deletion can do with that: the only child that remains is merged unless it is a branch."""

NodesBelow: TypeAlias = Callable[[bytes, Collection[bytes]], Iterable[bytes]]
"""(owner, paths) → RLP of the nodes below these paths, with a limit."""


class TrieNodeError(Exception):
    """Raised when the stored nodes of a trie are inconsistent."""

    def __init__(self, owner: bytes, path: bytes) -> None:
        super().__init__(owner, path)
        self.owner = owner
        self.path = path

    def _place(self) -> str:
        trie = f"storage trie 0x{self.owner.hex()}" if self.owner else "state trie"
        return f"node {self.path.hex()[1::2] or 'root'} of the {trie}"


class MissingTrieNode(TrieNodeError):
    """Raised when a node that its parent refers to is not stored."""

    def __str__(self) -> str:
        return f"{self._place()} is missing"


class CorruptTrieNode(TrieNodeError):
    """Raised when a stored node does not match its parent's reference."""

    def __str__(self) -> str:
        return f"{self._place()} does not have the hash its parent names"


class NodeCache:
    """Encoded nodes by reference, for all tries of a network.

    References contain hashes, so entries never become stale. An eviction only costs a
    read. Two generations approximate LRU order: nodes move to the young generation when
    used. When it holds half of the limit, it becomes the old generation.

    The nodes of one update may exceed the limit. Each trie also holds its own unwritten
    nodes.
    """

    def __init__(self, max_nodes: int, read_below: NodesBelow | None = None) -> None:
        """Create an empty cache. read_below: reads nodes that may be needed later."""
        self._half = max_nodes // 2
        self._read_below = read_below
        self.young: dict[bytes, bytes] = {}
        self.old: dict[bytes, bytes] = {}

    def __len__(self) -> int:
        return len(self.young) + len(self.old)

    def keep_around(
        self, owner: bytes, nodes: Mapping[bytes, bytes], missed: Iterable[bytes]
    ) -> None:
        """Cache the nodes read for a trie, and read neighbours of missing branches.

        nodes: path → RLP. missed: the paths at which a node was needed.

        A query costs more than a few dozen rows in its result. A trie that fits is
        therefore soon cached completely except for its leaves. A larger trie fills half
        of the cache this way, once.
        """
        self._keep(nodes.values())
        if self._read_below is not None and len(self) < self._half:
            parents = {path[:-1] for path in missed if is_inner(nodes[path])}
            if parents:
                self._keep(self._read_below(owner, parents))

    def _keep(self, nodes: Iterable[bytes]) -> None:
        """Cache all nodes except leaves, which `follow` might mistake for branches."""
        for rlp in nodes:
            if is_inner(rlp):
                self.young[hash_reference(rlp)] = rlp

    def follow(
        self, reference: bytes, nibbles: bytes, depth: int
    ) -> tuple[list[tuple[bytes, bytes, int]], bytes] | None:
        """Descend from a node through cached branches, as far as possible.

        nibbles: the nibbles of the key to look up. depth: number of nibbles above the
            node.

        Returns: for each branch its reference, its RLP and the offset of the next
            node's reference in it; and the last branch's reference to the next node.
            None if a node is not a branch, or if a child is not referred to by hash.
        """
        young, old = self.young, self.old
        spine = []
        while (rlp := young.get(reference) or old.get(reference)) is not None:
            at = child_offset(rlp, nibbles[depth])
            if at is None:
                return None
            spine.append((reference, rlp, at))
            reference = rlp[at : at + HASHED_SIZE]
            depth += 1
        return spine, reference

    def age(self) -> None:
        """Evict the nodes that were not used recently, if there are too many."""
        if len(self.young) > self._half:
            self.old = self.young
            self.young = {}
