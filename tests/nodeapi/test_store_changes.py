"""How the changes of the chain since a block are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from nodeapi.node import database_conninfo
from nodeapi.store.changes import CHANGES
from tests.support.rows import make_network

pytestmark = pytest.mark.django_db(transaction=True)

BLOCKS = 5000
OPTIONS = (
    "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off"
    " -c enable_hashjoin=off -c enable_mergejoin=off"
)
"""The options of the service's connections that influence query plans."""

INSERT = """
    INSERT INTO nodeapi_block (network_id, hash, number, parent_hash, is_canonical,
        total_difficulty, state_root, gas_used, transaction_count, header, body,
        document, transactions_offset, full_document)
    SELECT %s, decode(lpad(to_hex(n), 64, '0'), 'hex'), n,
        decode(lpad(to_hex(n - 1), 64, '0'), 'hex'), true,
        n, '', 0, 0, '', '', '', 0, ''
    FROM generate_series(0, %s) n
"""


def test_only_blocks_above_the_fork_point_are_read() -> None:
    network = make_network()
    conninfo = database_conninfo()
    with psycopg.connect(conninfo, autocommit=True, options=OPTIONS) as connection:
        connection.execute(INSERT, (network.pk, BLOCKS - 1))
        connection.execute("ANALYZE nodeapi_block")
        connection.execute(
            f"PREPARE changes (int8, bytea, int8) AS {CHANGES.sql.decode()}"
        )
        fork = (BLOCKS - 4).to_bytes(32).hex()
        row = connection.execute(
            "EXPLAIN (ANALYZE, FORMAT JSON)"
            f" EXECUTE changes ({network.pk}, '\\x{fork}', 1000)"
        ).fetchone()
    assert row is not None
    read = sum(map(rows_read, nodes(row[0][0]["Plan"])))
    assert 3 <= read < 50


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the nodes of a query plan."""
    yield plan
    for part in plan.get("Plans", []):
        yield from nodes(part)


def rows_read(node: dict[str, Any]) -> int:
    """Return the number of blocks that a node of a plan has read from the table."""
    if node.get("Relation Name") != "nodeapi_block":
        return 0
    found: int = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
    loops: int = node["Actual Loops"]
    return round(found * loops)
