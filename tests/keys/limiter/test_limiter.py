from __future__ import annotations

import asyncio
import logging
import math
import multiprocessing
import random
import time
from itertools import count

import pytest
from redis.asyncio import Redis

from keys.limiter.buckets import Buckets
from keys.limiter.errors import DailyQuotaExceeded, RateLimited, TooCostly
from keys.limiter.gcra import Limits
from keys.limiter.limiter import Limiter
from keys.limiter.presence import COMPLAINT_SECONDS
from tests.keys.limiter.redis_server import own_redis
from tests.support.waiting import PATIENCE_SECONDS, until

ids = count(1)


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


async def spend(limiter, api_key_id, limits, credits):
    """Charge a key, waiting if need be."""
    waiting = limiter.charge(api_key_id, limits, credits)
    if waiting is not None:
        await waiting


async def count_admitted(limiter, api_key_id, limits, credits=1):
    """Charge a key until it is refused; return how often it was not."""
    for admitted in count():
        try:
            await spend(limiter, api_key_id, limits, credits)
        except (RateLimited, DailyQuotaExceeded):
            return admitted
    raise AssertionError


@pytest.fixture
def limiter_on(redis_url):
    """Return what makes limiters on the shared Redis, which has time to answer."""
    return lambda: Limiter(Buckets(redis_url, timeout=PATIENCE_SECONDS))


@pytest.fixture
def api_key_id(redis_url):
    return 2_000_000 + next(ids)


def test_lease_is_spent_without_waiting(limiter_on, api_key_id):
    async def scenario():
        limiter, limits = limiter_on(), Limits(rate=1, burst=1600)
        await limiter.charge(api_key_id, limits, 1)
        assert [limiter.charge(api_key_id, limits, 1) for _ in range(99)] == [None] * 99
        later = limiter.charge(api_key_id, limits, 1)
        assert later is not None
        await later
        await limiter.stop()

    asyncio.run(scenario())


class Counted(Buckets):
    """Counts the scripts that are run, and how many at once at most."""

    asked = under_way = most = 0

    async def take(self, *arguments, **options):
        self.asked += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            return await super().take(*arguments, **options)
        finally:
            self.under_way -= 1


def test_lease_is_filled_up_before_it_ends(redis_url, api_key_id):
    async def scenario():
        buckets = Counted(redis_url, timeout=PATIENCE_SECONDS)
        limiter, limits = Limiter(buckets), Limits(rate=100_000, burst=8000)
        await limiter.charge(api_key_id, limits, 1)
        waited = 0
        for _ in range(500):
            waiting = [limiter.charge(api_key_id, limits, 1) for _ in range(10)]
            for each in waiting:
                if each is not None:
                    waited += 1
                    await each
            await asyncio.sleep(0)
            await until(lambda: not buckets.under_way)
        assert waited == 0
        assert 4 <= buckets.asked <= 10
        assert limiter._leases[api_key_id].left <= limits.lease == 1000
        await limiter.stop()

    asyncio.run(scenario())


def test_crowd_of_requests_asks_redis_once_at_a_time(redis_url, api_key_id):
    async def scenario():
        buckets = Counted(redis_url, timeout=PATIENCE_SECONDS)
        limiter, limits = Limiter(buckets), Limits(rate=1, burst=1000)
        crowd = [spend(limiter, api_key_id, limits, 1) for _ in range(1100)]
        started = time.monotonic()
        found = await asyncio.gather(*crowd, return_exceptions=True)
        assert 1000 <= found.count(None) <= 1002 + time.monotonic() - started
        assert {type(each) for each in found} == {type(None), RateLimited}
        assert buckets.most == 1
        await limiter.stop()

    asyncio.run(scenario())


def test_what_is_being_fetched_is_given_back_in_the_end(limiter_on, api_key_id):
    async def scenario():
        limits = Limits(rate=1, burst=1000, daily=1000)
        limiter = limiter_on()
        await spend(limiter, api_key_id, limits, 1)
        while limiter._leases[api_key_id].low >= 0:
            await spend(limiter, api_key_id, limits, 1)
        spent = 62 - limiter._leases[api_key_id].left
        await asyncio.gather(limiter.sweep(), limiter.sweep())
        await limiter.stop()
        other = limiter_on()
        assert await count_admitted(other, api_key_id, limits) == 1000 - spent
        await other.stop()

    asyncio.run(scenario())


