"""`/livez` and `/readyz`: whether a process is alive, and whether it can get requests.

A process is alive if its event loop runs. It is ready if it is not shutting down, its
database answers, and it knows all committed changes. Without Redis, or if
Redis refuses writes, it remains ready and says so, because limits are then counted in the
process, and changes are found by polling. Otherwise, a load balancer would remove all processes.

A request may also demand that networks are current: `/readyz?network=dev&max_lag=30`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any
from urllib.parse import parse_qsl

import orjson
from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.gateway import LazyPart
from config.lean import is_reading, refuse_method, send_answer
from config.shared_result import SharedResult
from evm.headers import decode_header
from outbox.redis_address import check_writes, connection_pool
from outbox.subscriber import Subscriber
from postgres.connections import Connections
from postgres.errors import Unavailable
from postgres.statement import Row, Statement, read_int8
from server.asgi import Receive, Scope, Send
from server.process import process_of

FRESH_SECONDS = 1.0
"""How long a result is cached. More frequent requests cost nothing."""

DATABASE_SECONDS = 2.0
REDIS_SECONDS = 0.5
"""Timeout of the check. Load balancers wait for few seconds."""

_HEADS = Statement(
    """
    SELECT n.slug, n.head_number, b.header FROM networks_network n
    LEFT JOIN nodeapi_block b ON b.network_id = n.id AND b.hash = n.head_hash
    ORDER BY n.id
    """
)


@dataclass(frozen=True, slots=True)
class Head:
    """The newest block of a network. Its fields are None if there is none.

    timestamp: the block's own, in Unix seconds.
    """

    network: str
    number: int | None
    timestamp: int | None

    def age_seconds(self, now: float) -> float | None:
        """Return the seconds since the block's timestamp, or None without a block.

        now: Unix seconds.
        """
        return None if self.timestamp is None else max(0.0, now - self.timestamp)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a health check.

    heads: None if the database did not answer.
    has_redis: whether Redis accepts writes.
    """

    heads: list[Head] | None
    has_redis: bool
    seconds: float
    """Duration of the check."""
    knows_changes: bool = True
    """Whether all committed changes are known, up to those of the last two seconds."""
    has_messages: bool = True
    """Whether changes are reported by messages; otherwise by polling only."""


class Health(LazyPart):
    """Checks the services that a process needs, at most once a second."""

    def __init__(
        self, connections: Connections, subscriber: Subscriber, redis_url: str
    ) -> None:
        self._connections = connections
        self._subscriber = subscriber
        self._redis = Redis.from_pool(
            connection_pool(redis_url, max_connections=1, timeout=REDIS_SECONDS)
        )
        self._result = SharedResult(self._look, FRESH_SECONDS)

    async def stop(self) -> None:
        """Close the connections."""
        await self._result.stop()
        await self._redis.aclose()

    async def look(self) -> Finding:
        """Return the result of a check within the last second, otherwise check now."""
        return await self._result.get()

    async def _look(self) -> Finding:
        began = time.perf_counter()
        heads, has_redis = await asyncio.gather(self._heads(), self._has_redis())
        return Finding(
            heads,
            has_redis,
            time.perf_counter() - began,
            knows_changes=self._subscriber.epoch != 0,
            has_messages=self._subscriber.has_messages,
        )

    async def _heads(self) -> list[Head] | None:
        try:
            async with asyncio.timeout(DATABASE_SECONDS):
                return [_head(row) for row in await self._connections.fetch(_HEADS)]
        except (Unavailable, TimeoutError):
            return None

    async def _has_redis(self) -> bool:
        try:
            async with asyncio.timeout(REDIS_SECONDS):
                await check_writes(self._redis)
        except (RedisError, OSError, TimeoutError):
            return False
        return True


