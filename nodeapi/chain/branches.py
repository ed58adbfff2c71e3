"""Side blocks, their state diffs, and the move of the canonical chain to a branch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eth_typing import Address, Hash32

from evm.blocks import Block, decode_body
from evm.changes import AccountValue, Changes, decode_changes, encode_changes
from evm.headers import Header, decode_header
from evm.world import EMPTY_CODE_HASH
from nodeapi.chain.forkchoice import forget_demoted
from nodeapi.chain.logs import delete_logs_above, insert_stored_logs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import psycopg


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """A block in the database, without its transactions."""

    id: int
    header: Header
    total_difficulty: int
    is_canonical: bool
    body: bytes

    def block(self) -> Block:
        """Return the complete block."""
        return decode_body(self.header, self.body)


@dataclass(frozen=True, slots=True)
class SideBlock:
    """A stored block that is not canonical."""

    id: int
    number: int
    hash: Hash32


MOVED_AT_ONCE = 32
"""Maximum number of blocks whose changes are in memory during a reorganisation."""

_DELETED_AT_ONCE = 16
"""Maximum number of side blocks that one call of `delete_side_blocks` deletes. As many
blocks like mainnet's are deleted in about the time that the import of one takes."""

_OF_BLOCKS = ("transactionrecord", "transaction", "blockaccesslist", "sidediff")
"""Tables that refer to a block by `block_id`, and are deleted with it."""

