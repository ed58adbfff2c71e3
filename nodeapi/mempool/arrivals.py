"""Transactions in the order in which they were added to local pools."""

from __future__ import annotations

from typing import NamedTuple

from postgres.connections import Connections
from postgres.statement import INT8, Statement, int8, read_int8

_NEWEST = Statement(
    "SELECT coalesce(max(id), 0) FROM nodeapi_pooledtransaction WHERE network_id = $1",
    [INT8.oid],
)
_ADDED = Statement(
    """
    SELECT id, hash, document FROM nodeapi_pooledtransaction
    WHERE network_id = $1 AND id > $2 ORDER BY id LIMIT $3
    """,
    [INT8.oid] * 3,
)
"""network_id, id, limit → the transactions with higher ids."""


class Arrival(NamedTuple):
    """A transaction that was added to a local pool.

    number: rises with each addition. hash, document: the hash and the transaction object,
        both as JSON.
    """

    number: int
    hash: bytes
    document: bytes


class Arrivals:
    """Reads additions to local pools. The methods raise Unavailable."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def newest(self, network_id: int) -> int:
        """Return the number of the last addition, 0 without any."""
        (row,) = await self._connections.fetch(_NEWEST, [int8(network_id)])
        return read_int8(row[0] or b"")

    async def after(self, network_id: int, number: int, limit: int) -> list[Arrival]:
        """Return the first additions after the one with a number.

        Transactions that have left the pool since are left out.
        """
        rows = await self._connections.fetch(
            _ADDED, [int8(network_id), int8(number), int8(limit)]
        )
        return [
            Arrival(
                read_int8(added or b""),
                b'"0x%s"' % (name or b"").hex().encode(),
                document or b"",
            )
            for added, name, document in rows
        ]
