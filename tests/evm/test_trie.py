"""The trie, compared with the reference library and with its own rows."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trie import HexaryTrie

from evm.trie import (
    EMPTY_ROOT,
    CorruptTrieNode,
    MissingTrieNode,
    NodeCache,
    PathTrie,
)
from tests.evm.tries import (
    OWNER,
    Rows,
    grown,
    keccak,
    reachable_rows,
    reference_of,
)


def from_nibbles(nibbles: list[int]) -> bytes:
    return bytes.fromhex("".join(f"{nibble:x}" for nibble in nibbles))


# Keys that share long prefixes, diverge at any depth, or differ in the last nibble.
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


@settings(max_examples=100, deadline=None)
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


@settings(max_examples=50, deadline=None)
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
    # The extension embeds the branch, which embeds both leaves.
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


def test_nodes_not_yet_stored_are_not_asked_of_the_reader():
    rows = Rows()
    trie = PathTrie(OWNER, rows, None)
    keys = [keccak(bytes([n])) for n in range(100)]
    for n in range(3):
        trie.update({key: bytes([n + 1]) * 40 for key in keys})
        trie.root_hash()
    assert rows.questions == []


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


DAMAGES = {
    "other bytes": lambda node: node[:-2] + b"\x00\x80",
    "nothing": lambda node: b"",
    "a head alone": lambda node: node[:1],
    "half a node": lambda node: node[: len(node) // 2],
    "an empty list": lambda node: b"\xc0",
    "no list": lambda node: b"\xff" * len(node),
}


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("remembered", [b"", b"value of "])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_corrupt_row_is_named(depth, remembered, damage):
    rows, root, keys = grown(3000)
    path = bytes(int(digit, 16) for digit in keys[0].hex()[:depth])
    rows.rows[path] = damage(rows.rows[path])
    trie = PathTrie(OWNER, rows, root, NodeCache(10_000, rows.below))
    with pytest.raises(CorruptTrieNode) as caught:
        trie.update({keys[0]: b"x"}, lambda key: remembered + key)
    assert caught.value.path == path
    assert f"node {keys[0].hex()[:depth] or 'root'} " in str(caught.value)


@pytest.fixture(scope="module")
def root_with_a_change():
    _, _, keys = grown(3000)
    content = {key: b"value of " + key for key in keys} | {keys[0]: b"x"}
    return reference_of(content).root_hash


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_corrupt_row_that_is_read_beside_others_harms_none_of_them(
    damage, root_with_a_change
):
    rows, root, keys = grown(3000)
    first, second = (int(digit, 16) for digit in keys[0].hex()[:2])
    beside = bytes([first, second ^ 1])
    rows.rows[beside] = damage(rows.rows[beside])
    trie = PathTrie(OWNER, rows, root, NodeCache(10_000, rows.below))
    trie.update({keys[0]: b"x"})
    assert trie.root_hash() == root_with_a_change
    assert rows.asked_below != []


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
