"""A batch of changes on its way down a trie: where it goes on, and what grows of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from nodeapi.evm.trie_nodes import (
    EMPTY,
    Branch,
    Extension,
    Leaf,
    common_prefix_length,
    subtree,
    to_nibbles,
)

Recall: TypeAlias = Callable[[bytes], bytes]
"""Key → the value that it had before a change, empty when that is not known."""

Place: TypeAlias = tuple[Any, int, bytes, int, int]
"""A node to be visited: the list it stands in and its index there, its path, and the
first and past-the-last of the changes below it."""

Lacking: TypeAlias = tuple[Place, bytes]
"""A place that can't be gone on from yet, and the path at or below it that has to be read."""

_LEVELS_AHEAD = 3
"""Levels read with a missing node: a trie of a thousand keys comes in one question."""


class Batch(NamedTuple):
    """The changes of an update: three lists side by side, sorted by key.

    leaves: None for a key that is deleted.
    """

    keys: list[bytes]
    nibbles: list[bytes]
    leaves: list[Leaf | None]
    recall: Recall | None

    def paths_ahead(self, lacking: list[Lacking]) -> set[bytes]:
        """Return the paths where nodes below those to be read may be, if they exist.

        A question with paths too many is cheaper than a question more.
        """
        return {
            self.nibbles[change][: len(path) + ahead]
            for (_, _, _, low, high), path in lacking
            for change in range(low, high)
            for ahead in range(1, _LEVELS_AHEAD + 1)
        }

    def enter_extension(self, place: Place, node: Extension) -> Place:
        """Return where changes go on at an extension, splitting it if they part."""
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
        """Return a new subtree of changes, and of the leaf that stood in its place."""
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
