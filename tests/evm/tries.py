"""Tries for tests: rows in a dictionary, and the reference library's trie."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from functools import cache

import rlp
import sha3
from trie import HexaryTrie

from evm.trie import EMPTY_ROOT, PathTrie

OWNER = b"\x11" * 32


class Rows:
    """The rows of one trie in a dictionary, with a count of the queries."""

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes] = {}
        self.questions: list[list[bytes]] = []
        self.asked_below: list[bytes] = []

    def nodes(
        self, owner: bytes, paths: Collection[bytes], likely: Collection[bytes] = ()
    ) -> Mapping[bytes, bytes]:
        assert owner == OWNER
        wanted = {*paths, *likely}
        self.questions.append(sorted(wanted))
        return {path: self.rows[path] for path in wanted if path in self.rows}

    def below(self, owner: bytes, paths: Collection[bytes]) -> list[bytes]:
        assert owner == OWNER
        self.asked_below += paths
        return [
            node
            for path, node in self.rows.items()
            if any(len(path) > len(top) and path.startswith(top) for top in paths)
        ]

    def store(self, trie: PathTrie) -> None:
        for path, node in trie.dirty_nodes().items():
            if node is None:
                self.rows.pop(path, None)
            else:
                self.rows[path] = node
        trie.mark_clean()


def keccak(data: bytes) -> bytes:
    return sha3.keccak_256(data).digest()


def reachable_rows(reference: HexaryTrie) -> dict[bytes, bytes]:
    """Return the rows that a trie must have, found from the reference trie's root."""
    rows: dict[bytes, bytes] = {}

    def walk(item: object, path: bytes) -> None:
        if isinstance(item, bytes):
            if item == b"":
                return
            rows[path] = reference.db[item]
            item = rlp.decode(rows[path])
        if len(item) == 17:
            for nibble in range(16):
                walk(item[nibble], path + bytes([nibble]))
            return
        flags, *digits = item[0].hex()
        if flags in "01":
            skipped = digits if flags == "1" else digits[1:]
            walk(item[1], path + bytes(int(digit, 16) for digit in skipped))

    if reference.root_hash != EMPTY_ROOT:
        walk(reference.root_hash, b"")
    return rows


def reference_of(content: Mapping[bytes, bytes]) -> HexaryTrie:
    reference = HexaryTrie({})
    for key, value in content.items():
        reference[key] = value
    return reference


def grown(count: int, seed: int = 1) -> tuple[Rows, bytes, list[bytes]]:
    """Return rows of their own of a trie of random keys, its root and its keys."""
    stored, root, keys = _grown(count, seed)
    rows = Rows()
    rows.rows = dict(stored)
    return rows, root, list(keys)


@cache
def _grown(count: int, seed: int) -> tuple[dict[bytes, bytes], bytes, list[bytes]]:
    source = random.Random(seed)
    keys = [source.randbytes(32) for _ in range(count)]
    rows = Rows()
    trie = PathTrie(OWNER, rows, None)
    trie.update({key: b"value of " + key for key in keys})
    root = trie.root_hash()
    rows.store(trie)
    return rows.rows, root, keys
