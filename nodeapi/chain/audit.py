"""Verification of stored state: recompute a block's state root from version rows.

Neither trie nodes nor caches are used. PostgreSQL sorts the rows, so memory use does
not depend on the size of the state.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import groupby
from typing import TYPE_CHECKING, Any

from eth_typing import Address, Hash32

from evm.changes import AccountValue
from evm.state_trie import account_leaf, address_key, slot_key, slot_leaf
from evm.trie import EMPTY_ROOT, build_root
from evm.world import EMPTY_CODE_HASH

if TYPE_CHECKING:
    import psycopg

_ROWS_PER_FETCH = 10_000


class AuditFailure(Exception):
    """Raised when the rows do not give the expected root.

    The message names the block and, for storage, the account.
    """


def audit_block(
    connection: psycopg.Connection[Any], network_id: int, number: int
) -> int:
    """Recompute the state root of a canonical block. Return the number of rows read.

    Raises: AuditFailure; LookupError if there is no such block.
    """
    row = connection.execute(
        "SELECT state_root FROM nodeapi_block"
        " WHERE network_id = %s AND number = %s AND is_canonical",
        (network_id, number),
        binary=True,
    ).fetchone()
    if row is None:
        raise LookupError(f"no block {number}")
    with connection.transaction(force_rollback=True):
        slots = _sort_storage(connection, network_id, number)
        accounts = _sort_accounts(connection, network_id, number)
        with (
            closing(_storage_roots(connection)) as roots,
            closing(_account_leaves(connection, roots, number)) as leaves,
        ):
            root = build_root(leaves)
    if root != row[0]:
        raise AuditFailure(
            f"block {number}: the rows have the state root 0x{root.hex()}, but the "
            f"header has 0x{row[0].hex()}"
        )
    return slots + accounts


def _sort_accounts(
    connection: psycopg.Connection[Any], network_id: int, number: int
) -> int:
    """Write the accounts as of a block to a temporary table in the trie's order.

    Returns: their number.
    """
    connection.execute(
        "CREATE TEMPORARY TABLE audit_account (key bytea, address bytea, nonce numeric,"
        " balance numeric, code_hash bytea, storage_root bytea) ON COMMIT DROP"
    )
    count = 0
    with (
        connection.cursor("audit_accounts", binary=True) as source,
        connection.cursor() as target,
    ):
        source.itersize = _ROWS_PER_FETCH
        source.execute(
            "SELECT * FROM (SELECT DISTINCT ON (address) address, nonce, balance,"
            " code_hash, storage_root FROM nodeapi_accountversion"
            " WHERE network_id = %s AND block_number <= %s"
            " ORDER BY address, block_number DESC) AS account"
            " WHERE nonce IS NOT NULL",
            (network_id, number),
        )
        while rows := source.fetchmany(_ROWS_PER_FETCH):
            with target.copy("COPY audit_account FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types(
                    ["bytea", "bytea", "numeric", "numeric", "bytea", "bytea"]
                )
                for row in rows:
                    copy.write_row((address_key(Address(row[0])), *row))
            count += len(rows)
    return count


def _sort_storage(
    connection: psycopg.Connection[Any], network_id: int, number: int
) -> int:
    """Write the non-zero slots as of a block to a temporary table in the trie's order.

    Returns: their number.
    """
    connection.execute(
        "CREATE TEMPORARY TABLE audit_slot (owner bytea, key bytea, value bytea)"
        " ON COMMIT DROP"
    )
    count = 0
    with (
        connection.cursor("audit_slots", binary=True) as source,
        connection.cursor() as target,
    ):
        source.itersize = _ROWS_PER_FETCH
        source.execute(
            "SELECT * FROM (SELECT DISTINCT ON (address, slot) address, slot, value"
            " FROM nodeapi_storageversion"
            " WHERE network_id = %s AND block_number <= %s"
            " ORDER BY address, slot, block_number DESC) AS slot"
            " WHERE length(value) > 0",
            (network_id, number),
        )
        while rows := source.fetchmany(_ROWS_PER_FETCH):
            with target.copy("COPY audit_slot FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types(["bytea", "bytea", "bytea"])
                for address, slot, value in rows:
                    key = slot_key(int.from_bytes(slot, "big"))
                    copy.write_row((address_key(Address(address)), key, value))
            count += len(rows)
    return count


def _storage_roots(
    connection: psycopg.Connection[Any],
) -> Generator[tuple[bytes, Hash32], None, None]:
    """Yield keccak(address) and storage root of each account with storage, sorted."""
    with connection.cursor("audit_sorted_slots", binary=True) as cursor:
        cursor.itersize = _ROWS_PER_FETCH
        cursor.execute("SELECT owner, key, value FROM audit_slot ORDER BY owner, key")
        for owner, rows in groupby(cursor, key=lambda row: bytes(row[0])):
            leaves = (
                (key, slot_leaf(int.from_bytes(value, "big"))) for _, key, value in rows
            )
            yield owner, Hash32(build_root(leaves))


def _account_leaves(
    connection: psycopg.Connection[Any],
    roots: Iterator[tuple[bytes, Hash32]],
    number: int,
) -> Generator[tuple[bytes, bytes], None, None]:
    """Yield each account's key and leaf. Storage roots are computed from the slots."""
    owner, root = next(roots, (None, EMPTY_ROOT))
    with connection.cursor("audit_sorted_accounts", binary=True) as cursor:
        cursor.itersize = _ROWS_PER_FETCH
        cursor.execute("SELECT * FROM audit_account ORDER BY key")
        for key, address, nonce, balance, code_hash, storage_root in cursor:
            found = EMPTY_ROOT
            if owner == key:
                found = root
                owner, root = next(roots, (None, EMPTY_ROOT))
            if found != (storage_root or EMPTY_ROOT):
                raise AuditFailure(
                    f"block {number}: the storage rows of 0x{address.hex()} have the "
                    f"root 0x{found.hex()}, but the account has "
                    f"0x{(storage_root or EMPTY_ROOT).hex()}"
                )
            account = AccountValue(
                int(nonce), int(balance), code_hash or EMPTY_CODE_HASH, Hash32(found)
            )
            yield key, account_leaf(account)
    if owner is not None:
        raise AuditFailure(
            f"block {number}: storage rows of an account that does not exist, "
            f"keccak(address) 0x{owner.hex()}"
        )
