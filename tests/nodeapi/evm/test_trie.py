"""The trie against the reference library, and against its own rows."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping

import pytest
import rlp
import sha3
from hypothesis import given, settings
from hypothesis import strategies as st
from trie import HexaryTrie

from nodeapi.evm.trie import (
    EMPTY_ROOT,
    CorruptTrieNode,
    MissingTrieNode,
    NodeCache,
    PathTrie,
)
from nodeapi.evm.trie_nodes import is_leaf

OWNER = b"\x11" * 32


class Rows:
    """Rows of one trie in a dictionary; counts the questions it is asked."""

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes] = {}
        self.questions: list[list[bytes]] = []
        self.asked_below: list[bytes] = []

    def nodes(self, owner: bytes, paths: Collection[bytes]) -> Mapping[bytes, bytes]:
        assert owner == OWNER
        self.questions.append(sorted(paths))
        return {path: self.rows[path] for path in paths if path in self.rows}

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


def from_nibbles(nibbles: list[int]) -> bytes:
    return bytes.fromhex("".join(f"{nibble:x}" for nibble in nibbles))


def reachable_rows(reference: HexaryTrie) -> dict[bytes, bytes]:
    """Return the rows that a trie must have, walked from the reference's root."""
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


# Keys that share long prefixes, part at any depth, or differ in the last nibble.
_tails = st.lists(st.integers(0, 2), min_size=3, max_size=3)
_crafted_keys = st.builds(
    lambda depth, tail, fill: from_nibbles(([fill] * depth + tail + [1] * 64)[:64]),
    st.sampled_from([0, 1, 2, 3, 7, 30, 60, 61, 62, 63]),
    _tails,
    st.integers(0, 1),
)
_hashed_keys = st.integers(0, 60).map(lambda n: keccak(bytes([n])))
_keys = st.one_of(_crafted_keys, _hashed_keys)
_values = st.one_of(
    st.just(b""),
    st.just(b"\x01"),
    st.binary(min_size=1, max_size=3),
    st.binary(min_size=25, max_size=80),
    st.integers(1, 3).map(lambda n: bytes([n]) * 700),
)
_batches = st.lists(
    st.tuples(
        st.dictionaries(_keys, _values, max_size=25),
        st.sampled_from(["update", "root", "store", "reopen"]),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=200, deadline=None)
@given(
    batches=_batches,
    cache_size=st.sampled_from([None, 0, 4, 1000]),
    remembered=st.sampled_from(["nothing", "all", "what was stored"]),
)
def test_any_sequence_of_batches_gives_the_root_and_rows_of_the_reference(
    batches, cache_size, remembered
):
    cache = None if cache_size is None else NodeCache(cache_size)
    rows = Rows()
    reference = HexaryTrie({})
    trie = PathTrie(OWNER, rows, None, cache)
    content: dict[bytes, bytes] = {}
    stored: dict[bytes, bytes] = {}
    memory = {"nothing": {}, "all": content, "what was stored": stored}[remembered]
    for changes, then in batches:
        trie.update(changes, lambda key: memory.get(key, b""))
        content.update(changes)
        for key, value in changes.items():
            if value:
                reference[key] = value
            else:
                reference.delete(key)
        if then == "update":
            continue
        assert trie.root_hash() == reference.root_hash
        if then in ("store", "reopen"):
            rows.store(trie)
            stored.update(content)
            assert rows.rows == reachable_rows(reference)
        if then == "reopen":
            trie = PathTrie(OWNER, rows, reference.root_hash, cache)
    rows.store(trie)
    assert trie.root_hash() == reference.root_hash
    assert rows.rows == reachable_rows(reference)


@settings(max_examples=100, deadline=None)
@given(
    content=st.dictionaries(_keys, _values.filter(bool), max_size=30),
    changes=st.dictionaries(_keys, _values, max_size=30),
)
def test_writing_the_old_values_back_restores_every_row(content, changes):
    rows = Rows()
    trie = PathTrie(OWNER, rows, None)
    trie.update(content)
    rows.store(trie)
    before, root = dict(rows.rows), trie.root_hash()
    trie.update(changes)
    trie.root_hash()
    trie.update({key: content.get(key, b"") for key in changes})
    assert trie.root_hash() == root
    rows.store(trie)
    assert rows.rows == before


def grown(count: int, seed: int = 1) -> tuple[Rows, bytes, list[bytes]]:
    source = random.Random(seed)
    keys = [source.randbytes(32) for _ in range(count)]
    rows = Rows()
    trie = PathTrie(OWNER, rows, None)
    trie.update({key: b"value of " + key for key in keys})
    root = trie.root_hash()
    rows.store(trie)
    return rows, root, keys


def test_a_thousand_random_keys_survive_batches_of_changes():
    rows, root, keys = grown(1000)
    content = {key: b"value of " + key for key in keys}
    cache = NodeCache(10_000)
    source = random.Random(2)
    for _ in range(10):
        changes = {key: source.randbytes(70) for key in source.sample(keys, 60)}
        changes |= dict.fromkeys(source.sample(keys, 60), b"")
        changes |= {source.randbytes(32): b"new" for _ in range(30)}
        content = {k: v for k, v in (content | changes).items() if v}
        trie = PathTrie(OWNER, rows, root, cache)
        trie.update(changes)
        root = trie.root_hash()
        rows.store(trie)
    reference = reference_of(content)
    assert root == reference.root_hash
    assert rows.rows == reachable_rows(reference)


def test_an_empty_trie_has_the_empty_root_and_no_rows():
    rows = Rows()
    for root in (None, EMPTY_ROOT):
        trie = PathTrie(OWNER, rows, root)
        trie.update({})
        trie.update({keccak(b"absent"): b""})
        assert trie.root_hash() == EMPTY_ROOT == HexaryTrie({}).root_hash
        assert not any(trie.dirty_nodes().values())
    assert rows.questions == []


def test_deleting_the_last_key_removes_the_root_row():
    rows, root, keys = grown(1)
    assert list(rows.rows) == [b""]
    trie = PathTrie(OWNER, rows, root)
    trie.update({keys[0]: b""})
    assert trie.root_hash() == EMPTY_ROOT
    assert trie.dirty_nodes() == {b"": None}


def test_nodes_inside_their_parent_have_no_row_and_change_all_the_same():
    rows = Rows()
    keys = [b"\xaa" * 31 + bytes([last]) for last in (1, 2)]
    trie = PathTrie(OWNER, rows, None)
    trie.update(dict.fromkeys(keys, b"\x01"))
    rows.store(trie)
    # The extension is long and holds the branch, which holds both leaves.
    assert list(rows.rows) == [b""]
    again = PathTrie(OWNER, rows, trie.root_hash())
    again.update({keys[0]: b"\x02"})
    expected = reference_of({keys[0]: b"\x02", keys[1]: b"\x01"})
    assert again.root_hash() == expected.root_hash


def test_a_cold_update_asks_few_questions_and_for_no_node_twice():
    rows, root, keys = grown(3000)
    trie = PathTrie(OWNER, rows, root)
    trie.update(dict.fromkeys(keys[:300], b"changed"))
    trie.root_hash()
    asked = [path for paths in rows.questions for path in paths]
    assert len(rows.questions) <= 2
    assert len(asked) == len(set(asked))


def test_collapsing_branches_ask_for_all_their_siblings_at_once():
    rows, root, keys = grown(3000)
    trie = PathTrie(OWNER, rows, root)
    trie.update(dict.fromkeys(keys[:600], b""))
    descending = len(rows.questions)
    trie.root_hash()
    assert 1 <= len(rows.questions) - descending <= 2
    assert len(rows.questions[-1]) > 10


def test_values_that_are_known_are_changed_without_a_look_at_their_leaves():
    rows, root, keys = grown(3000)
    content = {key: b"value of " + key for key in keys}
    cache = NodeCache(10_000)
    warm = PathTrie(OWNER, rows, root, cache)
    warm.update(content)  # which changes nothing, and fills the cache
    assert warm.root_hash() == root
    rows.store(warm)
    rows.questions.clear()
    source = random.Random(4)
    for _ in range(5):
        changes = {key: source.randbytes(40) for key in source.sample(keys, 60)}
        trie = PathTrie(OWNER, rows, root, cache)
        trie.update(changes, content.__getitem__)
        root = trie.root_hash()
        rows.store(trie)
        content |= changes
    assert rows.questions == []
    reference = reference_of(content)
    assert root == reference.root_hash
    assert rows.rows == reachable_rows(reference)


@pytest.mark.parametrize("count", [1, 60])
def test_known_values_are_changed_below_nodes_that_have_to_be_read(count):
    rows, root, keys = grown(3000)
    content = {key: b"value of " + key for key in keys}
    cache = NodeCache(10_000)
    source = random.Random(5)
    for _ in range(5):
        rows.questions.clear()
        changes = {key: source.randbytes(40) for key in source.sample(keys, count)}
        trie = PathTrie(OWNER, rows, root, cache)
        trie.update(changes, content.__getitem__)
        root = trie.root_hash()
        assert len(rows.questions) <= 2
        rows.store(trie)
        content |= changes
    reference = reference_of(content)
    assert root == reference.root_hash
    assert rows.rows == reachable_rows(reference)


def test_a_warm_update_asks_nothing():
    rows, root, keys = grown(500)
    cache = NodeCache(10_000)
    changes = [{key: bytes([n]) * 40 for key in keys[:100]} for n in (1, 2)]
    first = PathTrie(OWNER, rows, root, cache)
    first.update(changes[0])
    root = first.root_hash()
    rows.store(first)
    rows.questions.clear()
    second = PathTrie(OWNER, rows, root, cache)
    second.update(changes[1], changes[0].__getitem__)
    root = second.root_hash()
    assert rows.questions == []
    # What is remembered wrongly is read instead.
    rows.store(second)
    third = PathTrie(OWNER, rows, root, cache)
    third.update(changes[0], lambda key: b"something else")
    assert third.root_hash() == first.root_hash()
    assert rows.questions != []


def test_nodes_not_yet_stored_are_not_asked_of_the_reader():
    rows = Rows()
    trie = PathTrie(OWNER, rows, None)
    keys = [keccak(bytes([n])) for n in range(100)]
    for n in range(3):
        trie.update({key: bytes([n + 1]) * 40 for key in keys})
        trie.root_hash()
    assert rows.questions == []


def test_a_trie_given_up_leaves_no_trace_in_the_shared_cache():
    rows, root, keys = grown(300)
    cache = NodeCache(10_000)
    abandoned = PathTrie(OWNER, rows, root, cache)
    abandoned.update(dict.fromkeys(keys[:50], b"of a block that is not valid"))
    abandoned.root_hash()
    trie = PathTrie(OWNER, rows, root, cache)
    trie.update({keys[0]: b"good"})
    expected = reference_of(
        {key: b"value of " + key for key in keys} | {keys[0]: b"good"}
    )
    assert trie.root_hash() == expected.root_hash


def test_a_trie_that_fits_into_the_cache_is_soon_asked_for_nothing_but_leaves():
    rows, root, keys = grown(3000)
    content = {key: b"value of " + key for key in keys}
    cache = NodeCache(10_000, rows.below)
    source = random.Random(6)

    def change(count: int, *, knows: bool = True) -> bytes:
        changes = {key: source.randbytes(40) for key in source.sample(keys, count)}
        trie = PathTrie(OWNER, rows, root, cache)
        trie.update(changes, content.__getitem__ if knows else None)
        moved = trie.root_hash()
        rows.store(trie)
        content.update(changes)
        return moved

    root = change(1)
    assert rows.asked_below == [b""]
    rows.questions.clear()
    root = change(3000)
    assert rows.questions == []
    root = change(10, knows=False)
    asked = {path for paths in rows.questions for path in paths if path in rows.rows}
    assert len(asked) >= 10 and all(is_leaf(rows.rows[path]) for path in asked)
    assert rows.asked_below == [b""], "what was lacked were leaves"
    reference = reference_of(content)
    assert root == reference.root_hash
    assert rows.rows == reachable_rows(reference)


def test_a_trie_that_does_not_fit_is_read_as_it_is_needed():
    rows, root, keys = grown(3000)
    cache = NodeCache(600, rows.below)
    for n in range(20):
        trie = PathTrie(OWNER, rows, root, cache)
        trie.update(dict.fromkeys(keys[n * 50 : n * 50 + 50], b"x"))
        trie.root_hash()
    assert len(rows.questions) >= 20
    assert rows.asked_below == [b""]
    # Neighbours come once, and stay no longer than others.
    assert len(cache) <= 600 + 400


def test_the_cache_keeps_to_its_size_and_the_nodes_in_use():
    rows, root, keys = grown(2000)
    cache = NodeCache(600)
    source = random.Random(3)
    for _ in range(20):
        trie = PathTrie(OWNER, rows, root, cache)
        trie.update({key: source.randbytes(40) for key in source.sample(keys, 30)})
        root = trie.root_hash()
        rows.store(trie)
        # One update's own nodes may stand above the limit until the next.
        assert len(cache) <= 600 + 150
    rows.questions.clear()
    trie = PathTrie(OWNER, rows, root, cache)
    trie.update({keys[0]: b"x"})
    assert all(len(path) > 1 for paths in rows.questions for path in paths)


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("remembered", [b"", b"value of "])
def test_a_missing_row_is_named(depth, remembered):
    rows, root, keys = grown(3000)
    path = bytes(int(digit, 16) for digit in keys[0].hex()[:depth])
    del rows.rows[path]
    trie = PathTrie(OWNER, rows, root)
    with pytest.raises(MissingTrieNode) as caught:
        trie.update({keys[0]: b"x"}, lambda key: remembered + key)
    assert (caught.value.owner, caught.value.path) == (OWNER, path)
    assert OWNER.hex() in str(caught.value)
    assert "missing" in str(caught.value)


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("remembered", [b"", b"value of "])
def test_a_corrupt_row_is_named(depth, remembered):
    rows, root, keys = grown(3000)
    path = bytes(int(digit, 16) for digit in keys[0].hex()[:depth])
    rows.rows[path] = rows.rows[path][:-2] + b"\x00\x80"
    trie = PathTrie(OWNER, rows, root)
    with pytest.raises(CorruptTrieNode) as caught:
        trie.update({keys[0]: b"x"}, lambda key: remembered + key)
    assert caught.value.path == path
    assert f"node {keys[0].hex()[:depth] or 'root'} " in str(caught.value)


def test_a_sibling_missing_at_a_collapse_is_named():
    rows = Rows()
    keys = [bytes([first]) * 32 for first in (0x11, 0x22)]
    trie = PathTrie(OWNER, rows, None)
    trie.update(dict.fromkeys(keys, b"value"))
    root = trie.root_hash()
    rows.store(trie)
    del rows.rows[b"\x02"]
    trie = PathTrie(OWNER, rows, root)
    trie.update({keys[0]: b""})
    with pytest.raises(MissingTrieNode) as caught:
        trie.root_hash()
    assert caught.value.path == b"\x02"
