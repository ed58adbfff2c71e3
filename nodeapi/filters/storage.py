"""The states of filters in Redis. A filter belongs to the API key that created it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson
from redis.asyncio import Redis
from redis.exceptions import RedisError

from jsonrpc.errors import ServiceUnavailable
from nodeapi.errors.logs import TooManyFilters
from outbox.redis_address import connection_pool

LOGS = "logs"
BLOCKS = "blocks"
PENDING = "pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterState:
    """A filter's criteria, and the last block or transaction that was read.

    kind: LOGS, BLOCKS or PENDING.
    criteria: the argument of eth_newFilter, for LOGS.
    number, block_hash: the newest block that was read (`0x…`), for LOGS and BLOCKS.
        number is the id of the newest transaction of the local pool, for PENDING.
    is_full: whether transaction objects are returned instead of hashes, for PENDING.
    upstream_id, upstream_filter: the filter at an upstream, for PENDING. None: there is
        none yet.
    unread: hashes that the upstream has reported, but that no answer had room for.
    """

    network_id: int
    kind: str
    criteria: dict[str, Any] | None = None
    number: int = 0
    block_hash: str = ""
    is_full: bool = False
    upstream_id: int | None = None
    upstream_filter: str | None = None
    unread: Sequence[str] = ()

    def encode(self) -> bytes:
        """Return the state as JSON."""
        return orjson.dumps(asdict(self))

    @classmethod
    def decode(cls, document: bytes) -> FilterState:
        """Return the state of a result of `encode`."""
        return cls(**orjson.loads(document))


EXPIRY_SECONDS = 300
"""Time after the last poll at which a filter is deleted, as in geth."""

MAX_FILTERS = 1000
"""Maximum number of filters of an API key."""

MAX_BYTES = 2**24
"""Maximum size of the states of all filters of an API key. A filter with the highest
number of addresses and topics has about 300 kB."""

TIMEOUT_SECONDS = 1.0
"""Time limit for a connection to Redis and for each answer."""

MAX_CONNECTIONS = 8
"""Maximum number of connections of a process to Redis."""

_FOLDER = Path(__file__).parent
_ID_BITS = 128
_MAX_ID_LENGTH = 2 + _ID_BITS // 4
_FAILURES = (RedisError, OSError, TimeoutError)


class FilterStorage:
    """Adds, reads, replaces and removes states.

    All methods raise ServiceUnavailable if Redis does not answer.
    owner: the id of an API key. A filter of another key does not exist for it.
    """

    def __init__(
        self,
        url: str,
        *,
        expiry: float = EXPIRY_SECONDS,
        max_filters: int = MAX_FILTERS,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._redis = Redis.from_pool(
            connection_pool(
                url, max_connections=MAX_CONNECTIONS, timeout=TIMEOUT_SECONDS
            )
        )
        self._add = self._redis.register_script((_FOLDER / "add.lua").read_text())
        self._replace = self._redis.register_script(
            (_FOLDER / "replace.lua").read_text()
        )
        self._milliseconds = int(expiry * 1000)
        self._max_filters = max_filters
        self._max_bytes = max_bytes

    async def add(self, owner: int, state: bytes) -> str:
        """Add a filter and return its id, `0x…` with up to 128 random bits.

        Raises: TooManyFilters.
        """
        name = hex(secrets.randbits(_ID_BITS))
        limits = self._max_filters, self._max_bytes
        args = [name, state, self._milliseconds, *limits]
        added = await self._run(self._add, owner, name, args)
        if added < 0:
            raise TooManyFilters(self._max_bytes, is_size=True)
        if not added:
            raise TooManyFilters(self._max_filters)
        return name

    async def read(self, owner: int, name: str) -> bytes | None:
        """Return the state of a filter, None if there is no such filter."""
        if len(name) > _MAX_ID_LENGTH:
            return None
        try:
            found = await self._redis.get(_key(owner, name))
        except _FAILURES as error:
            raise ServiceUnavailable from error
        return found.encode() if isinstance(found, str) else found

    async def replace(self, owner: int, name: str, old: bytes, new: bytes) -> bool:
        """Replace the state of a filter, and postpone its expiry.

        old: the state on which the new one is based.

        Returns: whether the filter existed with that state.
        """
        args = [name, new, self._milliseconds, old]
        return bool(await self._run(self._replace, owner, name, args))

    async def remove(self, owner: int, name: str) -> bool:
        """Remove a filter. Return whether it existed."""
        if len(name) > _MAX_ID_LENGTH:
            return False
        try:
            async with self._redis.pipeline() as pipeline:
                pipeline.delete(_key(owner, name))
                pipeline.zrem(_set_key(owner), name)
                removed, _ = await pipeline.execute()
        except _FAILURES as error:
            raise ServiceUnavailable from error
        return bool(removed)

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()

    async def _run(self, script: Any, owner: int, name: str, args: list[Any]) -> int:
        try:
            return int(
                await script(keys=[_key(owner, name), _set_key(owner)], args=args)
            )
        except _FAILURES as error:
            raise ServiceUnavailable from error


def _key(owner: int, name: str) -> str:
    return f"portcullis:filter:{owner}:{name}"


def _set_key(owner: int) -> str:
    return f"portcullis:filters:{owner}"
