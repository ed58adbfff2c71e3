"""What requests are charged with: leases of credits, renewed in Redis.

A round trip to Redis would cost more than most answers, so a process takes some credits
more than it needs, and spends them without asking. A lease that runs low is filled up in
the background, so that requests seldom wait for one. What is admitted in any time is at
most rate × time + burst + the lease that each process held at the beginning. Credits
that rest are given back.

While Redis is away, a process goes on from the bucket as it last saw it, and tells Redis
afterwards how empty that has become. Requests that are let in meanwhile are not counted
by the other processes: hence a Redis that is merely slow is waited for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from math import inf

from keys.limiter.buckets import Away, Buckets, Taken
from keys.limiter.errors import DailyQuotaExceeded, RateLimited, TooCostly
from keys.limiter.gcra import SECOND, Bucket, Limits, Outcome, Verdict, lag, take
from keys.limiter.presence import Presence

SWEEP_SECONDS = 5.0
"""A lease from which nothing was spent for so long is given back."""

MEMORY_SECONDS = 1.0
"""How long a refusal is repeated at most without asking: a flood costs Redis nothing,
and credits that another process has given back, or a new plan, are soon found."""

LOW_SHARE = 2
"""Part of a lease at which it is filled up: late enough to fetch much at once, early
enough that the rest lasts for the round trip."""


class _Lease:
    """Credits of a key that this process may spend.

    low: when less is left, more is fetched; -1 while that is under way or in vain.
    limits: as they were when the lease was last renewed. bucket: the shared one as it
    was last seen, by this process' clock; what counts while Redis is away.
    is_apart: whether it has counted since then, so that the shared one lacks that.
    surplus: credits that came back and are more than a lease may hold.
    is_levelled: whether low or surplus are being seen to.
    users: who is about to take or to spend; nobody may give the lease back meanwhile.
    rested: what was left at the last sweep. refused: how much was asked for in vain,
    when (monotonic seconds), and what came of it.
    """

    __slots__ = (
        "bucket",
        "is_apart",
        "is_levelled",
        "left",
        "limits",
        "lock",
        "low",
        "refused",
        "rested",
        "surplus",
        "users",
    )

    def __init__(self, limits: Limits) -> None:
        self.left = 0
        self.low = -1
        self.surplus = 0
        self.is_levelled = False
        self.users = 0
        self.limits = limits
        self.bucket = Bucket()
        self.is_apart = False
        self.rested = -1
        self.lock = asyncio.Lock()
        self.refused: tuple[int, float, Outcome] | None = None


class Limiter:
    """Charges keys for requests.

    buckets: None for a process that is alone and counts by itself.
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
        self._presence = None if buckets is None else Presence(buckets, clock)
        self._clock = clock
        self._wall_clock = wall_clock
        self._leases: dict[int, _Lease] = {}
        self._sweeping: asyncio.Task[None] | None = None
        self._levelling: set[asyncio.Task[None]] = set()
        self.fallbacks = 0
        """How often credits were taken without Redis, because it was away."""

    def charge(
        self, api_key_id: int, limits: Limits | None, credits: int
    ) -> Awaitable[None] | None:
        """Take what a request costs; at once from a lease, if there is enough.

        Raises, when awaited: RateLimited, DailyQuotaExceeded, TooCostly.
        """
        if limits is None:
            return None
        lease = self._leases.get(api_key_id)
        if lease is not None and lease.left >= credits:
            lease.left -= credits
            if lease.left < lease.low:
                self._level(api_key_id, lease, limits)
            return None
        return self._renew(api_key_id, limits, credits)

    def refund(self, api_key_id: int, limits: Limits | None, credits: int) -> None:
        """Give back what was charged too much; what fits goes into the lease."""
        if limits is None:
            return
        self._keep(api_key_id, self._lease(api_key_id, limits), limits, credits)

    async def start(self) -> None:
        """Begin to give back what rests."""
        self._sweeping = asyncio.create_task(self._sweep_for_ever())

    async def stop(self) -> None:
        """Give back everything and hang up."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)
        await asyncio.gather(*self._levelling)
        if self._buckets is not None and self._presence is not None:
            await self._presence.stop()
            await self._give_back(list(self._leases))
            await self._buckets.close()

    async def sweep(self) -> None:
        """Give back the leases that nobody has touched since the last sweep."""
        if self._is_alone():
            return  # what this process knows of the keys is all that is known
        resting = []
        for api_key_id, lease in self._leases.items():
            if lease.left == lease.rested:
                resting.append(api_key_id)
            lease.rested = lease.left
        await self._give_back(resting)

    async def _sweep_for_ever(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            await self.sweep()

    async def _give_back(self, api_key_ids: list[int]) -> None:
        """Forget leases; what is left of them is lost if Redis is away by now."""
        for api_key_id in api_key_ids:
            lease = self._leases[api_key_id]
            if lease.users:
                continue  # somebody came meanwhile
            del self._leases[api_key_id]
            returned, lease.left = lease.left, 0
            if returned or lease.is_apart:
                asked = {"needed": 0, "returned": returned}
                if (
                    await self._ask_redis(api_key_id, lease, lease.limits, asked)
                    is None
                ):
                    return

    def _lease(self, api_key_id: int, limits: Limits) -> _Lease:
        lease = self._leases.get(api_key_id)
        if lease is None:
            lease = self._leases[api_key_id] = _Lease(limits)
        return lease

    def _keep(
        self, api_key_id: int, lease: _Lease, limits: Limits, credits: int
    ) -> None:
        """Put credits into a lease, and see to it that the rest goes back."""
        kept = max(0, min(credits, limits.lease - lease.left))
        lease.left += kept
        lease.surplus += credits - kept
        if lease.surplus:
            self._level(api_key_id, lease, limits)

    def _level(self, api_key_id: int, lease: _Lease, limits: Limits) -> None:
        """Fetch what a lease lacks, and return what it can't hold, in the background."""
        lease.low = -1
        if lease.is_levelled:
            return
        lease.is_levelled = True
        lease.users += 1
        task = asyncio.create_task(self._even_out(api_key_id, lease, limits))
        self._levelling.add(task)
        task.add_done_callback(self._levelling.discard)

    async def _even_out(self, api_key_id: int, lease: _Lease, limits: Limits) -> None:
        try:
            async with lease.lock:
                is_done = False
                while not is_done:
                    # What is spent until the answer comes leaves room for more.
                    welcome = max(0, limits.lease - lease.left)
                    returned, lease.surplus = lease.surplus, 0
                    outcome = await self._ask(
                        *(api_key_id, lease, limits),
                        needed=0,
                        welcome=welcome,
                        returned=returned,
                    )
                    self._keep(api_key_id, lease, limits, outcome.credits)
                    lease.low = lease.left // LOW_SHARE if outcome.credits else -1
                    is_done = not lease.surplus
        finally:
            lease.is_levelled = False
            lease.users -= 1

    async def _renew(self, api_key_id: int, limits: Limits, credits: int) -> None:
        """Take what a lease lacks, and some more for those who come next."""
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
        # Nobody else may spend what is counted on here.
        held, lease.left = lease.left, 0
        try:
            if held < credits:
                held += await self._take(api_key_id, lease, limits, credits - held)
                lease.low = (held - credits) // LOW_SHARE
            held -= credits
        finally:
            self._keep(api_key_id, lease, limits, held)

    async def _take(
        self, api_key_id: int, lease: _Lease, limits: Limits, needed: int
    ) -> int:
        """Return the credits that are taken, at least those that are needed.

        Raises: RateLimited, DailyQuotaExceeded.
        """
        if lease.refused is not None and lease.limits == limits:
            too_much, since, refusal = lease.refused
            wait = refusal.wait / SECOND
            passed = self._clock() - since
            # What was too much is so for a while: nobody need be asked.
            if needed >= too_much and passed < min(wait or inf, MEMORY_SECONDS):
                wait += (needed - too_much) / limits.rate - passed
                raise _refusal(refusal, limits, lease.bucket.day, wait)
        outcome = await self._ask(
            api_key_id, lease, limits, needed=needed, welcome=limits.lease
        )
        if outcome.verdict is Verdict.GIVEN:
            return outcome.credits
        lease.refused = needed, self._clock(), outcome
        raise _refusal(outcome, limits, lease.bucket.day, outcome.wait / SECOND)

    async def _ask(
        self,
        api_key_id: int,
        lease: _Lease,
        limits: Limits,
        *,
        needed: int,
        welcome: int,
        returned: int = 0,
    ) -> Outcome:
        """Take credits in Redis; while it is away, from what was last seen there."""
        lease.limits, lease.refused = limits, None
        asked = {"needed": needed, "lease": welcome, "returned": returned}
        taken = await self._ask_redis(api_key_id, lease, limits, asked)
        now = self._now()
        if taken is None:
            self._count_apart(lease)
            lease.bucket, outcome = take(lease.bucket, limits, now, **asked)
            return outcome
        ahead = now - taken.now
        lease.bucket = taken.bucket._replace(arrival=taken.bucket.arrival + ahead)
        lease.is_apart = False
        return taken.outcome

    async def _ask_redis(
        self, api_key_id: int, lease: _Lease, limits: Limits, asked: dict[str, int]
    ) -> Taken | None:
        """Take credits in Redis, and tell it what it has missed; None: it is away."""
        if self._buckets is None or self._presence is None or self._presence.is_away:
            return None
        missed = lag(lease.bucket, self._now()) if lease.is_apart else {}
        try:
            return await self._buckets.take(api_key_id, limits, **asked, **missed)
        except Away as error:
            self._presence.lost(error)
            return None

    def _count_apart(self, lease: _Lease) -> None:
        if self._presence is not None:
            lease.is_apart = True
            self.fallbacks += 1
            self._presence.complain()

    def _is_alone(self) -> bool:
        return self._presence is None or self._presence.is_away

    def _now(self) -> int:
        """Return the Unix time in microseconds."""
        return int(self._wall_clock() * SECOND)


def _refusal(
    outcome: Outcome, limits: Limits, day: int, wait_seconds: float
) -> RateLimited | DailyQuotaExceeded:
    if outcome.verdict is Verdict.QUOTA:
        return DailyQuotaExceeded(limits.daily or 0, day)
    return RateLimited(limits.rate, wait_seconds)
