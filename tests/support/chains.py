"""Chains in the database: imports like those of the command, and comparison of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import psycopg
from django.db import connection
from django.db.models import F

from evm.blocks import Block, encode_block
from evm.tracers.record import RECORD_LIMIT_BYTES
from networks.models import Network
from networks.services import finish_preparing
from nodeapi.chain.audit import audit_block
from nodeapi.chain.branches import DEMOTED_SECONDS
from nodeapi.chain.database import import_lock, importer_connection, pipeline
from nodeapi.chain.forkchoice import Forkchoice
from nodeapi.chain.importers import FileImporter, FollowingImporter
from nodeapi.chain.networks import open_network, stored_config
from nodeapi.chain.sources import with_next
from nodeapi.chain.writer import ChainWriter
from nodeapi.models import Reorganisation

Writer = TypeVar("Writer", bound=ChainWriter)

# Columns that must be equal after the same blocks, in any order of imports.
_ROWS = {
    "blocks": "SELECT hash, number, parent_hash, is_canonical,"
    " total_difficulty, state_root, gas_used, transaction_count, header, body,"
    " document, transactions_offset, full_document"
    " FROM nodeapi_block WHERE network_id = %(id)s",
    "transactions": "SELECT block.hash, index, t.hash, t.document"
    " FROM nodeapi_transaction AS t JOIN nodeapi_block AS block ON block.id = block_id"
    " WHERE network_id = %(id)s",
    "receipts": "SELECT block.hash, index, receipt FROM nodeapi_transactionrecord"
    " JOIN nodeapi_block AS block ON block.id = block_id WHERE network_id = %(id)s",
    "records": "SELECT block.hash, index, calls_size, prestate_size, calls,"
    " prestate, details FROM nodeapi_transactionrecord"
    " JOIN nodeapi_block AS block ON block.id = block_id WHERE network_id = %(id)s",
    "logs": "SELECT position, block_number, transaction_index, address, event, topic0,"
    " topic1, topic2, topic3 FROM nodeapi_log WHERE network_id = %(id)s",
    "accounts": "SELECT address, block_number, nonce, balance, code_hash, storage_root"
    " FROM nodeapi_accountversion WHERE network_id = %(id)s",
    "slots": "SELECT address, slot, block_number, value"
    " FROM nodeapi_storageversion WHERE network_id = %(id)s",
    "appearances": "SELECT address, block_number, places, is_creation, is_author"
    " FROM nodeapi_appearance WHERE network_id = %(id)s",
    "nodes": "SELECT owner, path, node FROM nodeapi_trienode WHERE network_id = %(id)s",
    "side diffs": "SELECT block.hash, diff FROM nodeapi_sidediff"
    " JOIN nodeapi_block AS block ON block.id = block_id WHERE network_id = %(id)s",
    "access lists": "SELECT block.hash, list, gas FROM nodeapi_blockaccesslist"
    " JOIN nodeapi_block AS block ON block.id = block_id WHERE network_id = %(id)s",
    "head": "SELECT head_number, head_hash FROM networks_network WHERE id = %(id)s",
}


@contextmanager
def importer(
    slug: str,
    genesis: dict[str, Any] | None,
    *,
    forkchoice: Forkchoice | None = None,
    **options: Any,
) -> Iterator[FileImporter]:
    """Yield an importer into a network, which is created if it is new.

    The network is prepared at the end of the block, as at the end of a file.
    """
    with _importer(FileImporter, slug, genesis, **options) as target:
        if forkchoice is not None:
            target.adopt(forkchoice)
        yield target


@contextmanager
def following_importer(
    slug: str, genesis: dict[str, Any] | None, **options: Any
) -> Iterator[FollowingImporter]:
    """Yield a follower's importer into a network, like `importer`."""
    with _importer(FollowingImporter, slug, genesis, **options) as target:
        yield target


@contextmanager
def _importer(
    kind: type[Writer],
    slug: str,
    genesis: dict[str, Any] | None,
    *,
    batch_blocks: int = 8,
    record_limit_bytes: int | None = RECORD_LIMIT_BYTES,
) -> Iterator[Writer]:
    with (
        importer_connection() as connection,
        importer_connection() as writer,
        pipeline() as reader,
    ):
        network_id = open_network(connection, slug, genesis=genesis)
        with import_lock(connection, network_id):
            target = kind(
                connection,
                network_id,
                stored_config(network_id),
                batch_blocks=batch_blocks,
                writer=writer,
                pipeline=reader,
                record_limit_bytes=record_limit_bytes,
            )
            try:
                yield target
            finally:
                target.close()
            finish_preparing(network_id)


def import_blocks(
    slug: str, genesis: dict[str, Any], blocks: Iterable[Block | bytes], **options: Any
) -> None:
    """Import blocks into a network and commit them."""
    with importer(slug, genesis, **options) as target:
        raws = (b if isinstance(b, bytes) else encode_block(b) for b in blocks)
        for raw, following in with_next(raws):
            target.add(raw, following)
        target.commit()


def let_minutes_pass() -> None:
    """Make all reorganisations old enough for the deletion of demoted blocks."""
    age = timedelta(seconds=DEMOTED_SECONDS)
    Reorganisation.objects.update(at=F("at") - age)


def network_id(connection: psycopg.Connection[Any], slug: str) -> int:
    """Return a network's id."""
    row = connection.execute(
        "SELECT id FROM networks_network WHERE slug = %s", (slug,)
    ).fetchone()
    assert row is not None, f"no network {slug}"
    return int(row[0])


def audit_all(slug: str) -> int:
    """Audit every canonical block of a network, and return how many there are."""
    with importer_connection() as connection:
        network = network_id(connection, slug)
        row = connection.execute(
            "SELECT head_number FROM networks_network WHERE id = %s", (network,)
        ).fetchone()
        assert row is not None
        for number in range(row[0] + 1):
            audit_block(connection, network, number)
        return int(row[0]) + 1


def rows(slug: str) -> dict[str, str]:
    """Return a digest of each table's rows of a network."""
    with importer_connection() as connection:
        network = network_id(connection, slug)
        digests = {}
        for name, query in _ROWS.items():
            found = connection.execute(query, {"id": network}).fetchall()
            lines = sorted(repr(row) for row in found)
            digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
            digests[name] = f"{len(lines)} rows, {digest}"
        return digests


def codes() -> set[bytes]:
    """Return the hashes of all stored code."""
    with importer_connection() as connection:
        return {row[0] for row in connection.execute("SELECT hash FROM nodeapi_code")}


def head(slug: str) -> tuple[int, bytes]:
    """Return number and hash of a network's head."""
    found: tuple[int, bytes] = Network.objects.values_list(
        "head_number", "head_hash"
    ).get(slug=slug)
    return found[0], bytes(found[1])


def state_rows(slug: str, above: int) -> dict[str, set[Any]]:
    """Return the changes of accounts and slots by canonical blocks above a number."""
    found = {}
    with connection.cursor() as cursor:
        for name in ("accounts", "slots"):
            cursor.execute(
                f"{_ROWS[name]} AND block_number > %(above)s",
                {"id": Network.objects.get(slug=slug).pk, "above": above},
            )
            found[name] = {
                tuple(bytes(v) if isinstance(v, memoryview) else v for v in row)
                for row in cursor.fetchall()
            }
    return found
