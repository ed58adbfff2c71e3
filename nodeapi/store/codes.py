"""Contract code by its hash, for the answers that show it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from nodeapi.store import record_queries
from nodeapi.store.base import CacheKey
from postgres.cache import BytesCache
from postgres.connections import Connections
from postgres.errors import Unavailable
from postgres.lookup import Lookup
from postgres.statement import BYTEA, Row


class Codes:
    """Reads code; what was read lately is kept with the other answers."""

    def __init__(self, connections: Connections, cache: BytesCache[CacheKey]) -> None:
        self._cache = cache
        self._lookup: Lookup[tuple[bytes], bytes] = Lookup(
            connections,
            record_queries.CODE,
            [("hash", BYTEA)],
            _code,
            max_batch=64,
            is_immutable=True,
        )

    async def get(self, code_hash: bytes) -> bytes:
        """Return the code with a hash. Raises: Unavailable."""
        cached = self._cache.get(("code", code_hash))
        if cached is not None:
            return cached
        code = await self._lookup.get((code_hash,))
        if code is None:
            raise Unavailable(f"the code 0x{code_hash.hex()} is missing")
        self._cache.put(("code", code_hash), code)
        return code

    async def get_all(self, code_hashes: Collection[bytes]) -> dict[bytes, bytes]:
        """Return code by hash. Raises: Unavailable."""
        codes = await asyncio.gather(*map(self.get, code_hashes))
        return dict(zip(code_hashes, codes, strict=True))


def _code(row: Row) -> bytes:
    code = row[0]
    assert code is not None
    return code
