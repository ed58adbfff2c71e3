"""Where the nodes of tries stand: in rows, read when missing, and in a shared cache."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from nodeapi.evm.trie_nodes import HASHED_SIZE, child_offset, hash_reference, is_inner

if TYPE_CHECKING:
    from collections.abc import Mapping


class NodeReader(Protocol):
    """Where the nodes of tries are kept."""

    def nodes(self, owner: bytes, paths: Collection[bytes]) -> Mapping[bytes, bytes]:
        """Return path → RLP of the nodes that exist; a path has one nibble a byte."""


NodesBelow: TypeAlias = Callable[[bytes, Collection[bytes]], Iterable[bytes]]
"""Owner, paths → RLP of the nodes that stand below; of very many only some."""


class TrieNodeError(Exception):
    """Raised when the rows of a trie do not add up to its root."""

    def __init__(self, owner: bytes, path: bytes) -> None:
        super().__init__(owner, path)
        self.owner = owner
        self.path = path

    def _place(self) -> str:
        trie = f"storage trie 0x{self.owner.hex()}" if self.owner else "state trie"
        return f"node {self.path.hex()[1::2] or 'root'} of the {trie}"


class MissingTrieNode(TrieNodeError):
    """Raised when a node that its parent refers to is not there."""

    def __str__(self) -> str:
        return f"{self._place()} is missing"


class CorruptTrieNode(TrieNodeError):
    """Raised when a node is not the one that its parent refers to."""

    def __str__(self) -> str:
        return f"{self._place()} does not have the hash its parent names"


class NodeCache:
    """Encoded nodes by reference, for all tries of a network.

    A reference contains the hash, so what is found here can't be out of date, and
    losing it costs only reads. Two generations stand in for an order of use: nodes in
    use move to the young one, which becomes the old one when it is half of the whole.
    The nodes of one update may stand above the limit; those to be written to rows are
    kept by their trie besides.
    """

    def __init__(self, max_nodes: int, read_below: NodesBelow | None = None) -> None:
        """Be empty; read_below: where nodes are read that may be needed later."""
        self._half = max_nodes // 2
        self._read_below = read_below
        self.young: dict[bytes, bytes] = {}
        self.old: dict[bytes, bytes] = {}

    def __len__(self) -> int:
        return len(self.young) + len(self.old)

    def keep_around(
        self, owner: bytes, nodes: Mapping[bytes, bytes], missed: Iterable[bytes]
    ) -> None:
        """Keep what was read of a trie, and the neighbours of inner nodes it lacked.

        nodes: by path; missed: those of the paths where a node was needed.
        A question costs more than a few dozen rows in its answer. So a trie that fits
        is soon here as a whole, and is asked for no more than its leaves; a larger one
        fills half of the cache so, once.
        """
        self._keep(nodes.values())
        if self._read_below is not None and len(self) < self._half:
            parents = {path[:-1] for path in missed if is_inner(nodes[path])}
            if parents:
                self._keep(self._read_below(owner, parents))

    def _keep(self, nodes: Iterable[bytes]) -> None:
        """Keep all but leaves, one of which `follow` could take for a branch."""
        for rlp in nodes:
            if is_inner(rlp):
                self.young[hash_reference(rlp)] = rlp

    def follow(
        self, reference: bytes, nibbles: bytes, depth: int
    ) -> tuple[list[tuple[bytes, bytes, int]], bytes] | None:
        """Go down from a node through branches, as far as they are here.

        nibbles: of the key that is looked for; depth: how many lie above the node.
        Returns for each branch its reference, its RLP and where in it the reference to
        the next node begins, and the reference that the last one has. None where a node
        is no branch, or its child is not referred to by hash.
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
        """Let the nodes go that were not used lately, if there are too many."""
        if len(self.young) > self._half:
            self.old = self.young
            self.young = {}
