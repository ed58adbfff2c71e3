"""The buckets in Redis, which all processes share."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from redis.asyncio import Redis
from redis.exceptions import RedisError

from keys.limiter.gcra import DAY, Bucket, Limits, Outcome, Verdict
from outbox.redis_address import check_writes, connection_pool

TIMEOUT_SECONDS = 1.0
"""A script takes 0.1 ms. The timeout is much longer, because a process that continues without
Redis does not know what the others admit. A stopped Redis refuses connections at once."""

MAX_CONNECTIONS = 8
"""In one process. A connection runs thousands of scripts a second."""

_SCRIPT = (Path(__file__).parent / "take.lua").read_text()


_FAILURES = (RedisError, OSError, TimeoutError)


class RedisUnavailable(Exception):
    """Raised when Redis can't be reached, does not answer in time, or reports an error."""


class Taken(NamedTuple):
    """The outcome of a request, and the bucket after it.

    now: Redis' clock in microseconds of Unix time, which `bucket` refers to.
    """

    outcome: Outcome
    bucket: Bucket
    now: int


class Buckets:
    """Takes credits in Redis, atomically.

    timeout: seconds, for a connection and for each answer.
    """

    def __init__(self, url: str, *, timeout: float = TIMEOUT_SECONDS) -> None:
        self._redis = Redis.from_pool(
            connection_pool(url, max_connections=MAX_CONNECTIONS, timeout=timeout)
        )
        self._script = self._redis.register_script(_SCRIPT)

    async def take(
        self,
        api_key_id: int,
        limits: Limits,
        *,
        needed: int,
        lease: int = 0,
        returned: int = 0,
        backlog: int = 0,
        used: int = 0,
    ) -> Taken:
        """Run `gcra.take` in Redis, with Redis' clock. The parameters are the same.

        Raises: RedisUnavailable if Redis does not answer in time.
        """
        numbers = (limits.rate, limits.burst, limits.daily or 0)
        try:
            answer = await self._script(
                keys=[f"portcullis:bucket:{api_key_id}"],
                args=[*numbers, needed, lease, returned, backlog, used],
            )
        except _FAILURES as error:
            raise _unavailable(error) from error
        verdict, credits, wait, now, arrival, spent = map(int, answer)
        return Taken(
            Outcome(Verdict(verdict), credits, wait),
            Bucket(arrival, now // DAY, spent),
            now,
        )

    async def check(self) -> None:
        """Check that Redis accepts writes. Raises: RedisUnavailable."""
        try:
            await check_writes(self._redis)
        except _FAILURES as error:
            raise _unavailable(error) from error

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()


def _unavailable(error: Exception) -> RedisUnavailable:
    return RedisUnavailable(f"{type(error).__name__}: {error}")
