"""Merkle-Patricia tries: proofs of keys, and the roots of lists.

Source: Yellow Paper, appendix D
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import rlp
from sha3 import keccak_256

Path = tuple[int, ...]
"""Nibbles of a key."""


class InvalidProof(ValueError):
    """Raised when nodes do not lead from a root to a key."""


def keccak(data: bytes) -> bytes:
    """Return the Keccak-256 hash of bytes."""
    digest: bytes = keccak_256(data).digest()
    return digest


EMPTY_ROOT = keccak(rlp.encode(b""))
"""The root of a trie without keys."""


def nibbles(data: bytes) -> Path:
    """Return the nibbles of bytes."""
    return tuple(int(digit, 16) for digit in data.hex())


def proven_value(root: bytes, key: bytes, proof: Iterable[bytes]) -> bytes:
    """Return the value of a key, b"" if the proof shows that there is none.

    proof: the RLP of the nodes from the root to the key, all of which are needed.

    Raises: InvalidProof.
    """
    nodes = list(proof)
    if root == EMPTY_ROOT:
        if nodes:
            raise InvalidProof("nodes of an empty trie")
        return b""
    rest = nibbles(key)
    item: Any = root
    """A hash, an embedded node, or b"" for no node."""
    value = b""
    while item:
        if isinstance(item, bytes):
            item = _next_node(nodes, item)
        if len(item) == 17:
            if not rest:
                value = item[16]
                break
            item, rest = item[rest[0]], rest[1:]
            continue
        path, is_leaf = _decoded_path(item[0])
        if is_leaf:
            value = item[1] if path == rest else b""
            break
        item = item[1] if rest[: len(path)] == path else b""
        rest = rest[len(path) :]
    if nodes:
        raise InvalidProof(f"{len(nodes)} nodes beyond the key")
    return value


def _next_node(nodes: list[bytes], expected: bytes) -> list[Any]:
    """Remove and decode the next node, which must have the expected hash."""
    if not nodes:
        raise InvalidProof(f"the node 0x{expected.hex()} is missing")
    node = nodes.pop(0)
    if keccak(node) != expected:
        raise InvalidProof(f"a node does not have the hash 0x{expected.hex()}")
    decoded = rlp.decode(node)
    if not isinstance(decoded, list) or len(decoded) not in (2, 17):
        raise InvalidProof(f"0x{node.hex()} is not a node")
    return decoded


def _decoded_path(encoded: bytes) -> tuple[Path, bool]:
    """Return the nibbles of a hex-prefix path, and whether it is a leaf's."""
    flags, *digits = nibbles(encoded)
    path = tuple(digits) if flags & 1 else tuple(digits[1:])
    return path, bool(flags & 2)


def list_root(values: Sequence[bytes]) -> bytes:
    """Return the root of a list of transactions, receipts or withdrawals."""
    items = sorted((nibbles(rlp.encode(i)), value) for i, value in enumerate(values))
    if not items:
        return EMPTY_ROOT
    return keccak(rlp.encode(_node(items)))


def _node(items: list[tuple[Path, bytes]]) -> list[Any]:
    """Return the node above sorted items (remaining path, value)."""
    if len(items) == 1:
        path, value = items[0]
        return [_encoded_path(path, is_leaf=True), value]
    first, last = items[0][0], items[-1][0]
    shared = 0
    while first[shared] == last[shared]:
        shared += 1
    if shared:
        below = [(path[shared:], value) for path, value in items]
        return [_encoded_path(first[:shared], is_leaf=False), _reference(_node(below))]
    branch: list[Any] = [b""] * 17
    for nibble in {path[0] for path, _ in items}:
        below = [(path[1:], value) for path, value in items if path[0] == nibble]
        branch[nibble] = _reference(_node(below))
    return branch


def _reference(node: list[Any]) -> Any:
    encoded = rlp.encode(node)
    return node if len(encoded) < 32 else keccak(encoded)


def _encoded_path(path: Path, *, is_leaf: bool) -> bytes:
    flags = 2 * is_leaf + len(path) % 2
    digits = (flags, *path) if len(path) % 2 else (flags, 0, *path)
    return bytes.fromhex("".join(f"{digit:x}" for digit in digits))
