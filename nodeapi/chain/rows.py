"""Writing a batch of blocks to the database, in one transaction and mostly by COPY."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psycopg.adapt import Dumper
from psycopg.pq import Format

from evm.blocks import encode_body
from evm.tracers.record import NOTHING_RECORDED, compress_records
from evm.world import EMPTY_CODE_HASH
from nodeapi.chain.access_lists import (
    AccessListRow,
    access_list_row,
    insert_access_lists,
)
from nodeapi.chain.logs import LogRow, insert_logs, log_rows
from nodeapi.documents.blocks import (
    block_document,
    pack_full_block,
    transaction_document,
)
from nodeapi.documents.receipts import stored_receipts
from outbox import streams
from outbox.append import Transaction, begin
from postgres.statement import BYTEA, array

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    import psycopg
    from eth_typing import Hash32

    from evm.changes import AccountValue, Changes
    from evm.state_trie import DirtyNodes
    from evm.tracers.record import TransactionRecord
    from nodeapi.chain.verification import Verified


class HeadMoved(RuntimeError):
    """Raised when another process has changed the head since the importer started.

    The import lock excludes that, except while PostgreSQL completes the last commit of
    a killed process.
    """


@dataclass(frozen=True, slots=True)
class BlockRow:
    """A block in the form of its database row."""

    hash: Hash32
    number: int
    parent_hash: Hash32
    is_canonical: bool
    total_difficulty: int
    state_root: Hash32
    gas_used: int
    header: bytes
    body: bytes
    document: bytes
    transactions_offset: int
    full_document: bytes
    transactions: list[tuple[Hash32, bytes]]
    """Hash and JSON document of each transaction."""
    records: list[tuple[bytes, TransactionRecord]]
    """Packed receipt and trace record of each transaction."""
    logs: list[LogRow]
    access_list: AccessListRow | None
    """None if it was not recorded."""


_BLOCK_COLUMNS = (
    "id, network_id, hash, number, parent_hash, is_canonical,"
    " total_difficulty, state_root, gas_used, transaction_count, header, body,"
    " document, transactions_offset, full_document"
)
_BLOCK_TYPES = [
    "int8",
    "int8",
    "bytea",
    "int8",
    "bytea",
    "bool",
    "numeric",
    "bytea",
    "int8",
    "int4",
    "bytea",
    "bytea",
    "bytea",
    "int4",
    "bytea",
]


class _ByteaArray(bytes):
    """A bytea[] in PostgreSQL's binary format, encoded in one step."""

    @classmethod
    def of(cls, values: Collection[bytes]) -> _ByteaArray:
        return cls(array(BYTEA, values, len(values)))


class _ByteaArrayDumper(Dumper):
    oid = BYTEA.array_oid
    format = Format.BINARY

    def dump(self, obj: _ByteaArray) -> _ByteaArray:
        return obj