DEMOTED_SECONDS = 600
"""Time for which demoted blocks are kept. Their logs are still to be reported as removed:
by subscriptions, and by filters that are polled every few minutes."""

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
        """Return the block with this hash, or None."""
        row = self._connection.execute(
            f"SELECT {_COLUMNS} FROM nodeapi_block WHERE network_id = %b AND hash = %b",
            (self._network_id, block_hash),
            binary=True,
        ).fetchone()
        return None if row is None else _stored_block(row)

    def head(self) -> StoredBlock:
        """Return the newest canonical block. Raises: LookupError without blocks."""
        row = self._connection.execute(
            "SELECT head_hash FROM networks_network WHERE id = %b",
            (self._network_id,),
            binary=True,
        ).fetchone()
        found = self.find(row[0]) if row and row[0] else None
        if found is None:
            raise LookupError(f"network {self._network_id} has no genesis block")
        return found

    def genesis_hash(self) -> Hash32:
        """Return the hash of block 0."""
        row = self._connection.execute(
            "SELECT hash FROM nodeapi_block WHERE network_id = %b AND number = 0",
            (self._network_id,),
            binary=True,
        ).fetchone()
        if row is None:
            raise LookupError(f"network {self._network_id} has no genesis block")
        return Hash32(row[0])

    def ancestors(self, block: StoredBlock, count: int) -> list[StoredBlock]:
        """Return the block and its ancestors, newest first. count: maximum number."""
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
        """Return the hashes of the block and its ancestors, newest first.

        count: maximum number of hashes.
        """
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

    def side_line(self, block: StoredBlock) -> tuple[int, list[SideBlock]]:
        """Return the number of a block's fork point, and the side blocks above it.

        The side blocks are in ascending order and include the block. A canonical block
        is its own fork point, without side blocks.
        """
        if block.is_canonical:
            return block.header.number, []
        rows = self._connection.execute(
            "WITH RECURSIVE line AS ("
            "  SELECT id, network_id, number, hash, parent_hash, is_canonical"
            "  FROM nodeapi_block WHERE id = %b"
            "  UNION ALL SELECT parent.id, parent.network_id, parent.number,"
            "  parent.hash, parent.parent_hash, parent.is_canonical FROM line"
            "  JOIN nodeapi_block AS parent ON parent.network_id = line.network_id"
            "  AND parent.hash = line.parent_hash WHERE NOT line.is_canonical"
            ") SELECT is_canonical, id, number, hash FROM line ORDER BY number",
            (block.id,),
            binary=True,
        ).fetchall()
        (is_connected, _, fork_number, first), *line = rows
        if not is_connected:
            raise LookupError(f"no parent of side block 0x{first.hex()}")
        return fork_number, [SideBlock(*row) for _, *row in line]

    def side_changes(self, block: SideBlock) -> Changes:
        """Return the changes of a side block relative to its parent's state."""
        row = self._connection.execute(
            "SELECT diff FROM nodeapi_sidediff WHERE block_id = %b",
            (block.id,),
            binary=True,
        ).fetchone()
        if row is None:
            raise LookupError(f"no diff of side block 0x{block.hash.hex()}")
        return decode_changes(row[0])

    def rewind(self, number: int) -> Changes:
        """Return the changes that turn the head's state into a canonical block's state."""
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

    def demote_after(self, number: int) -> int:
        """Make the canonical blocks above a number side blocks, and store their diffs.

        They also lose their logs in the log index, and the tags safe and finalized.

        Returns: their number.
        """
        row = self._connection.execute(
            "SELECT max(number) FROM nodeapi_block"
            " WHERE network_id = %b AND is_canonical",
            (self._network_id,),
        ).fetchone()
        top = row[0] if row else number
        for below in range(number, top, MOVED_AT_ONCE):
            self._demote(below, min(below + MOVED_AT_ONCE, top))
        for table in ("nodeapi_accountversion", "nodeapi_storageversion"):
            self._connection.execute(
                f"DELETE FROM {table} WHERE network_id = %b AND block_number > %b",
                (self._network_id, number),
            )
        delete_logs_above(self._connection, self._network_id, number)
        forget_demoted(self._connection, self._network_id)
        return max(top - number, 0)

    def _demote(self, below: int, top: int) -> None:
        """Demote the blocks above `below` up to `top`, and keep their versions."""
        versions = self._versions_between(below, top)
        rows = self._connection.execute(
            "UPDATE nodeapi_block SET is_canonical = false WHERE network_id = %b"
            " AND is_canonical AND number > %b AND number <= %b RETURNING id, number",
            (self._network_id, below, top),
        ).fetchall()
        with self._connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO nodeapi_sidediff (block_id, diff) VALUES (%b, %b)",
                [
                    (block_id, encode_changes(versions.get(number, Changes())))
                    for block_id, number in rows
                ],
            )

    def promote(self, line: Sequence[SideBlock]) -> Iterator[list[tuple[int, Changes]]]:
        """Make side blocks canonical, and insert their logs into the log index.

        Yields pairs (block number, changes) in portions, whose version rows the caller
        writes before the next portion.
        """
        for start in range(0, len(line), MOVED_AT_ONCE):
            part = line[start : start + MOVED_AT_ONCE]
            ids = [block.id for block in part]
            diffs = dict(
                self._connection.execute(
                    "DELETE FROM nodeapi_sidediff WHERE block_id = ANY(%b)"
                    " RETURNING block_id, diff",
                    (ids,),
                    binary=True,
                ).fetchall()
            )
            self._connection.execute(
                "UPDATE nodeapi_block SET is_canonical = true WHERE id = ANY(%b)",
                (ids,),
            )
            insert_stored_logs(self._connection, self._network_id, ids)
            yield [(block.number, decode_changes(diffs[block.id])) for block in part]

    def highest_side_block(self) -> int:
        """Return the highest number of a side block, or -1 if there is none."""
        row = self._connection.execute(
            "SELECT max(number) FROM nodeapi_block"
            " WHERE network_id = %b AND NOT is_canonical",
            (self._network_id,),
        ).fetchone()
        return -1 if row is None or row[0] is None else int(row[0])

    def delete_side_blocks(self, below: int) -> int:
        """Delete side blocks below a number, with the side blocks that follow them.

        Blocks above the fork point of a reorganisation are kept for DEMOTED_SECONDS. At
        most _DELETED_AT_ONCE are deleted, the newest first, so that the parent of each
        remaining block is stored. The caller has begun a transaction.

        Returns: the number of deleted blocks.
        """
        ids = [
            row[0]
            for row in self._connection.execute(
                "WITH RECURSIVE gone AS ("
                "  SELECT id, hash, number FROM nodeapi_block"
                "  WHERE network_id = %(network)b AND NOT is_canonical"
                "  AND number < LEAST(%(below)b, ("
                "   SELECT min(fork_number) + 1 FROM nodeapi_reorganisation"
                "   WHERE network_id = %(network)b"
                "   AND at > now() - make_interval(secs => %(seconds)b)))"
                "  UNION SELECT child.id, child.hash, child.number FROM gone"
                "  JOIN nodeapi_block AS child ON child.network_id = %(network)b"
                "  AND NOT child.is_canonical AND child.number = gone.number + 1"
                "  AND child.parent_hash = gone.hash"
                ") SELECT id FROM gone ORDER BY number DESC LIMIT %(limit)b",
                {
                    "network": self._network_id,
                    "below": below,
                    "seconds": float(DEMOTED_SECONDS),
                    "limit": _DELETED_AT_ONCE,
                },
            ).fetchall()
        ]
        for table in _OF_BLOCKS:
            self._connection.execute(
                f"DELETE FROM nodeapi_{table} WHERE block_id = ANY(%b)", (ids,)
            )
        self._connection.execute("DELETE FROM nodeapi_block WHERE id = ANY(%b)", (ids,))
        return len(ids)

    def _versions_between(self, below: int, top: int) -> dict[int, Changes]:
        """Return the changes of the canonical blocks above `below` up to `top`."""
        versions: dict[int, Changes] = {}
        numbers = self._network_id, below, top
        for block_number, address, *account in self._connection.execute(
            "SELECT block_number, address, nonce, balance, code_hash, storage_root"
            " FROM nodeapi_accountversion"
            " WHERE network_id = %b AND block_number > %b AND block_number <= %b",
            numbers,
            binary=True,
        ):
            changes = versions.setdefault(block_number, Changes())
            changes.accounts[Address(address)] = _account_value(*account)
        for block_number, address, slot, value in self._connection.execute(
            "SELECT block_number, address, slot, value FROM nodeapi_storageversion"
            " WHERE network_id = %b AND block_number > %b AND block_number <= %b",
            numbers,
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
