"""An unavailable or slow Redis, and the report to it after an outage."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from functools import partial

import pytest
from redis.asyncio import Redis

from keys.limiter import limiter as limiter_module
from keys.limiter.buckets import Buckets
from keys.limiter.errors import DailyQuotaExceeded, RateLimited
from keys.limiter.gcra import Limits
from keys.limiter.limiter import LOG_SECONDS, Limiter
from tests.keys.limiter.spending import Clock, count_admitted, spend
from tests.support.redis_server import own_redis
from tests.support.waiting import PATIENCE_SECONDS, until


def test_without_redis_each_process_counts_by_itself(caplog):
    async def scenario():
        clock, wall_clock = Clock(), Clock()
        limiter = Limiter(
            Buckets("unix:///nonexistent/redis.sock"),
            clock=clock,
            wall_clock=wall_clock,
        )
        limits = Limits(rate=10, burst=100, daily=150)
        assert await count_admitted(limiter, 1, limits) == 100
        clock.now, wall_clock.now = clock.now + 3, wall_clock.now + 3
        assert await count_admitted(limiter, 1, limits) == 30
        clock.now, wall_clock.now = clock.now + 60, wall_clock.now + 60
        assert await count_admitted(limiter, 1, limits) == 20
        assert limiter.fallbacks > 0
        await limiter.sweep()
        await limiter.stop()

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    assert len(caplog.records) == 2  # 63 seconds: one now, one a minute later
    assert LOG_SECONDS == 60


def test_redis_is_missed_and_found_again():
    limits = Limits(rate=50, burst=100)

    async def scenario(server):
        clock = Clock()
        buckets = Buckets(server.url, timeout=PATIENCE_SECONDS)
        limiter = Limiter(buckets, wall_clock=clock)
        started = time.monotonic()
        admitted = await count_admitted(limiter, 1, limits)
        assert limiter.fallbacks == 0
        await asyncio.to_thread(server.stop)
        clock.now += 0.5
        while not limiter.fallbacks:  # the last refusal is cached for 20 ms
            admitted += await count_admitted(limiter, 1, limits)
        # The process continues with the bucket as it last saw it: no second burst.
        assert admitted <= 100 + 50 * (time.monotonic() - started + 0.5)
        await asyncio.to_thread(server.start)
        await is_back(limiter)
        before = limiter.fallbacks
        await until(partial(is_admitted, limiter, 1, limits))
        assert limiter.fallbacks == before
        await limiter.stop()

    with own_redis() as server:
        asyncio.run(scenario(server))


async def is_admitted(limiter, api_key_id, limits):
    try:
        await spend(limiter, api_key_id, limits, 1)
    except RateLimited:
        return False
    return True


async def is_back(limiter):
    """Wait until a limiter has found Redis again."""
    await until(lambda: limiter.is_redis_available)


def test_redis_that_refuses_writes_stays_unavailable(monkeypatch):
    """It answers pings. Otherwise one request per second would be refused by it."""
    monkeypatch.setattr(limiter_module, "PROBE_SECONDS", 0.01)
    limits = Limits(rate=1000, burst=1000)

    async def scenario(server):
        buckets = Buckets(server.url, timeout=PATIENCE_SECONDS)
        limiter = Limiter(buckets)
        checks = []
        check = buckets.check

        async def noted():
            checks.append(limiter.is_redis_available)
            await check()

        monkeypatch.setattr(buckets, "check", noted)
        async with Redis.from_url(server.url) as redis:
            await redis.config_set("maxmemory", "1")
            await spend(limiter, 1, limits, 1)
            await until(lambda: len(checks) >= 5)
            assert not any(checks)
            await redis.config_set("maxmemory", "0")
            await is_back(limiter)
        await limiter.stop()

    with own_redis() as server:
        asyncio.run(scenario(server))


def test_redis_gets_what_was_spent_without_it():
    limits = Limits(rate=1, burst=1000, daily=1000)

    async def scenario(server):
        apart, other = (Limiter(Buckets(server.url, timeout=30)) for _ in range(2))
        await asyncio.to_thread(server.stop)
        admitted = await count_admitted(apart, 1, limits)
        await asyncio.to_thread(server.start)  # with nothing in it
        await is_back(apart)
        admitted += await count_admitted(apart, 1, limits)
        admitted += await count_admitted(other, 1, limits)
        assert admitted == 1000
        with pytest.raises(DailyQuotaExceeded):
            await spend(other, 1, limits, 1)
        for limiter in (apart, other):
            await limiter.stop()

    with own_redis() as server:
        asyncio.run(scenario(server))


def test_resting_lease_of_a_process_that_was_alone_is_reported_too():
    limits = Limits(rate=1, burst=1000)

    async def scenario(server):
        apart, other = (Limiter(Buckets(server.url, timeout=30)) for _ in range(2))
        started = time.monotonic()
        await asyncio.to_thread(server.stop)
        await spend(apart, 1, limits, 900)
        await asyncio.to_thread(server.start)
        await is_back(apart)
        await apart.sweep()
        await apart.sweep()
        admitted = await count_admitted(other, 1, limits)
        assert 99 <= admitted <= 100 + time.monotonic() - started
        for limiter in (apart, other):
            await limiter.stop()

    with own_redis() as server:
        asyncio.run(scenario(server))


@pytest.mark.parametrize("seed", range(3))
def test_slow_redis_lets_no_process_admit_more(seed):
    """An earlier version gave up after 50 ms, and each process then used its own bucket."""
    limits, seconds = Limits(rate=20, burst=100), 1.5

    async def scenario(server):
        limiters = [Limiter(Buckets(server.url, timeout=30)) for _ in range(2)]
        started = time.monotonic()
        admitted = refused = 0

        async def client(limiter):
            nonlocal admitted, refused
            while time.monotonic() < started + seconds or refused < 50:
                try:
                    await spend(limiter, 1, limits, 1)
                    admitted += 1
                except RateLimited:
                    refused += 1
                await asyncio.sleep(0.001)

        async def slow_down(redis):
            chance = random.Random(seed)
            while time.monotonic() < started + seconds:
                milliseconds = chance.randint(60, 300)
                await redis.execute_command("CLIENT", "PAUSE", milliseconds, "ALL")
                await asyncio.sleep(chance.uniform(0.05, 0.5))

        async with Redis.from_url(server.url) as redis, asyncio.timeout(60):
            clients = [client(limiter) for limiter in limiters for _ in range(4)]
            await asyncio.gather(slow_down(redis), *clients)
        assert admitted <= limits.rate * (time.monotonic() - started) + limits.burst
        assert [limiter.fallbacks for limiter in limiters] == [0, 0]
        for limiter in limiters:
            await limiter.stop()

    with own_redis() as server:
        asyncio.run(scenario(server))