class Rows:
    """Writes one network's rows, in a transaction that `transaction` begins."""

    def __init__(self, connection: psycopg.Connection[Any], network_id: int) -> None:
        self._connection = connection
        self._network_id = network_id
        self._outbox: Transaction | None = None
        connection.adapters.register_dumper(_ByteaArray, _ByteaArrayDumper)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a transaction. Its outbox entries are published after the commit."""
        try:
            with begin(self._connection) as self._outbox:
                yield
        finally:
            self._outbox = None

    def insert_blocks(self, blocks: list[BlockRow]) -> dict[Hash32, int]:
        """Insert blocks with their transactions. Return the blocks' ids by hash."""
        with self._connection.cursor(binary=True) as cursor:
            cursor.execute(
                "SELECT nextval(pg_get_serial_sequence('nodeapi_block', 'id'))"
                " FROM generate_series(1, %s)",
                (len(blocks),),
            )
            ids = [row[0] for row in cursor.fetchall()]
            with cursor.copy(
                f"COPY nodeapi_block ({_BLOCK_COLUMNS}) FROM STDIN (FORMAT BINARY)"
            ) as copy:
                copy.set_types(_BLOCK_TYPES)
                for block_id, block in zip(ids, blocks, strict=True):
                    copy.write_row(self._block_row(block_id, block))
            with cursor.copy(
                "COPY nodeapi_transaction (block_id, index, hash, document)"
                " FROM STDIN (FORMAT BINARY)"
            ) as copy:
                copy.set_types(["int8", "int4", "bytea", "bytea"])
                for block_id, block in zip(ids, blocks, strict=True):
                    for index, (tx_hash, document) in enumerate(block.transactions):
                        copy.write_row((block_id, index, tx_hash, document))
            self._insert_records(cursor, zip(ids, blocks, strict=True))
            insert_access_lists(
                cursor,
                (
                    (block_id, block.access_list)
                    for block_id, block in zip(ids, blocks, strict=True)
                    if block.access_list is not None
                ),
            )
        return {
            block.hash: block_id for block_id, block in zip(ids, blocks, strict=True)
        }

    def _insert_records(
        self, cursor: psycopg.Cursor[Any], blocks: Iterable[tuple[int, BlockRow]]
    ) -> None:
        """Insert the trace records of stored blocks. Triggers add up their sizes."""
        ids: list[int] = []
        indexes: list[int] = []
        receipts, held = [], []
        for block_id, block in blocks:
            ids += [block_id] * len(block.records)
            indexes += range(len(block.records))
            receipts += [receipt for receipt, _ in block.records]
            held += [record for _, record in block.records]
        columns = ids, indexes, receipts, *compress_records(held)
        with cursor.copy(
            "COPY nodeapi_transactionrecord (block_id, index, receipt, calls,"
            " prestate, details, calls_size, prestate_size) FROM STDIN (FORMAT BINARY)"
        ) as copy:
            copy.set_types(["int8", "int4", *["bytea"] * 4, "int8", "int8"])
            for row in zip(*columns, strict=True):
                copy.write_row(row)

    def replace_records(
        self, block_id: int, records: list[tuple[bytes, TransactionRecord]]
    ) -> None:
        """Replace the trace records of a stored block, in the order of transactions."""
        receipts = [receipt for receipt, _ in records]
        held = [record for _, record in records]
        self._connection.execute(
            "UPDATE nodeapi_transactionrecord AS record SET receipt = new.receipt,"
            " calls = new.calls, prestate = new.prestate, details = new.details,"
            " calls_size = new.calls_size, prestate_size = new.prestate_size"
            " FROM unnest(%b::int4[], %b::bytea[], %b::bytea[], %b::bytea[],"
            " %b::bytea[], %b::int8[], %b::int8[]) AS new (index, receipt, calls,"
            " prestate, details, calls_size, prestate_size)"
            " WHERE record.block_id = %b AND record.index = new.index",
            (
                list(range(len(records))),
                receipts,
                *map(list, compress_records(held)),
                block_id,
            ),
        )

    def _block_row(self, block_id: int, block: BlockRow) -> tuple[Any, ...]:
        return (
            block_id,
            self._network_id,
            block.hash,
            block.number,
            block.parent_hash,
            block.is_canonical,
            block.total_difficulty,
            block.state_root,
            block.gas_used,
            len(block.transactions),
            block.header,
            block.body,
            block.document,
            block.transactions_offset,
            block.full_document,
        )

    def insert_versions(self, versions: Iterable[tuple[int, Changes]]) -> None:
        """Insert changed accounts and slots for each pair (block number, changes)."""
        versions = list(versions)
        network_id = self._network_id
        with self._connection.cursor() as cursor:
            with cursor.copy(
                "COPY nodeapi_accountversion (network_id, address, block_number, nonce,"
                " balance, code_hash, storage_root) FROM STDIN (FORMAT BINARY)"
            ) as copy:
                copy.set_types(
                    ["int8", "bytea", "int8", "numeric", "numeric", "bytea", "bytea"]
                )
                for number, changes in versions:
                    for address, account in changes.accounts.items():
                        copy.write_row(
                            (network_id, address, number, *_account_columns(account))
                        )
            with cursor.copy(
                "COPY nodeapi_storageversion (network_id, address, slot, block_number,"
                " value) FROM STDIN (FORMAT BINARY)"
            ) as copy:
                copy.set_types(["int8", "bytea", "bytea", "int8", "bytea"])
                for number, changes in versions:
                    for address, values in changes.storage.items():
                        for slot, value in values.items():
                            copy.write_row(
                                (
                                    network_id,
                                    address,
                                    slot.to_bytes(32, "big"),
                                    number,
                                    to_minimal_bytes(value),
                                )
                            )

    def insert_logs(self, blocks: Iterable[BlockRow]) -> None:
        """Insert the logs of blocks that become canonical into the log index."""
        pairs = [(block.number, block.logs) for block in blocks]
        insert_logs(self._connection, self._network_id, pairs)

    def insert_codes(self, codes: dict[Hash32, bytes]) -> None:
        """Insert contract code that is not stored yet."""
        if codes:
            self._connection.execute(
                "INSERT INTO nodeapi_code (hash, code)"
                " SELECT * FROM unnest(%b::bytea[], %b::bytea[])"
                " ON CONFLICT DO NOTHING",
                (list(codes), list(codes.values())),
            )

    def replace_nodes(self, nodes: DirtyNodes) -> None:
        """Write modified trie nodes, and delete removed ones."""
        kept: tuple[list[bytes], list[bytes], list[bytes]] = ([], [], [])
        removed: tuple[list[bytes], list[bytes]] = ([], [])
        for owner, rows in nodes.items():
            for path, node in rows.items():
                if node is None:
                    removed[0].append(owner)
                    removed[1].append(path)
                else:
                    kept[0].append(owner)
                    kept[1].append(path)
                    kept[2].append(node)
        if removed[0]:
            self._connection.execute(
                "DELETE FROM nodeapi_trienode AS node"
                " USING unnest(%b::bytea[], %b::bytea[]) AS gone (owner, path)"
                " WHERE node.network_id = %b AND node.owner = gone.owner"
                " AND node.path = gone.path",
                (*map(_ByteaArray.of, removed), self._network_id),
            )
        if kept[0]:
            # In the index's order, neighbours find its pages in the processor's cache.
            self._connection.execute(
                "INSERT INTO nodeapi_trienode (network_id, owner, path, node)"
                " SELECT %b, * FROM unnest(%b::bytea[], %b::bytea[], %b::bytea[])"
                " AS row (owner, path, node) ORDER BY owner, path"
                " ON CONFLICT (network_id, owner, path) DO UPDATE"
                " SET node = EXCLUDED.node",
                (self._network_id, *map(_ByteaArray.of, kept)),
            )

    def insert_side_diffs(self, diffs: Iterable[tuple[int, bytes]]) -> None:
        """Insert the diffs of side blocks, as pairs of block id and encoded diff."""
        with self._connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO nodeapi_sidediff (block_id, diff) VALUES (%b, %b)",
                list(diffs),
            )

    def set_head(
        self, number: int, block_hash: Hash32, *, before: Hash32 | None
    ) -> None:
        """Update the network's head, and publish it at the commit.

        before: hash of the present head, None for a network without blocks.

        Raises: HeadMoved if the present head is another block.
        """
        moved = self._connection.execute(
            "UPDATE networks_network SET head_number = %b, head_hash = %b"
            " WHERE id = %b AND head_hash IS NOT DISTINCT FROM %b",
            (number, block_hash, self._network_id, before),
        )
        if moved.rowcount != 1:
            raise HeadMoved(f"the head of network {self._network_id} has changed")
        self.announce()

    def insert_reorganisation(
        self,
        fork_number: int,
        old_hash: Hash32,
        new_hash: Hash32,
        depth: int,
        added: int,
    ) -> None:
        """Insert a reorganisation; see `nodeapi.models.Reorganisation`."""
        self._connection.execute(
            "INSERT INTO nodeapi_reorganisation (network_id, fork_number, old_hash,"
            " new_hash, depth, added) VALUES (%b, %b, %b, %b, %b, %b)",
            (self._network_id, fork_number, old_hash, new_hash, depth, added),
        )

    def announce(self) -> None:
        """Publish a change of the network's blocks, at the commit."""
        assert self._outbox is not None, "announced within a transaction"
        self._outbox.append(streams.blocks(self._network_id))


