"""A batch of changes that is applied to a trie from the root downwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from evm.trie_nodes import (
    EMPTY,
    Branch,
    Extension,
    Leaf,
    common_prefix_length,
    subtree,
    to_nibbles,
)

Recall: TypeAlias = Callable[[bytes], bytes]
"""Key → its value before a change, or b"" if it is unknown."""

Place: TypeAlias = tuple[Any, int, bytes, int, int]
"""A node to visit: the list that contains it, the index in this list, its path, and the
range of changes below it (first index, end index)."""

Lacking: TypeAlias = tuple[Place, bytes]
"""A place whose visit is blocked, and the path of the node, at or below it, to be read.
"""

LEVELS_AHEAD = 3
"""Levels read together with a missing node. A trie of a thousand keys is read at once.
"""


class Batch(NamedTuple):
    """The changes of an update: three parallel lists, sorted by key.

    leaves: None for a deleted key.
    """

    keys: list[bytes]
    nibbles: list[bytes]
    leaves: list[Leaf | None]
    recall: Recall | None

    def paths_ahead(self, lacking: list[Lacking]) -> set[bytes]:
        """Return the paths of nodes that may exist below missing nodes.

        Superfluous paths in a query cost less than an additional query.
        """
        return {
            self.nibbles[change][: len(path) + ahead]
            for (_, _, _, low, high), path in lacking
            for change in range(low, high)
            for ahead in range(1, LEVELS_AHEAD + 1)
        }

    def enter_extension(self, place: Place, node: Extension) -> Place:
        """Return the child to descend into. Split the extension where paths diverge."""
        holder, index, path, low, high = place
        depth = len(path)
        nibbles = node.nibbles
        shared = min(
            common_prefix_length(nibbles, self.nibbles[i][depth:])
            for i in (low, high - 1)
        )
        if shared == len(nibbles):
            return node, 0, path + nibbles, low, high
        branch: Branch = [EMPTY] * 17
        rest = nibbles[shared + 1 :]
        branch[nibbles[shared]] = Extension(rest, node[0]) if rest else node[0]
        holder[index] = Extension(nibbles[:shared], branch) if shared else branch
        return place

    def grow(self, low: int, high: int, depth: int, old: Leaf | None) -> Any:
        """Return a new subtree with the changes from `low` up to `high`.

        old: the existing leaf at this place, which becomes a part of the subtree, or None.
        """
        entries = [
            (nibbles, leaf)
            for nibbles, leaf in zip(
                self.nibbles[low:high], self.leaves[low:high], strict=True
            )
            if leaf is not None
        ]
        if old is not None and old[0] not in self.keys[low:high]:
            entries.append((to_nibbles(old[0]), old))
            entries.sort()
        return subtree(entries, depth) if entries else EMPTY
