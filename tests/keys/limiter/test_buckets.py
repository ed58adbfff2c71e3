"""The Lua script and its Python counterpart have the same results in any state."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from keys.limiter.buckets import Buckets, RedisUnavailable
from keys.limiter.gcra import DAY, MAX_RATE, SECOND, Bucket, Limits, take
from tests.support.waiting import PATIENCE_SECONDS

ids = count(1_000_000)

limits = st.builds(
    Limits,
    rate=st.integers(1, 3000) | st.integers(1, MAX_RATE),
    burst=st.integers(1, 5000) | st.integers(1, 10**9),
    daily=st.none() | st.integers(1, 10_000) | st.integers(1, 10**12),
)
requests = st.tuples(
    st.integers(0, 5000) | st.integers(0, 10**9),  # needed
    st.integers(0, 5000),  # lease
    st.just(0) | st.integers(-10_000, 5000),  # returned; a debt if negative
    st.just(0) | st.integers(0, 10**9) | st.integers(0, 10**9 * SECOND),  # backlog
    st.just(0) | st.integers(0, 20_000) | st.integers(0, 10**12),  # used
)
NAMES = ("needed", "lease", "returned", "backlog", "used")


@pytest.fixture
def runner():
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def buckets(runner, redis_url):
    buckets = Buckets(redis_url, timeout=PATIENCE_SECONDS)
    yield buckets
    runner.run(buckets.close())


@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    limits=limits,
    ahead=st.integers(-3 * SECOND, 3 * SECOND) | st.integers(-DAY, 10**9 * SECOND),
    days_ago=st.integers(0, 1),
    spent=st.integers(0, 10_000) | st.integers(0, 10**12),
    requests=st.lists(requests, min_size=1, max_size=4),
)
def test_script_and_twin_agree(
    runner, buckets, redis_url, limits, ahead, days_ago, spent, requests
):
    api_key_id = next(ids)
    with Redis.from_url(redis_url) as redis:
        seconds, microseconds = redis.time()
        now = seconds * SECOND + microseconds
        # Times up to 10**9 s ahead stay below 2**53 µs, which a double represents exactly.
        bucket = Bucket(now + ahead, now // DAY - days_ago, spent)
        redis.hset(f"portcullis:bucket:{api_key_id}", mapping=bucket._asdict())
        for request in requests:
            asked = dict(zip(NAMES, request, strict=True))
            taken = runner.run(buckets.take(api_key_id, limits, **asked))
            bucket, outcome = take(bucket, limits, taken.now, **asked)
            assert (taken.outcome, taken.bucket) == (outcome, bucket)
        assert 0 < redis.ttl(f"portcullis:bucket:{api_key_id}") <= 2 * 86_400
        redis.delete(f"portcullis:bucket:{api_key_id}")


def test_redis_that_is_nowhere_is_away(runner):
    buckets = Buckets("unix:///nonexistent/redis.sock")
    with pytest.raises(RedisUnavailable):
        runner.run(buckets.take(1, Limits(1, 1), needed=1))
    runner.run(buckets.close())