async def livez(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer 200, which shows that the event loop is running."""
    if is_reading(scope):
        await send_answer(scope, send, 200, b'{"status":"alive"}')
    else:
        await refuse_method(scope, send)


@dataclass(frozen=True, slots=True)
class Demand:
    """The conditions for networks in a request to `/readyz`.

    networks: slugs of the networks that must have a head.
    max_lag: largest age of their heads in seconds; None: any age.
    """

    networks: tuple[str, ...] = ()
    max_lag: float | None = None

    @classmethod
    def parse(cls, query: bytes) -> Demand:
        """Read a query string. Unknown parameters are ignored.

        Raises: ValueError with a message for the client.
        """
        networks: dict[str, None] = {}
        max_lag = None
        for name, value in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
            if name == "network":
                networks[value] = None
            elif name == "max_lag":
                max_lag = _seconds(value)
        if max_lag is not None and not networks:
            raise ValueError("max_lag needs network")
        return cls(tuple(networks), max_lag)

    def unknown(self, heads: list[Head]) -> list[str]:
        """Return the slugs that belong to no network."""
        known = {head.network for head in heads}
        return [slug for slug in self.networks if slug not in known]

    def failures(self, heads: list[Head], now: float) -> Iterator[str]:
        """Yield each failed condition as text for the client. now: Unix seconds."""
        for head in heads:
            if head.network in self.networks:
                age = head.age_seconds(now)
                if age is None:
                    yield f"{head.network} has no block"
                elif self.max_lag is not None and age > self.max_lag:
                    yield (
                        f"{head.network} is {age:.0f} s behind,"
                        f" {self.max_lag:g} s are allowed"
                    )


def _seconds(value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < inf:
        raise ValueError("max_lag must be a number of seconds")
    return seconds


class Readiness:
    """The ASGI application of `/readyz`."""

    def __init__(self, health: Health) -> None:
        self._health = health

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond with the result of the check.

        The status is 200 if the process is ready and the demanded networks are current,
        otherwise 503. An invalid query is answered with 400, and one that names an
        unknown network with 404.
        """
        if not is_reading(scope):
            await refuse_method(scope, send)
            return
        process = process_of(scope)
        if process is not None and process.is_draining:
            await send_answer(scope, send, 503, b'{"status":"draining"}')
            return
        try:
            demand = Demand.parse(scope["query_string"])
        except ValueError as error:
            await send_answer(scope, send, 400, _status(f"invalid query: {error}"))
            return
        found = await self._health.look()
        heads = found.heads or []
        unknown = [] if found.heads is None else demand.unknown(heads)
        if unknown:
            text = f"unknown network: {', '.join(unknown)}"
            await send_answer(scope, send, 404, _status(text))
            return
        now = time.time()
        checks = _checks(found)
        failures = list(demand.failures(heads, now))
        if demand.networks:
            known = "ok" if found.heads is not None else "unknown"
            checks["lag"] = "; ".join(failures) or known
        is_ready = found.heads is not None and found.knows_changes and not failures
        document = {
            "status": "ready" if is_ready else "unavailable",
            "checks": checks,
            "networks": _networks(heads, now),
        }
        answer = orjson.dumps(document)
        await send_answer(scope, send, 200 if is_ready else 503, answer)


def _status(text: str) -> bytes:
    return orjson.dumps({"status": text})


def _checks(found: Finding) -> dict[str, str]:
    return {
        "database": "ok" if found.heads is not None else "unavailable",
        "changes": _state_of_changes(found),
        "redis": "ok" if found.has_redis else "unavailable: limits are per process",
    }


def _networks(heads: list[Head], now: float) -> dict[str, Any]:
    return {
        head.network: {"head": head.number, "head_age_seconds": head.age_seconds(now)}
        for head in heads
    }


def _state_of_changes(found: Finding) -> str:
    if not found.knows_changes:
        return "unknown"
    return "ok" if found.has_messages else "ok: read once per second"


def _head(row: Row) -> Head:
    slug, number, header = row
    return Head(
        (slug or b"").decode(),
        None if number is None else read_int8(number),
        None if header is None else decode_header(header).timestamp,
    )
