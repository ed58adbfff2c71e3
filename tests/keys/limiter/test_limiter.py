"""The limiter of a single process: leases, refunds and rejections."""

from __future__ import annotations

import asyncio
import math
import time

import pytest

from jsonrpc.later import DONE
from keys.limiter.buckets import Buckets
from keys.limiter.errors import DailyQuotaExceeded, RateLimited, TooCostly
from keys.limiter.gcra import Limits
from keys.limiter.limiter import Limiter
from tests.keys.limiter.spending import Clock, count_admitted, spend
from tests.support.coroutines import scenario
from tests.support.waiting import PATIENCE_SECONDS, until


@scenario
async def test_lease_is_spent_without_waiting(limiter_on, api_key_id):
    limiter, limits = limiter_on(), Limits(rate=1, burst=1600)
    await limiter.charge(api_key_id, limits, 1)
    assert all(limiter.charge(api_key_id, limits, 1) is DONE for _ in range(99))
    later = limiter.charge(api_key_id, limits, 1)
    assert not later.is_done
    await later
    await limiter.stop()


class Counted(Buckets):
    """Counts the executed scripts, and the maximum number of concurrent ones.

    taken: credits, without those that were returned.
    """

    asked = in_flight = most = taken = 0

    async def take(self, *arguments, **options):
        self.asked += 1
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        try:
            answer = await super().take(*arguments, **options)
            self.taken += answer.outcome.credits - options.get("returned", 0)
            return answer
        finally:
            self.in_flight -= 1


@scenario
async def test_lease_is_filled_up_before_it_ends(redis_url, api_key_id):
    buckets = Counted(redis_url, timeout=PATIENCE_SECONDS)
    limiter, limits = Limiter(buckets), Limits(rate=100_000, burst=8000)
    await limiter.charge(api_key_id, limits, 1)
    waited = 0
    for _ in range(500):
        waiting = [limiter.charge(api_key_id, limits, 1) for _ in range(10)]
        for each in waiting:
            waited += not each.is_done
            await each
        await asyncio.sleep(0)
        await until(lambda: not buckets.in_flight)
    assert waited == 0
    assert 4 <= buckets.asked <= 10
    assert buckets.taken - 5001 <= limits.lease == 1000
    await limiter.stop()


@scenario
async def test_crowd_of_requests_asks_redis_once_at_a_time(redis_url, api_key_id):
    buckets = Counted(redis_url, timeout=PATIENCE_SECONDS)
    limiter, limits = Limiter(buckets), Limits(rate=1, burst=1000)
    crowd = [spend(limiter, api_key_id, limits, 1) for _ in range(1100)]
    started = time.monotonic()
    found = await asyncio.gather(*crowd, return_exceptions=True)
    assert 1000 <= found.count(None) <= 1002 + time.monotonic() - started
    assert {type(each) for each in found} == {type(None), RateLimited}
    assert buckets.most == 1
    await limiter.stop()


@scenario
async def test_refill_in_flight_is_returned_in_the_end(
    limiter_on, redis_url, api_key_id
):
    limits = Limits(rate=1, burst=1000, daily=1000)
    buckets = Counted(redis_url, timeout=PATIENCE_SECONDS)
    limiter = Limiter(buckets)
    await spend(limiter, api_key_id, limits, 1)
    for _ in range(limits.lease // 2 + 1):  # below half of the lease
        await spend(limiter, api_key_id, limits, 1)
    assert buckets.asked == 1
    await asyncio.gather(limiter.sweep(), limiter.sweep())
    await limiter.stop()
    assert buckets.asked > 1
    spent = limits.lease // 2 + 2
    assert buckets.taken == spent
    other = limiter_on()
    assert await count_admitted(other, api_key_id, limits) == 1000 - spent
    await other.stop()


@scenario
async def test_work_that_was_done_is_charged_even_without_credits(
    limiter_on, redis_url, api_key_id
):
    limits = Limits(rate=10, burst=100)
    limiter = limiter_on()
    await spend(limiter, api_key_id, limits, 1)
    limiter.owe(api_key_id, limits, 2000)
    limiter.owe(api_key_id, limits, 1000)
    refused = None
    while refused is None:  # at most the burst, until Redis has the debt
        try:
            await spend(limiter, api_key_id, limits, 1)
        except RateLimited as error:
            refused = error
    other = limiter_on()
    with pytest.raises(RateLimited) as caught:
        await spend(other, api_key_id, limits, 1)
    wait = caught.value.data["backoff_seconds"]
    assert (3000 - 100) / 10 - PATIENCE_SECONDS < wait <= 3000 / 10
    await limiter.stop()
    await other.stop()


@scenario
async def test_refund_is_spent_again(redis_url, api_key_id):
    buckets = Counted(redis_url, timeout=PATIENCE_SECONDS)
    limiter, limits = Limiter(buckets), Limits(rate=1, burst=1000, daily=1000)
    for spent in range(1, 4):
        await spend(limiter, api_key_id, limits, 900)
        limiter.refund(api_key_id, limits, 899)
        await until(lambda spent=spent: buckets.taken <= spent + limits.lease)
    assert await count_admitted(limiter, api_key_id, limits) == 997
    limiter.refund(api_key_id, None, 5)
    await limiter.stop()


@scenario
async def test_refunds_while_others_are_charged_add_up(limiter_on, api_key_id):
    limiter, limits = limiter_on(), Limits(rate=1, burst=1000, daily=1000)

    async def fail():
        await spend(limiter, api_key_id, limits, 20)
        limiter.refund(api_key_id, limits, 19)
        await asyncio.sleep(0)

    async def crowd():
        for _ in range(20):
            await fail()

    await asyncio.gather(*(crowd() for _ in range(5)))
    await limiter.stop()  # returns the lease
    other = limiter_on()
    assert await count_admitted(other, api_key_id, limits) == 900
    await other.stop()


def test_key_without_limits_is_never_asked_about():
    limiter = Limiter(Buckets("unix:///nonexistent/redis.sock"))
    assert limiter.charge(1, None, 10**9) is DONE


@scenario
async def test_refusals_say_what_they_are_for(limiter_on, api_key_id):
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


@scenario
async def test_flood_that_is_refused_is_refused_from_memory(redis_url, api_key_id):
    buckets = Counted(redis_url, timeout=PATIENCE_SECONDS)
    limiter, limits = Limiter(buckets, clock=Clock()), Limits(rate=1, burst=1)
    await spend(limiter, api_key_id, limits, 1)
    with pytest.raises(RateLimited):
        await spend(limiter, api_key_id, limits, 1)
    asked = buckets.asked
    with pytest.raises(RateLimited) as again:
        await spend(limiter, api_key_id, limits, 1)
    assert 0 < again.value.details["backoff_seconds"] <= 1
    assert buckets.asked == asked
    await limiter.stop()


@scenario
async def test_changed_limits_count_at_once(limiter_on, api_key_id):
    limiter = limiter_on()
    await spend(limiter, api_key_id, Limits(rate=1, burst=1), 1)
    with pytest.raises(RateLimited):
        await spend(limiter, api_key_id, Limits(rate=1, burst=1), 1)
    await spend(limiter, api_key_id, Limits(rate=1000, burst=2000), 900)
    await limiter.stop()
