from __future__ import annotations

from nodeapi.relay.bounds import ENTRY_BYTES, ShortCache


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_entries_expire():
    clock = Clock()
    cache: ShortCache[str, bytes] = ShortCache(1.0, 10_000, clock)
    cache.put("a", b"1", 1)
    clock.now = 0.9
    assert cache.get("a") == b"1"
    cache.put("b", b"2", 1)
    clock.now = 1.0
    assert cache.get("a") is None
    cache.put("c", b"3", 1)
    assert len(cache) == 2
    assert cache.size == 2 * (1 + ENTRY_BYTES)


def test_oldest_are_evicted_when_the_cache_is_full():
    cache: ShortCache[int, bytes] = ShortCache(1.0, 10 * ENTRY_BYTES, Clock())
    for number in range(20):
        cache.put(number, b"x" * ENTRY_BYTES, ENTRY_BYTES)
    assert len(cache) == 5
    assert cache.get(14) is None
    assert cache.get(15) is not None
    cache.put(99, b"", 10 * ENTRY_BYTES)  # larger than the cache
    assert cache.get(99) is None
    cache.put(1, b"x", 1)
    cache.put(1, b"y", 1)
    assert cache.get(1) == b"y"
    cache.discard(1)
    cache.discard(1)
    assert cache.get(1) is None
    assert cache.size <= 10 * ENTRY_BYTES
