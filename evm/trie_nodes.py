"""The nodes of a Merkle-Patricia trie, and their RLP.

A parent refers to a child by its *reference*, here always in the form of the parent's
RLP. It is 33 bytes: `a0` and the Keccak-256 of the child's RLP. If the child's RLP is
shorter than 32 bytes, the reference is the child's RLP itself. `EMPTY` refers to no
child.

Decoded nodes have forms that are cheap to change:

- a branch is a list of 17: sixteen children and `EMPTY` for its value, which is always
  empty here, because no key is a prefix of another;
- an extension is a list of one, the child, with an attribute for its nibbles;
- a leaf is a tuple of its whole key and its value's RLP, so that it can move to
  another depth unchanged.

A child is a reference, or a decoded node whose hash has not been computed yet.
Source: Yellow Paper, appendix D.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import sha3

EMPTY = b"\x80"
"""RLP of the empty string: the reference to no node."""

EMPTY_ROOT: bytes = sha3.keccak_256(EMPTY).digest()
"""The root hash of a trie without keys."""

HASH_HEAD = b"\xa0"
"""RLP prefix of a hash."""

HASHED_SIZE = 33
"""Length in bytes of a reference by hash; every other reference is shorter."""

FULL_BRANCH_SIZE = 3 + 16 * HASHED_SIZE + 1
"""Length in bytes of a branch's RLP with sixteen hashes. No other node has this length.
"""

_BRANCH_SIZE = 2 + 2 * HASHED_SIZE + 15
"""Length in bytes of a branch's RLP with two hashes. Extensions are shorter, because
their path has at most 33 bytes."""

NIBBLES = tuple(bytes([nibble]) for nibble in range(16))
"""Each nibble as a path of length one."""

Leaf: TypeAlias = tuple[bytes, bytes]
Branch: TypeAlias = list[Any]


class Extension(list[Any]):
    """A node with some nibbles and one child, which is a branch."""

    __slots__ = ("nibbles",)

    def __init__(self, nibbles: bytes, child: Any) -> None:
        super().__init__((child,))
        self.nibbles = nibbles


Node: TypeAlias = Branch | Extension | Leaf

# RLP


def _head(size: int, short: int) -> bytes:
    """Return the RLP header of a payload; `short` is 0x80 for strings, 0xc0 for lists."""
    if size < 56:
        return bytes((short + size,))
    digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((short + 55 + len(digits),)) + digits


_LIST_HEADS = tuple(_head(size, 0xC0) for size in range(640))
_PATH_HEADS = (b"", b"", *(_head(size, 0x80) for size in range(2, 56)))
"""RLP headers of hex-prefix paths by length. A single byte is below 0x80 and has no
header."""


def list_rlp(payload: bytes) -> bytes:
    """Return the RLP of a list. payload: the concatenated RLP of its items."""
    size = len(payload)
    if size < 640:  # A branch of sixteen hashes has 529 bytes.
        return _LIST_HEADS[size] + payload
    return _head(size, 0xC0) + payload


def string_rlp(data: bytes) -> bytes:
    """Return the RLP of a byte string."""
    size = len(data)
    if size == 1 and data[0] < 0x80:
        return data
    return _head(size, 0x80) + data


def _item_bounds(rlp: bytes, position: int) -> tuple[int, int]:
    """Return start and end of the payload of the RLP item at a position."""
    first = rlp[position]
    if first < 0x80:
        return position, position + 1
    short = 0x80 if first < 0xC0 else 0xC0
    begin = position + 1
    size = first - short
    if size > 55:
        begin += size - 55
        size = int.from_bytes(rlp[position + 1 : begin], "big")
    return begin, begin + size


def hash_reference(rlp: bytes) -> bytes:
    """Return the reference by hash to a node. rlp: at least 32 bytes."""
    reference: bytes = HASH_HEAD + sha3.keccak_256(rlp).digest()
    return reference


def child_offset(rlp: bytes, nibble: int) -> int | None:
    """Return the offset of a child's reference in the RLP of a branch.

    rlp: of a branch or an extension.

    Return None for an extension, and if the child or one before it is not referred to
    by hash.
    """
    size = len(rlp)
    if size == FULL_BRANCH_SIZE:
        return 3 + HASHED_SIZE * nibble
    if size < _BRANCH_SIZE:
        return None
    at = 2 if rlp[0] == 0xF8 else 3
    for _ in range(nibble):
        first = rlp[at]
        if first == 0xA0:
            at += HASHED_SIZE
        elif first == 0x80:
            at += 1
        else:
            return None
    return at if rlp[at] == 0xA0 else None


# Paths

_HEX_TO_NIBBLE = bytes.maketrans(b"0123456789abcdef", bytes(range(16)))
_NIBBLE_TO_HEX = bytes.maketrans(bytes(range(16)), b"0123456789abcdef")


def to_nibbles(key: bytes) -> bytes:
    """Return the nibbles of a key, one per byte."""
    return key.hex().encode().translate(_HEX_TO_NIBBLE)


def from_nibbles(nibbles: bytes) -> bytes:
    """Pack an even number of nibbles into bytes."""
    return bytes.fromhex(nibbles.translate(_NIBBLE_TO_HEX).decode())


def leaf_path_rlp(key: bytes, depth: int) -> bytes:
    """Return the RLP of a leaf's hex-prefix path: the key's nibbles below a depth.

    key: at most 54 bytes.
    """
    middle = depth >> 1
    if depth & 1:
        path = bytes((0x30 | key[middle] & 0x0F,)) + key[middle + 1 :]
    else:
        path = b"\x20" + key[middle:]
    return _PATH_HEADS[len(path)] + path


def leaf_rlp(leaf: Leaf, depth: int) -> bytes:
    """Return the RLP of a leaf at a depth. At most 54 bytes of its key are below it."""
    return list_rlp(leaf_path_rlp(leaf[0], depth) + leaf[1])


def extension_path_rlp(nibbles: bytes) -> bytes:
    """Return the RLP of an extension's hex-prefix path."""
    flagged = b"\x01" + nibbles if len(nibbles) & 1 else b"\x00\x00" + nibbles
    path = from_nibbles(flagged)
    return _PATH_HEADS[len(path)] + path


