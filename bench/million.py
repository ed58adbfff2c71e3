"""Storage rows of contracts that are not queried, to measure the cost of a large table."""

from __future__ import annotations

import random

from nodeapi.chain.database import importer_connection

CONTRACTS = 1_000
VERSIONS = 5
"""Versions of each slot."""


def add_storage_rows(slug: str, count: int) -> None:
    """Insert `count` storage versions of unused contracts into a network."""
    chance = random.Random(count)
    addresses = [chance.randbytes(20) for _ in range(CONTRACTS)]
    with importer_connection() as connection, connection.cursor() as cursor:
        row = cursor.execute(
            "SELECT id FROM networks_network WHERE slug = %s", (slug,)
        ).fetchone()
        assert row is not None
        with cursor.copy(
            "COPY nodeapi_storageversion (network_id, address, slot, block_number,"
            " value) FROM STDIN (FORMAT BINARY)"
        ) as copy:
            copy.set_types(["int8", "bytea", "bytea", "int8", "bytea"])
            for i in range(count // VERSIONS):
                address, slot = addresses[i % CONTRACTS], chance.randbytes(32)
                for number in range(1, VERSIONS + 1):
                    copy.write_row((row[0], address, slot, number, b"\x2a"))
