"""Blocks off the canonical chain: their states, and how the chain moves over to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eth_typing import Address, Hash32

from nodeapi.chain.forkchoice import forget_demoted
from nodeapi.evm.blocks import Block, decode_body
from nodeapi.evm.changes import AccountValue, Changes, decode_changes, encode_changes
from nodeapi.evm.headers import Header, decode_header
from nodeapi.evm.world import EMPTY_CODE_HASH

if TYPE_CHECKING:
    from collections.abc import Iterable

    import psycopg


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """A block of the database, without its transactions."""

    id: int
    header: Header
    total_difficulty: int
    is_canonical: bool
    body: bytes

    def block(self) -> Block:
        """Return the whole block."""
        return decode_body(self.header, self.body)


_COLUMNS = "id, header, total_difficulty, is_canonical, body"


def _stored_block(row: tuple[Any, ...]) -> StoredBlock:
    block_id, header, total_difficulty, is_canonical, body = row
    return StoredBlock(
        block_id, decode_header(header), int(total_difficulty), is_canonical, body
    )


class Branches:
    """One network's blocks by hash, and the differences between their states."""

    def __init__(self, connection: psycopg.Connection[Any], network_id: int) -> None:
        self._connection = connection
        self._network_id = network_id

    def find(self, block_hash: bytes) -> StoredBlock | None:
        """Return a block, None when there is none with this hash."""
        row = self._connection.execute(
            f"SELECT {_COLUMNS} FROM nodeapi_block WHERE network_id = %b AND hash = %b",
            (self._network_id, block_hash),
            binary=True,
        ).fetchone()
        return None if row is None else _stored_block(row)

    def ancestors(self, block: StoredBlock, count: int) -> list[StoredBlock]:
        """Return the block and those before it, newest first, `count` in all at most."""
        rows = self._connection.execute(
            "WITH RECURSIVE line AS ("
            "  SELECT *, 1 AS depth FROM nodeapi_block WHERE id = %b"
            "  UNION ALL SELECT parent.*, depth + 1 FROM line"
            "  JOIN nodeapi_block AS parent ON parent.network_id = line.network_id"
            "  AND parent.hash = line.parent_hash WHERE depth < %b"
            f") SELECT {_COLUMNS} FROM line ORDER BY depth",
            (block.id, count),
            binary=True,
        ).fetchall()
        return [_stored_block(row) for row in rows]

    def ancestor_hashes(self, block: StoredBlock, count: int) -> list[Hash32]:
        """Return the hashes of the block and those before it, newest first."""
        rows = self._connection.execute(
            "WITH RECURSIVE line AS ("
            "  SELECT network_id, hash, parent_hash, 1 AS depth"
            "  FROM nodeapi_block WHERE id = %b"
            "  UNION ALL SELECT parent.network_id, parent.hash, parent.parent_hash,"
            "  depth + 1 FROM line"
            "  JOIN nodeapi_block AS parent ON parent.network_id = line.network_id"
            "  AND parent.hash = line.parent_hash WHERE depth < %b"
            ") SELECT hash FROM line ORDER BY depth",
            (block.id, count),
            binary=True,
        ).fetchall()
        return [Hash32(row[0]) for row in rows]

    def side_line(self, block: StoredBlock) -> tuple[StoredBlock, list[StoredBlock]]:
        """Return where a block's line leaves the canonical chain, and the line from there.

        The line is oldest first and ends with the block; it is empty for a canonical
        block, which is its own fork point.
        """
        line: list[StoredBlock] = []
        while not block.is_canonical:
            line.append(block)
            parent = self.find(block.header.parent_hash)
            if parent is None:
                raise LookupError(f"no parent of 0x{block.header.hash.hex()}")
            block = parent
        return block, line[::-1]

    def side_changes(self, block: StoredBlock) -> Changes:
        """Return what a side block changes in its parent's state."""
        row = self._connection.execute(
            "SELECT diff FROM nodeapi_sidediff WHERE block_id = %b",
            (block.id,),
            binary=True,
        ).fetchone()
        if row is None:
            raise LookupError(f"no diff of side block 0x{block.header.hash.hex()}")
        return decode_changes(row[0])

    def rewind(self, number: int) -> Changes:
        """Return the difference from the head's state back to that of a canonical block."""
        changes = Changes()
        for address, *account in self._connection.execute(
            "SELECT later.address, earlier.nonce, earlier.balance, earlier.code_hash,"
            " earlier.storage_root FROM ("
            "  SELECT DISTINCT address FROM nodeapi_accountversion"
            "  WHERE network_id = %(network)b AND block_number > %(number)b"
            ") AS later LEFT JOIN LATERAL ("
            "  SELECT * FROM nodeapi_accountversion AS version"
            "  WHERE network_id = %(network)b AND version.address = later.address"
            "  AND block_number <= %(number)b ORDER BY block_number DESC LIMIT 1"
            ") AS earlier ON true",
            {"network": self._network_id, "number": number},
            binary=True,
        ):
            changes.accounts[Address(address)] = _account_value(*account)
        for address, slot, value in self._connection.execute(
            "SELECT later.address, later.slot, earlier.value FROM ("
            "  SELECT DISTINCT address, slot FROM nodeapi_storageversion"
            "  WHERE network_id = %(network)b AND block_number > %(number)b"
            ") AS later LEFT JOIN LATERAL ("
            "  SELECT value FROM nodeapi_storageversion AS version"
            "  WHERE network_id = %(network)b AND version.address = later.address"
            "  AND version.slot = later.slot"
            "  AND block_number <= %(number)b ORDER BY block_number DESC LIMIT 1"
            ") AS earlier ON true",
            {"network": self._network_id, "number": number},
            binary=True,
        ):
            values = changes.storage.setdefault(Address(address), {})
            values[int.from_bytes(slot, "big")] = int.from_bytes(value or b"", "big")
        return changes

    def demote_after(self, number: int) -> None:
        """Take the canonical blocks above a number off the chain; their diffs are kept.

        Nor do they count as safe or finalized any longer.
        """
        versions = self._versions_after(number)
        rows = self._connection.execute(
            "UPDATE nodeapi_block SET is_canonical = false"
            " WHERE network_id = %b AND is_canonical AND number > %b"
            " RETURNING id, number",
            (self._network_id, number),
        ).fetchall()
        with self._connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO nodeapi_sidediff (block_id, diff) VALUES (%b, %b)",
                [
                    (block_id, encode_changes(versions.get(block_number, Changes())))
                    for block_id, block_number in rows
                ],
            )
        for table in ("nodeapi_accountversion", "nodeapi_storageversion"):
            self._connection.execute(
                f"DELETE FROM {table} WHERE network_id = %b AND block_number > %b",
                (self._network_id, number),
            )

        forget_demoted(self._connection, self._network_id)

    def promote(self, blocks: Iterable[StoredBlock]) -> None:
        """Put side blocks on the canonical chain; their rows are their caller's."""
        ids = [block.id for block in blocks]
        self._connection.execute(
            "DELETE FROM nodeapi_sidediff WHERE block_id = ANY(%b)", (ids,)
        )
        self._connection.execute(
            "UPDATE nodeapi_block SET is_canonical = true WHERE id = ANY(%b)", (ids,)
        )

    def _versions_after(self, number: int) -> dict[int, Changes]:
        versions: dict[int, Changes] = {}
        for block_number, address, *account in self._connection.execute(
            "SELECT block_number, address, nonce, balance, code_hash, storage_root"
            " FROM nodeapi_accountversion WHERE network_id = %b AND block_number > %b",
            (self._network_id, number),
            binary=True,
        ):
            changes = versions.setdefault(block_number, Changes())
            changes.accounts[Address(address)] = _account_value(*account)
        for block_number, address, slot, value in self._connection.execute(
            "SELECT block_number, address, slot, value FROM nodeapi_storageversion"
            " WHERE network_id = %b AND block_number > %b",
            (self._network_id, number),
            binary=True,
        ):
            values = versions[block_number].storage.setdefault(Address(address), {})
            values[int.from_bytes(slot, "big")] = int.from_bytes(value, "big")
        return versions


def _account_value(
    nonce: Any, balance: Any, code_hash: bytes | None, storage_root: bytes | None
) -> AccountValue | None:
    if nonce is None:
        return None
    return AccountValue(
        int(nonce),
        int(balance),
        Hash32(code_hash) if code_hash else EMPTY_CODE_HASH,
        Hash32(storage_root) if storage_root else None,
    )