def common_prefix_length(a: bytes, b: bytes) -> int:
    """Return the length of the longest common prefix of two strings."""
    length = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        length += 1
    return length


def subtree(entries: list[tuple[bytes, Leaf]], depth: int) -> Any:
    """Return the decoded subtree of one or more sorted leaves that share a path."""
    if len(entries) == 1:
        return entries[0][1]
    first = entries[0][0]
    shared = common_prefix_length(first[depth:], entries[-1][0][depth:])
    fork = depth + shared
    branch: Branch = [EMPTY] * 17
    low = 0
    while low < len(entries):
        nibble = entries[low][0][fork]
        high = low + 1
        while high < len(entries) and entries[high][0][fork] == nibble:
            high += 1
        branch[nibble] = subtree(entries[low:high], fork + 1)
        low = high
    return Extension(first[depth:fork], branch) if shared else branch


def merge_path(nibbles: bytes, child: Any) -> Any:
    """Merge nibbles with the folded child below them into one node."""
    kind = type(child)
    if kind is tuple or (kind is bytes and child == EMPTY):
        return child
    if kind is Extension:
        return Extension(nibbles + child.nibbles, child[0])
    return Extension(nibbles, child)


# Decoding

# The first byte of an item determines its length. Therefore only a branch, a list of
# seventeen references, matches.
_match_branch = re.compile(rb"(\x80|\xa0.{32})" * 16 + rb"(\x80)", re.DOTALL).fullmatch


def branch_children(rlp: bytes) -> tuple[bytes, ...] | None:
    """Return the references of a branch that embeds no child, and its empty value.

    None for any other node.
    """
    match = _match_branch(rlp, 1 if rlp[0] < 0xF8 else rlp[0] - 0xF6)
    return None if match is None else match.groups()


def is_inner(rlp: bytes) -> bool:
    """Return whether a node is a branch or an extension. False for a malformed node.

    Leaves and extensions have two items. A flag in the path tells them apart.
    """
    try:
        start = 1 if rlp[0] < 0xF8 else rlp[0] - 0xF6
        path, second = _item_bounds(rlp, start)
        return _item_bounds(rlp, second)[1] != len(rlp) or rlp[path] < 0x20
    except IndexError:
        return False


def decode_node(rlp: bytes, depth: int, near: bytes) -> Node:
    """Decode a node at a depth of a trie with keys of 32 bytes.

    near: any key that begins with the node's path.
    """
    found = branch_children(rlp)
    if found is not None:
        return list(found)
    start = 1 if rlp[0] < 0xF8 else rlp[0] - 0xF6
    path_start, path_end = _item_bounds(rlp, start)
    if rlp[start] < 0xC0 and path_end > path_start:
        value_end = _item_bounds(rlp, path_end)[1]
        if value_end == len(rlp):
            path = rlp[path_start:path_end]
            return _decode_short(path, rlp[path_end:], depth, near)
    children = []
    while start < len(rlp):
        end = _item_bounds(rlp, start)[1]
        children.append(rlp[start:end])
        start = end
    return children


def _decode_short(path: bytes, item: bytes, depth: int, near: bytes) -> Node:
    """Decode an extension or a leaf from its hex-prefix path and its second item."""
    flags = path[0]
    if flags < 0x20:
        nibbles = to_nibbles(path)
        return Extension(nibbles[1:] if flags & 0x10 else nibbles[2:], item)
    middle = depth >> 1
    if depth & 1:
        shared = bytes((near[middle] & 0xF0 | flags & 0x0F,))
        return near[:middle] + shared + path[1:], item
    return near[:middle] + path[1:], item
