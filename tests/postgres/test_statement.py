from __future__ import annotations

import asyncio

import pytest

from postgres.connections import Connections
from postgres.statement import (
    BYTEA,
    INT8,
    TEXT,
    ColumnType,
    Statement,
    array,
    int8,
    read_bool,
    read_int8,
)


@pytest.mark.parametrize(
    ("column", "values", "literal"),
    [
        (
            BYTEA,
            [b"", b"\x00\xff", bytes(300)],
            rf"ARRAY['', '\x00ff', '\x{'00' * 300}']",
        ),
        (INT8, [0, -1, 2**63 - 1, -(2**63)], f"'{{0,-1,{2**63 - 1},{-(2**63)}}}'"),
        (TEXT, ["", "nk_", "grün, 'ja'"], "ARRAY['', 'nk_', 'grün, ''ja''']"),
        (INT8, [7], "'{7}'"),
    ],
)
def test_array_is_what_postgresql_reads(
    conninfo: str, column: ColumnType, values: list[object], literal: str
) -> None:
    statement = Statement(
        f"SELECT $1::{column.name}[] = {literal}::{column.name}[]", [column.array_oid]
    )

    async def ask() -> bytes | None:
        connections = Connections(conninfo)
        try:
            rows = await connections.fetch(
                statement, [array(column, values, len(values))]
            )
        finally:
            await connections.close()
        return rows[0][0]

    assert read_bool(asyncio.run(ask()) or b"")


@pytest.mark.parametrize("value", [0, 1, -1, 2**63 - 1, -(2**63)])
def test_int8_is_read_as_it_is_written(value: int) -> None:
    assert read_int8(int8(value)) == value


def test_statements_have_names_of_their_own() -> None:
    assert Statement("SELECT 1").name != Statement("SELECT 1").name
