"""Charges requests to API keys, from leases of credits that are renewed in Redis.

A round trip to Redis costs more than most responses. So a process takes more credits
than it needs, a lease, and spends them without asking. A lease that runs low is refilled
in the background. In any period, the processes admit at most rate × seconds + burst + the
leases that they held at its beginning. Unused credits are returned to Redis.

While Redis is unavailable, each process continues with the bucket as it last saw it, and
reports afterwards what it has taken. The other processes do not count these requests. A
slow Redis is therefore waited for, and only a failed one is replaced.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from math import inf

from jsonrpc.later import DONE, Later
from keys.limiter.buckets import Buckets, RedisUnavailable, Taken
from keys.limiter.errors import DailyQuotaExceeded, RateLimited, TooCostly
from keys.limiter.gcra import SECOND, Bucket, Limits, Outcome, Verdict, debt, take

logger = logging.getLogger(__name__)

PROBE_SECONDS = 1.0
"""Interval of the checks during an outage. No request waits for a check."""

LOG_SECONDS = 60.0
"""Interval of the warnings in the log during an outage."""


class Availability:
    """Records an outage of Redis, and checks Redis until it accepts writes again.

    clock: monotonic seconds.
    """

    def __init__(self, buckets: Buckets, clock: Callable[[], float]) -> None:
        self._buckets = buckets
        self._clock = clock
        self._probing: asyncio.Task[None] | None = None
        self._logged_at = -inf
        self._error: RedisUnavailable | None = None

    @property
    def is_available(self) -> bool:
        """Whether Redis answered the last request, or passed the last check."""
        return self._error is None

    def report_outage(self, error: RedisUnavailable) -> None:
        """Record that a request has failed, and start the checks."""
        self._error = error
        self.log_outage()
        if self._probing is None or self._probing.done():
            self._probing = asyncio.create_task(self._probe())

    def log_outage(self) -> None:
        """Log a warning during an outage, at most one in `LOG_SECONDS`."""
        now = self._clock()
        if self._error and now >= self._logged_at + LOG_SECONDS:
            self._logged_at = now
            logger.warning(
                "Redis is unavailable, and each process counts limits separately: %s",
                self._error,
            )

    async def stop(self) -> None:
        """Stop the checks."""
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.gather(self._probing, return_exceptions=True)

    async def _probe(self) -> None:
        while self._error is not None:
            await asyncio.sleep(PROBE_SECONDS)
            try:
                await self._buckets.check()
            except RedisUnavailable as error:
                self._error = error
            else:
                self._error = None


SWEEP_SECONDS = 5.0
"""A lease that is unused for this long is returned to Redis."""

REFUSAL_SECONDS = 1.0
"""How long a refusal is cached at most. A flood of refused requests then costs Redis
nothing; credits that are returned, and changed limits, take effect soon."""

REFILL_SHARE = 2
"""A lease is refilled when it is below 1/2 of its size. The rest usually lasts for the
round trip to Redis."""


class _Lease:
    """Credits of one API key that this process may spend without asking Redis.

    left: credits. More than `limits.lease` only until the surplus has been returned.
    debt: credits that were charged without being left. The bucket pays them as soon as
        Redis is asked next.
    refill_below: refill when `left` drops below this; -1 disables refilling while one is
        in flight or has failed.
    is_rebalancing: a refill or a return of surplus credits is in progress.
    users: tasks that hold or wait for `lock`; the lease is kept while there are any.
    limits: those of the last request. bucket: the shared bucket as of the last answer of
        Redis, by this process's clock.
    is_unsynced: `bucket` has changed during an outage, and Redis lacks the change.
    left_at_sweep: `left` at the last sweep.
    refusal: the last one: credits, monotonic seconds, outcome.
    """

    __slots__ = (
        "bucket",
        "debt",
        "is_rebalancing",
        "is_unsynced",
        "left",
        "left_at_sweep",
        "limits",
        "lock",
        "refill_below",
        "refusal",
        "users",
    )

    def __init__(self, limits: Limits) -> None:
        self.left = 0
        self.debt = 0
        self.refill_below = -1
        self.is_rebalancing = False
        self.users = 0
        self.limits = limits
        self.bucket = Bucket()
        self.is_unsynced = False
        self.left_at_sweep = -1
        self.lock = asyncio.Lock()
        self.refusal: tuple[int, float, Outcome] | None = None


class Limiter:
    """Charges API keys for requests.

    buckets: None in a process that shares its limits with no other process.
    clock: monotonic seconds. wall_clock: Unix time in seconds.
    """

    def __init__(
        self,
        buckets: Buckets | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._buckets = buckets
        self._availability = None if buckets is None else Availability(buckets, clock)
        self._clock = clock
        self._wall_clock = wall_clock
        self._leases: dict[int, _Lease] = {}
        self._sweeping: asyncio.Task[None] | None = None
        self._rebalancing: set[asyncio.Task[None]] = set()
        self.fallbacks = 0
        """How often credits were taken from the local bucket during an outage of Redis."""

    def charge(
        self, api_key_id: int, limits: Limits | None, credits: int
    ) -> Later[None]:
        """Charge the credits that a request costs.

        The result is complete if the lease has enough credits. Fails with RateLimited,
        DailyQuotaExceeded, TooCostly.
        """
        if limits is None:
            return DONE
        lease = self._leases.get(api_key_id)
        if lease is not None and lease.left >= credits:
            lease.left -= credits
            if lease.left < lease.refill_below:
                self._start_rebalancing(api_key_id, lease, limits)
            return DONE
        return Later.from_coroutine(self._renew(api_key_id, limits, credits))

    def refund(self, api_key_id: int, limits: Limits | None, credits: int) -> None:
        """Return credits that a request was overcharged to the key's lease."""
        if limits is not None:
            lease = self._lease(api_key_id, limits)
            lease.left += credits
            self._return_surplus(api_key_id, lease, limits)

    def owe(self, api_key_id: int, limits: Limits | None, credits: int) -> None:
        """Charge credits for work that was done, even if the key has not as many left.

        Requests are then rejected until the rate has paid the debt.
        """
        if limits is None:
            return
        lease = self._lease(api_key_id, limits)
        paid = min(max(lease.left, 0), credits)
        lease.left -= paid
        if credits > paid:
            lease.debt += credits - paid
            self._start_rebalancing(api_key_id, lease, limits)

    @property
    def is_redis_available(self) -> bool:
        """Whether the last request to Redis was answered."""
        return self._availability is not None and self._availability.is_available

    async def start(self) -> None:
        """Start returning unused leases."""
        self._sweeping = asyncio.create_task(self._sweep_forever())

    async def stop(self) -> None:
        """Return all leases, and close the connections to Redis."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)
        await asyncio.gather(*self._rebalancing)
        if self._buckets is not None and self._availability is not None:
            await self._availability.stop()
            await self._return_leases(list(self._leases))
            await self._buckets.close()

    async def sweep(self) -> None:
        """Return the leases that were not used since the last sweep.

        During an outage of Redis, leases are kept, because only they contain the number
        of credits that were spent.
        """
        if not self.is_redis_available:
            return
        unused = []
        for api_key_id, lease in self._leases.items():
            if lease.left == lease.left_at_sweep:
                unused.append(api_key_id)
            lease.left_at_sweep = lease.left
        await self._return_leases(unused)

    async def _sweep_forever(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            await self.sweep()

    async def _return_leases(self, api_key_ids: list[int]) -> None:
        """Remove leases and return their credits, which are lost if Redis fails."""
        for api_key_id in api_key_ids:
            lease = self._leases[api_key_id]
            if lease.users:
                continue
            del self._leases[api_key_id]
            returned = lease.left - lease.debt
            lease.left = lease.debt = 0
            if returned or lease.is_unsynced:
                request = {"needed": 0, "returned": returned}
                taken = await self._ask_redis(api_key_id, lease, lease.limits, request)
                if taken is None:
                    return

    def _lease(self, api_key_id: int, limits: Limits) -> _Lease:
        lease = self._leases.get(api_key_id)
        if lease is None:
            lease = self._leases[api_key_id] = _Lease(limits)
        return lease

    def _return_surplus(self, api_key_id: int, lease: _Lease, limits: Limits) -> None:
        if lease.left > limits.lease:
            self._start_rebalancing(api_key_id, lease, limits)

    def _start_rebalancing(
        self, api_key_id: int, lease: _Lease, limits: Limits
    ) -> None:
        """Refill a lease, or return its surplus, in the background."""
        lease.refill_below = -1
        if lease.is_rebalancing:
            return
        lease.is_rebalancing = True
        lease.users += 1
        task = asyncio.create_task(self._rebalance(api_key_id, lease, limits))
        self._rebalancing.add(task)
        task.add_done_callback(self._rebalancing.discard)

    async def _rebalance(self, api_key_id: int, lease: _Lease, limits: Limits) -> None:
        try:
            async with lease.lock:
                is_done = False
                while not is_done:
                    surplus = max(0, lease.left - limits.lease)
                    lease.left -= surplus
                    outcome = await self._ask(
                        api_key_id,
                        lease,
                        limits,
                        needed=0,
                        wanted=limits.lease - lease.left,
                        returned=surplus,
                    )
                    lease.left += outcome.credits
                    is_refilled = bool(outcome.credits or surplus)
                    lease.refill_below = (
                        lease.left // REFILL_SHARE if is_refilled else -1
                    )
                    # A refund or a debt may have arrived during the round trip.
                    is_done = lease.left <= limits.lease and not lease.debt
        finally:
            lease.is_rebalancing = False
            lease.users -= 1

    async def _renew(self, api_key_id: int, limits: Limits, credits: int) -> None:
        """Charge a request that the lease does not cover, and renew the lease."""
        if credits > limits.burst:
            raise TooCostly(credits, limits.burst)
        lease = self._lease(api_key_id, limits)
        lease.users += 1
        try:
            async with lease.lock:
                await self._spend(api_key_id, lease, limits, credits)
        finally:
            lease.users -= 1

    async def _spend(
        self, api_key_id: int, lease: _Lease, limits: Limits, credits: int
    ) -> None:
        # Taken out of the lease, so that a concurrent request can't spend them, too.
        held, lease.left = lease.left, 0
        try:
            if held < credits:
                held += await self._take(api_key_id, lease, limits, credits - held)
                lease.refill_below = (held - credits) // REFILL_SHARE
            held -= credits
        finally:
            lease.left += held
            self._return_surplus(api_key_id, lease, limits)

    async def _take(
        self, api_key_id: int, lease: _Lease, limits: Limits, needed: int
    ) -> int:
        """Take at least `needed` credits, and return how many were taken.

        Raises: RateLimited, DailyQuotaExceeded.
        """
        if lease.refusal is not None and lease.limits == limits:
            refused, since, outcome = lease.refusal
            wait = outcome.wait / SECOND
            passed = self._clock() - since
            if needed >= refused and passed < min(wait or inf, REFUSAL_SECONDS):
                wait += (needed - refused) / limits.rate - passed
                raise _error(outcome, limits, lease.bucket.day, wait)
        outcome = await self._ask(
            api_key_id, lease, limits, needed=needed, wanted=limits.lease
        )
        if outcome.verdict is Verdict.GIVEN:
            return outcome.credits
        lease.refusal = needed, self._clock(), outcome
        raise _error(outcome, limits, lease.bucket.day, outcome.wait / SECOND)

    async def _ask(
        self,
        api_key_id: int,
        lease: _Lease,
        limits: Limits,
        *,
        needed: int,
        wanted: int,
        returned: int = 0,
    ) -> Outcome:
        """Take credits from the bucket in Redis, or from its local copy during an outage."""
        lease.limits, lease.refusal = limits, None
        debt, lease.debt = lease.debt, 0
        request = {"needed": needed, "lease": wanted, "returned": returned - debt}
        taken = await self._ask_redis(api_key_id, lease, limits, request)
        now = self._now()
        if taken is None:
            if self._availability is not None:
                lease.is_unsynced = True
                self.fallbacks += 1
                self._availability.log_outage()
            lease.bucket, outcome = take(lease.bucket, limits, now, **request)
            return outcome
        ahead = now - taken.now
        lease.bucket = taken.bucket._replace(arrival=taken.bucket.arrival + ahead)
        lease.is_unsynced = False
        return taken.outcome

    async def _ask_redis(
        self, api_key_id: int, lease: _Lease, limits: Limits, request: dict[str, int]
    ) -> Taken | None:
        """Send a request to Redis, including the credits spent during an outage.

        Return None if Redis is unavailable.
        """
        availability = self._availability
        if self._buckets is None or availability is None:
            return None
        if not availability.is_available:
            return None
        missing = debt(lease.bucket, self._now()) if lease.is_unsynced else {}
        try:
            return await self._buckets.take(api_key_id, limits, **request, **missing)
        except RedisUnavailable as error:
            availability.report_outage(error)
            return None

    def _now(self) -> int:
        """Return the Unix time in microseconds."""
        return int(self._wall_clock() * SECOND)


def _error(
    outcome: Outcome, limits: Limits, day: int, wait_seconds: float
) -> RateLimited | DailyQuotaExceeded:
    if outcome.verdict is Verdict.QUOTA:
        return DailyQuotaExceeded(limits.daily or 0, day)
    return RateLimited(limits.rate, wait_seconds)
