"""Reads by account: its appearances, its creation, and its transactions by nonce."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from evm.tracers.parties import CREATED
from jsonrpc.later import Later
from nodeapi.chain.appearances import read_places
from nodeapi.errors.blocks import HistoryPruned
from nodeapi.store.base import Reads
from nodeapi.store.transactions import Place
from postgres.statement import (
    BYTEA,
    INT8,
    Row,
    Statement,
    int8,
    read_array,
    read_int8,
    read_int8_array,
)

_MAX_NONCE = 2**63 - 1
"""Largest nonce that can be searched for. No account has sent as many transactions."""

_CANONICAL = """
    nodeapi_block b ON b.network_id = a.network_id
        AND b.number = a.block_number AND b.is_canonical
"""


def _appearances(condition: str, order: str) -> str:
    """Return the query $1 network_id, $2 address, $3 number, $4 limit → arrays.

    The result has one row: block numbers, block hashes, places.
    """
    return f"""
        SELECT array_agg(f.block_number ORDER BY f.block_number {order}),
            array_agg(f.hash ORDER BY f.block_number {order}),
            array_agg(f.places ORDER BY f.block_number {order})
        FROM (
            SELECT a.block_number, b.hash, a.places
            FROM nodeapi_appearance a JOIN {_CANONICAL}
            WHERE a.network_id = $1 AND a.address = $2 AND a.block_number {condition} $3
                AND a.places <> ''
            ORDER BY a.block_number {order} LIMIT $4
        ) f
    """


_SEARCH_TYPES = [INT8.oid, BYTEA.oid, INT8.oid, INT8.oid]
_BEFORE = Statement(_appearances("<", "DESC"), _SEARCH_TYPES)
_AFTER = Statement(_appearances(">", "ASC"), _SEARCH_TYPES)

_CREATION = Statement(
    f"""
    SELECT b.hash, a.block_number, a.places
    FROM nodeapi_appearance a JOIN {_CANONICAL}
    WHERE a.network_id = $1 AND a.address = $2 AND a.is_creation
    ORDER BY a.block_number DESC LIMIT 1
    """,
    [INT8.oid, BYTEA.oid],
)
"""network_id, address → block hash, number and places of the newest creation."""

_SENT = Statement(
    """
    WITH RECURSIVE bounds (low, high) AS (
        SELECT 0::int8, head_number FROM networks_network WHERE id = $1
        UNION ALL
        SELECT CASE WHEN is_above THEN low ELSE middle + 1 END,
            CASE WHEN is_above THEN middle ELSE high END
        FROM bounds CROSS JOIN LATERAL (SELECT (low + high) / 2 AS middle) m
        CROSS JOIN LATERAL (
            SELECT coalesce((
                SELECT v.nonce FROM nodeapi_accountversion v
                WHERE v.network_id = $1 AND v.address = $2 AND v.block_number <= middle
                ORDER BY v.block_number DESC LIMIT 1
            ), 0) > $3 AS is_above
        ) n
        WHERE low < high
    )
    SELECT t.hash, t.document
    FROM bounds JOIN nodeapi_block b
        ON b.network_id = $1 AND b.number = bounds.low AND b.is_canonical
    JOIN nodeapi_transaction t ON t.block_id = b.id
    WHERE bounds.low = bounds.high AND position($4 in t.document) > 0
    """,
    [INT8.oid, BYTEA.oid, INT8.oid, BYTEA.oid],
)
"""network_id, sender, nonce, text that contains the sender → hash and object of the
transactions with this text in the block in which the sender's nonce rose above the nonce.

