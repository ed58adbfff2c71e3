"""The buckets that all processes share, in Redis."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from keys.limiter.gcra import DAY, Bucket, Limits, Outcome, Verdict

TIMEOUT_SECONDS = 1.0
"""A script takes 0.1 ms, yet a Redis or a machine with much to do is waited for: who goes
on alone can't know what the other processes let in. One that is stopped refuses at once.
"""

MAX_CONNECTIONS = 8
"""Of a process; a connection does thousands of scripts a second."""

_SCRIPT = (Path(__file__).parent / "take.lua").read_text()


_FAILURES = (RedisError, OSError, TimeoutError)


class Away(Exception):
    """Raised when Redis does not answer, or not in time, or with an error."""


class Taken(NamedTuple):
    """What came of asking, and the bucket as it is then, by the clock `now`."""

    outcome: Outcome
    bucket: Bucket
    now: int


class Buckets:
    """Takes credits in Redis, atomically.

    timeout: seconds, for a connection and for each answer.
    """

    def __init__(self, url: str, *, timeout: float = TIMEOUT_SECONDS) -> None:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=MAX_CONNECTIONS,
            timeout=timeout,
            socket_timeout=timeout,
            socket_connect_timeout=timeout,
            retry=Retry(NoBackoff(), 0),
        )
        self._redis = Redis.from_pool(pool)
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
        """Do what `gcra.take` does, by Redis' clock.

        Raises: Away.
        """
        numbers = (limits.rate, limits.burst, limits.daily or 0)
        try:
            answer = await self._script(
                keys=[f"portcullis:bucket:{api_key_id}"],
                args=[*numbers, needed, lease, returned, backlog, used],
            )
        except _FAILURES as error:
            raise _away(error) from error
        verdict, credits, wait, now, arrival, spent = map(int, answer)
        return Taken(
            Outcome(Verdict(verdict), credits, wait),
            Bucket(arrival, now // DAY, spent),
            now,
        )

    async def look(self) -> None:
        """Return if Redis answers.

        Raises: Away.
        """
        try:
            await self._redis.ping()
        except _FAILURES as error:
            raise _away(error) from error

    async def close(self) -> None:
        """Hang up."""
        await self._redis.aclose()


def _away(error: Exception) -> Away:
    return Away(f"{type(error).__name__}: {error}")
