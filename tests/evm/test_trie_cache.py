"""The cache that the tries of a network share: saved reads, and its size."""

from __future__ import annotations

import random

import pytest

from evm.trie import NodeCache, PathTrie
from evm.trie_nodes import is_inner
from tests.evm.tries import OWNER, grown, reachable_rows, reference_of


def test_values_that_are_known_are_changed_without_a_look_at_their_leaves():
    rows, root, keys = grown(3000)
    content = {key: b"value of " + key for key in keys}
    cache = NodeCache(10_000)
    warm = PathTrie(OWNER, rows, root, cache)
    warm.update(content)  # this update changes nothing, and fills the cache
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
    # A wrong cached value is ignored, and the leaf is read.
    rows.store(second)
    third = PathTrie(OWNER, rows, root, cache)
    third.update(changes[0], lambda key: b"something else")
    assert third.root_hash() == first.root_hash()
    assert rows.questions != []


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
    assert len(asked) >= 10 and not any(is_inner(rows.rows[path]) for path in asked)
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
    # Neighbours are read once, and evicted like other nodes.
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
        # The nodes of one update may exceed the limit until the next update.
        assert len(cache) <= 600 + 150
    rows.questions.clear()
    trie = PathTrie(OWNER, rows, root, cache)
    trie.update({keys[0]: b"x"})
    assert all(len(path) > 1 for paths in rows.questions for path in paths)