The block is found by bisection: the nonce of a sender never decreases."""

_NONCE = re.compile(rb'"to":[^,]*,"nonce":"0x([0-9a-f]+)"')


@dataclass(frozen=True, slots=True)
class BlockAppearances:
    """A canonical block in whose call frames an account appears."""

    number: int
    block_hash: bytes
    indexes: list[int]
    """The transactions with these frames, in ascending order."""


class AppearanceReads(Reads):
    """Reads by account. All fail with Unavailable while the database is unavailable."""

    def appearances_before(
        self, network_id: int, address: bytes, number: int, limit: int
    ) -> Later[list[BlockAppearances]]:
        """Return the newest blocks below a number in which an account appears.

        limit: maximum number of blocks. The newest block is the first.

        Fails with HistoryPruned if no block is found, but older ones were not executed.
        """
        parameters = [int8(network_id), address, int8(number), int8(limit)]
        rows = self._connections.fetch(_BEFORE, parameters)
        first = self._first_executed(network_id)
        return Later.from_future(rows).then(partial(_found_before, first))

    def appearances_after(
        self, network_id: int, address: bytes, number: int, limit: int
    ) -> Later[list[BlockAppearances]]:
        """Return the oldest blocks above a number in which an account appears.

        limit: maximum number of blocks. The oldest block is the first.

        Fails with HistoryPruned if blocks above the number were not executed.
        """
        parameters = [int8(network_id), address, int8(number), int8(limit)]
        rows = self._connections.fetch(_AFTER, parameters)
        first = self._first_executed(network_id)
        return Later.from_future(rows).then(partial(_found_after, first, number))

    def contract_creation(self, network_id: int, address: bytes) -> Later[Place | None]:
        """Return the newest transaction that created a contract, or None.

        Fails with HistoryPruned if it may be in a block that was not executed.
        """
        rows = self._connections.fetch(_CREATION, [int8(network_id), address])
        first = self._first_executed(network_id)
        return Later.from_future(rows).then(partial(_creation, first))

    def _first_executed(self, network_id: int) -> int:
        """Return the number of the first block that is indexed because it was executed.

        0 for a network that started at block 0.
        """
        view = self._directory.get(network_id)
        if view is None or view.checkpoint_number is None:
            return 0
        return view.checkpoint_number + 1

    def sent_transaction(
        self, network_id: int, sender: bytes, nonce: int
    ) -> Later[bytes | None]:
        """Return the hash of the canonical transaction with a sender and nonce.

        If the network started at a checkpoint, the account has to be known there, with a
        nonce that is not higher.
        """
        if nonce > _MAX_NONCE:
            return Later(None)
        text = b'"from":"0x%b","to"' % sender.hex().encode()
        parameters = [int8(network_id), sender, int8(nonce), text]
        rows = self._connections.fetch(_SENT, parameters)
        return Later.from_future(rows).then(partial(_sent, nonce))


def _blocks(row: Row) -> list[BlockAppearances]:
    numbers = read_int8_array(row[0] or b"")
    hashes, places = (read_array(column or b"") for column in row[1:])
    return [
        BlockAppearances(number, block_hash, [index for index, _ in read_places(found)])
        for number, block_hash, found in zip(numbers, hashes, places, strict=True)
    ]


def _found_before(first: int, rows: Sequence[Row]) -> list[BlockAppearances]:
    blocks = _blocks(rows[0])
    if first and not blocks:
        raise HistoryPruned(first)
    return blocks


def _found_after(
    first: int, number: int, rows: Sequence[Row]
) -> list[BlockAppearances]:
    if number + 1 < first:
        raise HistoryPruned(first)
    return _blocks(rows[0])


def _creation(first: int, rows: Sequence[Row]) -> Place | None:
    if not rows:
        if first:
            raise HistoryPruned(first)
        return None
    block_hash, number, places = (column or b"" for column in rows[0])
    created = [index for index, roles in read_places(places) if roles & CREATED]
    return Place(block_hash, read_int8(number), created[-1])


def _sent(nonce: int, rows: Sequence[Row]) -> bytes | None:
    for name, document in rows:
        found = _NONCE.search(document or b"")
        if found is not None and int(found[1], 16) == nonce:
            return name
    return None
