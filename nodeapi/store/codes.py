"""Contract code by its hash, for the answers that show it."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from jsonrpc.later import Later, all_of
from nodeapi.store import record_queries
from nodeapi.store.base import CacheKey
from postgres.cache import BytesCache
from postgres.connections import Connections
from postgres.errors import Unavailable
from postgres.lookup import Lookup
from postgres.statement import BYTEA, Row


class Codes:
    """Reads contract code, in the cache of all answers."""

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

    def get(self, code_hash: bytes) -> Later[bytes]:
        """Return the code with a hash. Fails with Unavailable."""
        cached = self._cache.get(("code", code_hash))
        if cached is not None:
            return Later(cached)
        found = Later.from_future(self._lookup.get((code_hash,)))
        return found.then(partial(self._keep, code_hash))

    def get_all(self, code_hashes: Collection[bytes]) -> Later[dict[bytes, bytes]]:
        """Return code by hash. Fails with Unavailable."""
        codes = all_of([self.get(code_hash) for code_hash in code_hashes])
        return codes.then(lambda found: dict(zip(code_hashes, found, strict=True)))

    def _keep(self, code_hash: bytes, code: bytes | None) -> bytes:
        if code is None:
            raise Unavailable(f"the code 0x{code_hash.hex()} is missing")
        self._cache.put(("code", code_hash), code)
        return code


def _code(row: Row) -> bytes:
    code = row[0]
    assert code is not None
    return code