def to_minimal_bytes(value: int) -> bytes:
    """Return a storage value as stored: big-endian, without leading zero bytes."""
    return value.to_bytes((value.bit_length() + 7) // 8, "big")


def _account_columns(
    account: AccountValue | None,
) -> tuple[int | None, int | None, bytes | None, bytes | None]:
    if account is None:
        return None, None, None, None
    code_hash = account.code_hash
    return (
        account.nonce,
        account.balance,
        None if code_hash == EMPTY_CODE_HASH else code_hash,
        account.storage_root,
    )


def block_row(verified: Verified, *, is_canonical: bool) -> BlockRow:
    """Return the row of a verified block, including its JSON documents."""
    block, outcome = verified.block, verified.outcome
    header = block.header
    receipts = stored_receipts(block, outcome.receipts, verified.fork)
    records = outcome.records
    if records is None:
        # Receipts are stored nevertheless. A request for the trace gets an error.
        records = [NOTHING_RECORDED] * len(receipts)
    document, offset = block_document(block, verified.total_difficulty)
    transactions = [
        (transaction.hash, transaction_document(transaction, header, index))
        for index, transaction in enumerate(block.transactions)
    ]
    return BlockRow(
        hash=header.hash,
        number=header.number,
        parent_hash=header.parent_hash,
        is_canonical=is_canonical,
        total_difficulty=verified.total_difficulty,
        state_root=header.state_root,
        gas_used=header.gas_used,
        header=header.encode(),
        body=encode_body(block),
        document=document,
        transactions_offset=offset,
        full_document=pack_full_block(
            document, offset, (one for _, one in transactions)
        ),
        transactions=transactions,
        records=list(zip(receipts, records, strict=True)),
        logs=log_rows(outcome.receipts),
        access_list=access_list_row(outcome, verified.fork),
    )
