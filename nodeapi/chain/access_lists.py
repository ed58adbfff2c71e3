"""Block access lists: made at import, or later by executing a stored block again.

From Amsterdam on, a list's hash is in the header. Earlier blocks have lists of the same
form, which no header confirms: index 0 has the system calls and the DAO's refund, and the
last index has withdrawals, requests and mining rewards.

Source: https://eips.ethereum.org/EIPS/eip-7928
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple

from evm import rlp
from evm.block_access_list import NOTHING_ACCESSED
from evm.execution import Outcome, execute_block
from evm.headers import ZERO_HASH
from evm.tracers.record import pack, unpack
from evm.world import World
from nodeapi.chain.replay import IsGenesis, Origin, find_origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import psycopg
    from eth_typing import Hash32

    from evm.chain_config import ChainConfig
    from evm.rules.fork import Fork

_INSERT: LiteralString = (
    "COPY nodeapi_blockaccesslist (block_id, list, gas) FROM STDIN (FORMAT BINARY)"
)
_ADD: LiteralString = (
    "INSERT INTO nodeapi_blockaccesslist (block_id, list, gas) VALUES (%b, %b, %b)"
    " ON CONFLICT DO NOTHING"  # another process may backfill, too
)
_EXAMINED_AT_ONCE = 10_000
"""Number of blocks of which a backfill reads the missing ones with one query."""
_READ: LiteralString = (
    "SELECT list, gas FROM nodeapi_blockaccesslist JOIN nodeapi_block AS block"
    " ON block.id = block_id WHERE network_id = %b AND hash = %b"
)
_MISSING: LiteralString = """
    SELECT id, hash, number FROM nodeapi_block AS block
    WHERE network_id = %(network)b AND is_canonical
        AND number BETWEEN %(first)b AND %(last)b AND NOT EXISTS (
            SELECT FROM nodeapi_blockaccesslist WHERE block_id = block.id
        )
    ORDER BY number DESC
"""


class AccessListRow(NamedTuple):
    """The access list of a block, and the gas of its transactions in two dimensions.

    Both are RLP; see `nodeapi.models.BlockAccessList`.
    """

    list: bytes
    gas: bytes


class ListDiffers(ValueError):
    """Raised when a block that is executed again has another list than its header says."""


def access_list_row(outcome: Outcome, fork: Fork) -> AccessListRow | None:
    """Return the row of an executed block, None if its list was not recorded."""
    if outcome.access_list is None:
        return None
    gas = b""
    if fork.prices.state is not None:
        gas = rlp.encode([list(map(rlp.encode_int, pair)) for pair in outcome.gas])
    return AccessListRow(outcome.access_list.raw, gas)


def insert_access_lists(
    cursor: psycopg.Cursor[Any], rows: Iterable[tuple[int, AccessListRow]]
) -> None:
    """Insert the lists of stored blocks, as pairs of block id and row."""
    with cursor.copy(_INSERT) as copy:
        copy.set_types(["int8", "bytea", "bytea"])
        for block_id, row in rows:
            copy.write_row((block_id, pack(row.list), row.gas))


def execute_for_list(origin: Origin) -> AccessListRow:
    """Execute a block again, and return its row. Raises: ListDiffers."""
    block, header = origin.block, origin.block.header
    outcome = execute_block(
        block,
        origin.fork,
        origin.config,
        World(origin.state),
        origin.ancestor_hashes,
        lambda: ZERO_HASH,  # only receipts contain it, which are not used here
        lists_accesses=True,
    )
    found = outcome.access_list
    assert found is not None, "requested"
    expected = header.block_access_list_hash
    if outcome.gas_used != header.gas_used or expected not in (None, found.hash):
        raise ListDiffers(
            f"block {header.number} 0x{header.hash.hex()}: executed again, it has the "
            f"gas used {outcome.gas_used} and the access list 0x{found.hash.hex()}"
        )
    row = access_list_row(outcome, origin.fork)
    assert row is not None, "requested"
    return row


def compute_access_list(
    connection: psycopg.Connection[Any],
    network_id: int,
    config: ChainConfig,
    block_hash: bytes,
) -> AccessListRow:
    """Return the row of a stored block, canonical or not, by executing it.

    Raises: NotTraceable if it or its parent is not stored; ListDiffers.
    """
    try:
        origin = find_origin(connection, network_id, config, block_hash)
    except IsGenesis:
        return AccessListRow(NOTHING_ACCESSED.raw, b"")
    return execute_for_list(origin)


def read_access_list(
    connection: psycopg.Connection[Any], network_id: int, block_hash: bytes
) -> AccessListRow | None:
    """Return the stored row of a block, None if there is none."""
    row = connection.execute(
        _READ, (network_id, block_hash), binary=True, prepare=True
    ).fetchone()
    return None if row is None else AccessListRow(unpack(row[0]), row[1])


def backfill_access_lists(
    connection: psycopg.Connection[Any],
    network_id: int,
    config: ChainConfig,
    first: int,
    last: int,
) -> Iterator[int]:
    """Add the missing lists of the canonical blocks `first` to `last`, the last one first.

    Each is committed by itself, so that an interrupted run loses nothing. Yields the
    number of each block whose list was added.

    Raises: ListDiffers; NotTraceable if a reorganisation removes a block meanwhile.
    """
    for block_id, block_hash, number in blocks_without_list(
        connection, network_id, first, last
    ):
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            row = compute_access_list(connection, network_id, config, block_hash)
            connection.execute(_ADD, (block_id, pack(row.list), row.gas))
        yield number


def blocks_without_list(
    connection: psycopg.Connection[Any], network_id: int, first: int, last: int
) -> Iterator[tuple[int, Hash32, int]]:
    """Yield id, hash and number of the canonical blocks without a list, the last first."""
    for top in range(last, first - 1, -_EXAMINED_AT_ONCE):
        lowest = max(first, top + 1 - _EXAMINED_AT_ONCE)
        yield from connection.execute(
            _MISSING, {"network": network_id, "first": lowest, "last": top}, binary=True
        ).fetchall()
