from __future__ import annotations

import random

from postgres.cache import ENTRY_BYTES, BytesCache


def test_value_is_returned_until_it_is_pushed_out() -> None:
    cache: BytesCache[str] = BytesCache(2 * (ENTRY_BYTES + 10))
    cache.put("a", b"x" * 10)
    cache.put("b", b"y" * 10)
    assert cache.get("a") == b"x" * 10
    cache.put("c", b"z" * 10)
    assert cache.get("b") is None, "b was used least recently"
    assert cache.get("a") == b"x" * 10
    assert cache.get("c") == b"z" * 10


def test_empty_value_is_a_value() -> None:
    cache: BytesCache[int] = BytesCache(ENTRY_BYTES)
    cache.put(1, b"")
    assert cache.get(1) == b""


def test_value_replaces_the_one_under_its_key() -> None:
    cache: BytesCache[int] = BytesCache(10_000)
    cache.put(1, b"old value")
    cache.put(1, b"new")
    assert cache.get(1) == b"new"
    assert len(cache) == 1
    assert cache.size == ENTRY_BYTES + 3


def test_value_larger_than_the_cache_pushes_nothing_out() -> None:
    cache: BytesCache[int] = BytesCache(ENTRY_BYTES + 100)
    cache.put(1, b"kept")
    cache.put(2, bytes(101))
    assert cache.get(1) == b"kept"
    assert cache.get(2) is None


def test_capacity_zero_keeps_nothing() -> None:
    cache: BytesCache[int] = BytesCache(0)
    cache.put(1, b"")
    assert cache.get(1) is None
    assert cache.size == 0


def test_size_is_exact_and_bounded_whatever_is_put() -> None:
    rng = random.Random(1)
    cache: BytesCache[int] = BytesCache(20_000)
    kept: dict[int, int] = {}
    for _ in range(2_000):
        key, size = rng.randrange(60), rng.randrange(3_000)
        cache.put(key, bytes(size))
        kept[key] = size
        assert cache.size <= 20_000
        held = [value for key in kept if (value := cache.get(key)) is not None]
        assert cache.size == sum(len(value) + ENTRY_BYTES for value in held)