def test_refund_is_spent_again(limiter_on, api_key_id):
    async def scenario():
        limiter, limits = limiter_on(), Limits(rate=1, burst=1000, daily=1000)
        for _ in range(3):
            await spend(limiter, api_key_id, limits, 900)
            limiter.refund(api_key_id, limits, 899)
            await until(lambda: not limiter._leases[api_key_id].is_levelled)
            assert limiter._leases[api_key_id].left <= limits.lease
        assert await count_admitted(limiter, api_key_id, limits) == 997
        limiter.refund(api_key_id, None, 5)
        await limiter.stop()

    asyncio.run(scenario())


def test_refunds_while_others_are_charged_add_up(limiter_on, api_key_id):
    async def scenario():
        limiter, limits = limiter_on(), Limits(rate=1, burst=1000, daily=1000)

        async def fail():
            await spend(limiter, api_key_id, limits, 20)
            limiter.refund(api_key_id, limits, 19)
            await asyncio.sleep(0)

        async def crowd():
            for _ in range(20):
                await fail()

        await asyncio.gather(*(crowd() for _ in range(5)))
        await limiter.stop()  # gives back what is held
        other = limiter_on()
        assert await count_admitted(other, api_key_id, limits) == 900
        await other.stop()

    asyncio.run(scenario())


def test_key_without_limits_is_never_asked_about():
    limiter = Limiter(Buckets("unix:///nonexistent/redis.sock"))
    assert limiter.charge(1, None, 10**9) is None


def test_two_processes_share_one_burst(limiter_on, api_key_id):
    async def scenario():
        first, second = limiter_on(), limiter_on()
        limits = Limits(rate=1, burst=1000)
        started = time.monotonic()
        admitted = await count_admitted(first, api_key_id, limits)
        admitted += await count_admitted(second, api_key_id, limits)
        assert 1000 <= admitted <= 1001 + time.monotonic() - started
        assert first.fallbacks == second.fallbacks == 0
        await first.stop()
        await second.stop()

    asyncio.run(scenario())


def test_rest_of_a_lease_goes_back_to_the_others(limiter_on, api_key_id):
    async def scenario():
        idle, busy = limiter_on(), limiter_on()
        limits = Limits(rate=1, burst=1000, daily=1000)
        started = time.monotonic()
        await spend(idle, api_key_id, limits, 1)
        admitted = await count_admitted(busy, api_key_id, limits)
        assert admitted <= 1000 - 62 + 2 + time.monotonic() - started
        await idle.sweep()
        await idle.sweep()  # it has rested since the first one
        await asyncio.sleep(1.1)  # a refusal is remembered for a second
        assert await count_admitted(busy, api_key_id, limits) >= 61
        await idle.stop()
        await busy.stop()

    asyncio.run(scenario())


def test_stopping_gives_everything_back(limiter_on, api_key_id):
    async def scenario():
        limits = Limits(rate=1, burst=1000, daily=1000)
        for _ in range(100):
            limiter = limiter_on()
            await spend(limiter, api_key_id, limits, 1)
            await limiter.stop()
        limiter = limiter_on()
        assert await count_admitted(limiter, api_key_id, limits) == 900
        await limiter.stop()

    asyncio.run(scenario())


def test_refusals_say_what_they_are_for(limiter_on, api_key_id):
    async def scenario():
        limiter, limits = limiter_on(), Limits(rate=1, burst=100, daily=150)
        with pytest.raises(TooCostly, match="batch needs 101 credits, more than"):
            await spend(limiter, api_key_id, limits, 101)
        started = time.monotonic()
        await spend(limiter, api_key_id, limits, 100)
        with pytest.raises(DailyQuotaExceeded) as exceeded:
            await spend(limiter, api_key_id, limits, 51)
        assert exceeded.value.headers == {}
        assert exceeded.value.details["resets_at"].endswith("T00:00:00Z")
        with pytest.raises(RateLimited, match="1 credits per second") as limited:
            await spend(limiter, api_key_id, limits, 30)
        seconds = limited.value.details["backoff_seconds"]
        assert limited.value.headers == {"Retry-After": str(math.ceil(seconds))}
        assert 29.5 - (time.monotonic() - started) < seconds <= 30
        await limiter.stop()

    asyncio.run(scenario())


