"""Several processes spend from one bucket, and return unused credits."""

from __future__ import annotations

import asyncio
import multiprocessing
import time

from keys.limiter.buckets import Buckets
from keys.limiter.errors import RateLimited
from keys.limiter.gcra import Limits
from keys.limiter.limiter import REFUSAL_SECONDS, Limiter
from tests.keys.limiter.spending import Clock, count_admitted, spend
from tests.support.coroutines import scenario
from tests.support.waiting import PATIENCE_SECONDS

SECONDS = 1.5
CLIENTS = 4
CROWDED = Limits(rate=2000, burst=1000)


@scenario
async def test_two_processes_share_one_burst(limiter_on, api_key_id):
    first, second = limiter_on(), limiter_on()
    limits = Limits(rate=1, burst=1000)
    started = time.monotonic()
    admitted = await count_admitted(first, api_key_id, limits)
    admitted += await count_admitted(second, api_key_id, limits)
    assert 1000 <= admitted <= 1001 + time.monotonic() - started
    assert first.fallbacks == second.fallbacks == 0
    await first.stop()
    await second.stop()


@scenario
async def test_rest_of_a_lease_goes_back_to_the_others(
    limiter_on, redis_url, api_key_id
):
    clock = Clock()
    idle = limiter_on()
    busy = Limiter(Buckets(redis_url, timeout=PATIENCE_SECONDS), clock=clock)
    limits = Limits(rate=1, burst=1000, daily=1000)
    started = time.monotonic()
    await spend(idle, api_key_id, limits, 1)
    admitted = await count_admitted(busy, api_key_id, limits)
    assert admitted <= 1000 - 62 + 2 + time.monotonic() - started
    await idle.sweep()
    await idle.sweep()  # unused since the first sweep
    clock.now += REFUSAL_SECONDS  # until the cached rejection has expired
    assert await count_admitted(busy, api_key_id, limits) >= 61
    await idle.stop()
    await busy.stop()


@scenario
async def test_stopping_gives_everything_back(limiter_on, api_key_id):
    limits = Limits(rate=1, burst=1000, daily=1000)
    for _ in range(100):
        limiter = limiter_on()
        await spend(limiter, api_key_id, limits, 1)
        await limiter.stop()
    limiter = limiter_on()
    assert await count_admitted(limiter, api_key_id, limits) == 900
    await limiter.stop()


def crowd(url, api_key_id, gate, results):
    """Spend as many credits as a process with four clients can."""

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
