"""Reads of headers, singly and of consecutive blocks."""

from __future__ import annotations

import asyncio

from evm.headers import Header, decode_header
from jsonrpc.later import Later
from nodeapi.store.base import Reads, Sources
from postgres.errors import Unavailable
from postgres.lookup import Lookup
from postgres.statement import BYTEA, INT8, Row, Statement, int8

_SHORT_RANGE = 32
"""Maximum number of headers that are decoded without a thread. One takes 15 µs."""

_HEADER = """
    SELECT k.n, b.header FROM k JOIN nodeapi_block b
        ON b.network_id = k.network_id AND b.hash = k.hash
"""

_CANONICAL_HEADERS = Statement(
    "SELECT header FROM nodeapi_block WHERE network_id = $1 AND is_canonical"
    " AND number BETWEEN $2 AND $3 ORDER BY number",
    [INT8.oid] * 3,
)


class HeaderReads(Reads):
    """Reads of headers. All results fail with Unavailable."""

    def __init__(self, sources: Sources) -> None:
        super().__init__(sources)
        self._headers: Lookup[tuple[int, bytes], bytes] = Lookup(
            sources.connections,
            _HEADER,
            [("network_id", INT8), ("hash", BYTEA)],
            _header,
            is_immutable=True,
        )

    def header(self, network_id: int, block_hash: bytes) -> Later[Header | None]:
        """Return the header of any stored block, or None if the block is unknown."""
        found = Later.from_future(self._headers.get((network_id, block_hash)))
        return found.then(lambda raw: None if raw is None else decode_header(raw))

    async def canonical_headers(
        self, network_id: int, first: int, last: int
    ) -> list[Header]:
        """Return the headers of the canonical blocks first … last, in order.

        Blocks above the head are missing.
        """
        numbers = [int8(network_id), int8(first), int8(last)]
        rows = await self._connections.fetch(_CANONICAL_HEADERS, numbers)
        if len(rows) > _SHORT_RANGE:
            return await asyncio.to_thread(_decoded, rows)
        return _decoded(rows)

    async def existing_header(self, network_id: int, block_hash: bytes) -> Header:
        """Return the header of a block that was stored a moment ago.

        Raises: Unavailable if it has been removed since.
        """
        header = await self.header(network_id, block_hash)
        if header is None:
            raise Unavailable("the block was removed")
        return header


def _decoded(rows: list[Row]) -> list[Header]:
    return [decode_header(raw or b"") for (raw,) in rows]


def _header(row: Row) -> bytes:
    header = row[0]
    assert header is not None
    return header
