"""Roots of tries that are not stored, computed in one pass over sorted keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sha3

from evm.trie_nodes import (
    EMPTY,
    EMPTY_ROOT,
    HASH_HEAD,
    common_prefix_length,
    extension_path_rlp,
    leaf_path_rlp,
    list_rlp,
    string_rlp,
    to_nibbles,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def ordered_root(values: Sequence[bytes]) -> bytes:
    """Return the root of a list of transactions, receipts or withdrawals.

    The key of a value is the RLP of its index.
    """
    return build_root((string_rlp(_digits(i)), values[i]) for i in _order(len(values)))


def _digits(index: int) -> bytes:
    return index.to_bytes((index.bit_length() + 7) // 8, "big")


def _order(count: int) -> Iterator[int]:
    """Yield the indexes below a count in the order of their RLP (0 is 0x80)."""
    yield from range(1, min(count, 128))
    if count:
        yield 0
    yield from range(128, count)


def build_root(items: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the root of a trie from its items (key, value) in ascending order of keys.

    Memory use is bounded by the depth of the trie. Only the branches between the root and
    the newest key are open at any time.

    items: no key is a prefix of another one. Keys have at most 54 bytes. Values are not
        empty.

    Raises: ValueError if keys do not ascend, or if one is a prefix of the next.
    """
    stack = _OpenBranches()
    iterator = iter(items)
    item = next(iterator, None)
    if item is None:
        return EMPTY_ROOT
    key, value = item
    nibbles = to_nibbles(key)
    for next_key, next_value in iterator:
        next_nibbles = to_nibbles(next_key)
        fork = common_prefix_length(nibbles, next_nibbles)
        if next_key <= key or fork == len(nibbles):
            raise ValueError(f"key 0x{next_key.hex()} does not follow 0x{key.hex()}")
        stack.add_leaf(key, nibbles, value, fork)
        stack.close_below(fork, nibbles)
        key, value, nibbles = next_key, next_value, next_nibbles
    return stack.finish(key, nibbles, value)


def _reference(node: bytes) -> bytes:
    """Return the reference to a node from its RLP."""
    return node if len(node) < 32 else HASH_HEAD + sha3.keccak_256(node).digest()


def _leaf(key: bytes, depth: int, value: bytes) -> bytes:
    return list_rlp(leaf_path_rlp(key, depth) + string_rlp(value))


class _OpenBranches:
    """The branches on the path to the newest key, which may still receive children."""

    def __init__(self) -> None:
        self._depths: list[int] = [-1]  # -1 is the depth of the root's parent
        self._children: list[list[bytes]] = []

    def _open(self, depth: int) -> None:
        self._depths.append(depth)
        self._children.append([EMPTY] * 17)

    def add_leaf(self, key: bytes, nibbles: bytes, value: bytes, fork: int) -> None:
        """Add a leaf. fork: the depth at which the next key diverges from its key."""
        if self._depths[-1] < fork:
            self._open(fork)
        depth = self._depths[-1]
        node = _leaf(key, depth + 1, value)
        self._children[-1][nibbles[depth]] = _reference(node)

    def close_below(self, fork: int, nibbles: bytes) -> None:
        """Close the branches below the depth at which the next key diverges."""
        while self._depths[-1] > fork:
            parent = self._depths[-2]
            if parent < fork:
                parent = fork
            node = self._close(parent + 1, nibbles)
            if self._depths[-1] < parent:
                self._open(parent)
            self._children[-1][nibbles[parent]] = _reference(node)

    def finish(self, key: bytes, nibbles: bytes, value: bytes) -> bytes:
        """Add the last leaf, close all branches and return the root hash."""
        depth = self._depths[-1]
        if depth < 0:
            root = _leaf(key, 0, value)
        else:
            node = _leaf(key, depth + 1, value)
            self._children[-1][nibbles[depth]] = _reference(node)
            self.close_below(self._depths[1], nibbles)
            root = self._close(0, nibbles)
        digest: bytes = sha3.keccak_256(root).digest()
        return digest

    def _close(self, depth: int, nibbles: bytes) -> bytes:
        """Close the deepest branch.

        Return its node, or an extension to it, at a depth.
        """
        below = self._depths.pop()
        node = list_rlp(b"".join(self._children.pop()))
        if below == depth:
            return node
        path = extension_path_rlp(nibbles[depth:below])
        return list_rlp(path + _reference(node))
