"""`/livez` and `/readyz`: whether a process is alive, and whether to send it requests.

Alive is a process whose event loop turns. Ready is one that is not about to leave and
whose database answers. Without Redis it stays ready: limits are counted in the process
then, and a load balancer that took all processes away would make that an outage.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

import orjson
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from config.lean import is_reading, refuse_method, send_answer
from config.running import running
from nodeapi.http import Receive, Scope, Send
from postgres.connections import Connections
from postgres.errors import Unavailable
from postgres.statement import Row, Statement, read_int8

FRESH_SECONDS = 1.0
"""How long what was found is told again: whoever asks oftener costs nothing."""

DATABASE_SECONDS = 2.0
REDIS_SECONDS = 0.5
"""How long an answer may take; load balancers wait for few seconds."""

_HEADS = Statement(
    """
    SELECT n.slug, n.head_number, b.timestamp FROM networks_network n
    LEFT JOIN nodeapi_block b ON b.network_id = n.id AND b.hash = n.head_hash
    ORDER BY n.id
    """
)


@dataclass(frozen=True, slots=True)
class Head:
    """The newest block of a network, None where there is none.

    timestamp: the block's own, in Unix seconds.
    """

    network: str
    number: int | None
    timestamp: int | None

    def age_seconds(self, now: float) -> float | None:
        """Return how long ago the block was made."""
        return None if self.timestamp is None else max(0.0, now - self.timestamp)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a look at the services found.

    heads: None when the database did not answer.
    """

    heads: list[Head] | None
    has_redis: bool
    seconds: float
    """How long the look took."""


class Health:
    """Looks at the services that a process needs; at most once a second."""

    def __init__(self, connections: Connections, redis_url: str) -> None:
        self._connections = connections
        self._redis = Redis.from_url(
            redis_url,
            socket_timeout=REDIS_SECONDS,
            socket_connect_timeout=REDIS_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
        self._looking: asyncio.Task[Finding] | None = None
        self._fresh_until = 0.0

    async def start(self) -> None:
        """Do nothing: what is needed is opened with the first look."""

    async def stop(self) -> None:
        """Hang up."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        await self._redis.aclose()

    async def look(self) -> Finding:
        """Return what was found within the last second, else look now."""
        looking = self._looking
        if looking is None or (looking.done() and time.monotonic() > self._fresh_until):
            looking = self._looking = asyncio.create_task(self._look())
        return await asyncio.shield(looking)

    async def _look(self) -> Finding:
        began = time.perf_counter()
        heads, has_redis = await asyncio.gather(self._heads(), self._asked_redis())
        self._fresh_until = time.monotonic() + FRESH_SECONDS
        return Finding(heads, has_redis, time.perf_counter() - began)

    async def _heads(self) -> list[Head] | None:
        try:
            async with asyncio.timeout(DATABASE_SECONDS):
                return [_head(row) for row in await self._connections.fetch(_HEADS)]
        except (Unavailable, TimeoutError):
            return None

    async def _asked_redis(self) -> bool:
        try:
            async with asyncio.timeout(REDIS_SECONDS):
                await self._redis.ping()
        except (RedisError, OSError, TimeoutError):
            return False
        return True


async def livez(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer that the event loop turns."""
    if is_reading(scope):
        await send_answer(scope, send, 200, b'{"status":"alive"}')
    else:
        await refuse_method(scope, send)


class Readiness:
    """Answers `/readyz`; an ASGI application."""

    def __init__(self, health: Health) -> None:
        self._health = health

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with what was found: 200 if requests may come, else 503."""
        if not is_reading(scope):
            await refuse_method(scope, send)
            return
        process = running(scope)
        if process is not None and process.is_draining:
            await send_answer(scope, send, 503, b'{"status":"draining"}')
            return
        found = await self._health.look()
        is_ready = found.heads is not None
        status = "ready" if is_ready else "unavailable"
        document = orjson.dumps({"status": status, **_checks(found)})
        await send_answer(scope, send, 200 if is_ready else 503, document)


def _checks(found: Finding) -> dict[str, Any]:
    now = time.time()
    return {
        "checks": {
            "database": "ok" if found.heads is not None else "away",
            "redis": "ok" if found.has_redis else "away: limits are per process",
        },
        "networks": {
            head.network: {
                "head": head.number,
                "head_age_seconds": head.age_seconds(now),
            }
            for head in found.heads or []
        },
    }


def _head(row: Row) -> Head:
    slug, number, timestamp = row
    return Head(
        (slug or b"").decode(),
        None if number is None else read_int8(number),
        None if timestamp is None else read_int8(timestamp),
    )
