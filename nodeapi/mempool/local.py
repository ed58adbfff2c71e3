"""The local pool of networks without upstreams.

It is a table that all processes share. Its transactions are not included in blocks: the
network's blocks come from files. A transaction leaves the pool when a block with its
nonce is imported, when its sender can't pay for it any more, or after some hours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from evm.transactions import BLOB
from jsonrpc.later import Later
from nodeapi.mempool import answers
from nodeapi.mempool.alive import IS_ALIVE, OF_SENDER, alive, next_nonce_query
from nodeapi.mempool.answers import Listed
from nodeapi.mempool.writer import PoolWriter
from nodeapi.sending.decoding import Submission
from postgres.connections import Connections
from postgres.lookup import Lookup
from postgres.statement import BYTEA, INT8, Row, Statement, int8, read_bool, read_int8

_FIND = f"""
    SELECT k.n, {{column}} FROM k JOIN nodeapi_pooledtransaction p
        ON p.network_id = k.network_id AND p.hash = k.hash
    LEFT JOIN LATERAL ({OF_SENDER}) a ON true
    WHERE {IS_ALIVE}
"""
_STATUS = Statement(
    f"""
    SELECT count(*) FILTER (WHERE is_pending),
        count(*) FILTER (WHERE NOT is_pending)
    FROM ({alive("$1")}) t
    """,
    [INT8.oid],
)
_LISTED = f"""
    SELECT sender, nonce::text, is_pending, document FROM ({{alive}}) t
    WHERE type <> {BLOB} ORDER BY sender, nonce
"""
_ALL = Statement(_LISTED.format(alive=alive("$1")), [INT8.oid])
_OF_ONE = Statement(_LISTED.format(alive=alive("$1", "$2")), [INT8.oid, BYTEA.oid])
_NEXT_NONCE = Statement(next_nonce_query("$1", "$2"), [INT8.oid, BYTEA.oid])


class LocalPool:
    """Adds and reads transactions. All methods raise Unavailable without the database.

    conninfo: connection string of libpq, for writes.
    """

    def __init__(self, connections: Connections, conninfo: str) -> None:
        self._connections = connections
        self._writer = PoolWriter(conninfo)
        self._documents, self._raws = (
            Lookup[tuple[int, bytes], bytes](
                connections,
                _FIND.format(column=column),
                [("network_id", INT8), ("hash", BYTEA)],
                _column,
            )
            for column in ("p.document", "coalesce(nullif(p.network_form, ''), p.raw)")
        )

    async def add(self, network_id: int, submission: Submission) -> None:
        """Add a transaction that follows the rules of `nodeapi.sending.rules`.

        Raises: TransactionRejected.
        """
        await self._writer.add(network_id, submission)

    async def close(self) -> None:
        """Close the connection for writes."""
        await self._writer.close()

    def find(self, network_id: int, transaction_hash: bytes) -> Later[bytes | None]:
        """Return the object of a pooled transaction as JSON, None if there is none."""
        return Later.from_future(self._documents.get((network_id, transaction_hash)))

    def find_raw(self, network_id: int, transaction_hash: bytes) -> Later[bytes | None]:
        """Return a pooled transaction as EIP-2718 encodes it, None if there is none.

        A blob transaction is returned with its sidecar, as it was sent.
        """
        return Later.from_future(self._raws.get((network_id, transaction_hash)))

    async def next_nonce(self, network_id: int, address: bytes) -> int:
        """Return an account's nonce after its pending transactions."""
        ((nonce,),) = await self._connections.fetch(
            _NEXT_NONCE, [int8(network_id), address]
        )
        return int(nonce or b"0")

    async def status(self, network_id: int) -> bytes:
        """Return the result of txpool_status."""
        ((pending, queued),) = await self._connections.fetch(
            _STATUS, [int8(network_id)]
        )
        return answers.status(read_int8(pending or b""), read_int8(queued or b""))

    async def content(self, network_id: int) -> bytes:
        """Return the result of txpool_content."""
        rows = await self._connections.fetch(_ALL, [int8(network_id)])
        return await _in_thread(answers.content, rows)

    async def inspect(self, network_id: int) -> bytes:
        """Return the result of txpool_inspect."""
        rows = await self._connections.fetch(_ALL, [int8(network_id)])
        return await _in_thread(answers.inspect, rows)

    async def content_from(self, network_id: int, address: bytes) -> bytes:
        """Return the result of txpool_contentFrom."""
        rows = await self._connections.fetch(_OF_ONE, [int8(network_id), address])
        return answers.content_from(map(_listed, rows))


async def _in_thread(
    write: Callable[[Iterable[Listed]], bytes], rows: list[Row]
) -> bytes:
    """Return the JSON of all rows. Thousands of them take some milliseconds."""
    return await asyncio.to_thread(lambda: write(map(_listed, rows)))


def _column(row: Row) -> bytes:
    return row[0] or b""


def _listed(row: Row) -> Listed:
    sender, nonce, is_pending, document = row
    return Listed(
        sender or b"", int(nonce or b"0"), read_bool(is_pending or b""), document or b""
    )