def test_flood_that_is_refused_is_refused_from_memory(redis_url, api_key_id):
    async def scenario():
        buckets = Buckets(redis_url, timeout=PATIENCE_SECONDS)
        limiter, limits = Limiter(buckets, clock=Clock()), Limits(rate=1, burst=1)
        await spend(limiter, api_key_id, limits, 1)
        with pytest.raises(RateLimited):
            await spend(limiter, api_key_id, limits, 1)
        await limiter._buckets.close()
        limiter._buckets = Buckets("unix:///nonexistent/redis.sock")
        with pytest.raises(RateLimited) as again:
            await spend(limiter, api_key_id, limits, 1)
        assert 0 < again.value.details["backoff_seconds"] <= 1
        assert limiter.fallbacks == 0

    asyncio.run(scenario())


def test_changed_limits_count_at_once(limiter_on, api_key_id):
    async def scenario():
        limiter = limiter_on()
        await spend(limiter, api_key_id, Limits(rate=1, burst=1), 1)
        with pytest.raises(RateLimited):
            await spend(limiter, api_key_id, Limits(rate=1, burst=1), 1)
        await spend(limiter, api_key_id, Limits(rate=1000, burst=2000), 900)
        await limiter.stop()

    asyncio.run(scenario())


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
    assert COMPLAINT_SECONDS == 60


def test_redis_is_missed_and_found_again():
    limits = Limits(rate=50, burst=100)

    async def scenario(server):
        limiter = Limiter(Buckets(server.url, timeout=PATIENCE_SECONDS))
        started = time.monotonic()
        admitted = await count_admitted(limiter, 1, limits)
        assert limiter.fallbacks == 0
        await asyncio.to_thread(server.stop)
        admitted += await count_admitted(limiter, 1, limits)
        await asyncio.sleep(0.5)
        admitted += await count_admitted(limiter, 1, limits)
        # The process goes on from what it last saw: no second burst.
        assert limiter.fallbacks > 0
        assert admitted <= 100 + 50 * (time.monotonic() - started)
        await asyncio.to_thread(server.start)
        await is_back(limiter)
        before = limiter.fallbacks
        await asyncio.sleep(0.1)
        await spend(limiter, 1, limits, 1)
        assert limiter.fallbacks == before
        await limiter.stop()

    with own_redis() as server:
        asyncio.run(scenario(server))


async def is_back(limiter):
    """Wait until a limiter has found Redis again."""
    async with asyncio.timeout(60):
        while limiter._is_alone():
            await asyncio.sleep(0.02)


def test_redis_is_told_what_was_spent_without_it():
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


def test_resting_lease_of_a_process_that_was_alone_is_told_too():
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
    """It used to be left alone after 50 ms, and each process went on by itself."""
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


SECONDS = 1.5
CLIENTS = 4
CROWDED = Limits(rate=2000, burst=1000)


def crowd(url, api_key_id, gate, results):
    """Spend as much as a process with four clients can."""

    async def client(limiter, end):
        admitted = 0
        while time.time() < end:
            try:
                await spend(limiter, api_key_id, CROWDED, 1 + admitted % 3)
                admitted += 1 + admitted % 3
            except RateLimited as error:
                await asyncio.sleep(error.details["backoff_seconds"])
        return admitted

    async def clients():
        limiter = Limiter(Buckets(url, timeout=PATIENCE_SECONDS))
        gate.wait(PATIENCE_SECONDS)
        start = time.time()
        end = start + SECONDS
        spent = await asyncio.gather(*(client(limiter, end) for _ in range(CLIENTS)))
        results.put((sum(spent), limiter.fallbacks, start, time.time()))

    asyncio.run(clients())


def test_eight_clients_over_two_processes_stay_within_the_bound(redis_url, api_key_id):
    context = multiprocessing.get_context("spawn")
    results, gate = context.Queue(), context.Barrier(2)
    processes = [
        context.Process(target=crowd, args=(redis_url, api_key_id, gate, results))
        for _ in range(2)
    ]
    for process in processes:
        process.start()
    found = [results.get(timeout=2 * PATIENCE_SECONDS) for _ in processes]
    for process in processes:
        process.join()
    spent, fallbacks, starts, ends = zip(*found, strict=True)
    assert fallbacks == (0, 0)
    seconds = max(ends) - min(starts)
    assert CROWDED.burst < sum(spent) <= CROWDED.rate * seconds + CROWDED.burst
