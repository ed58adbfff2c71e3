from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from postgres.connections import Connections
from postgres.errors import Unavailable
from postgres.lookup import Lookup
from postgres.statement import INT8, Row, read_int8
from tests.postgres.conftest import Gate
from tests.support.coroutines import scenario

TENFOLD = "SELECT k.n, k.number * 10, (SELECT count(*) FROM k) FROM k"
"""A look-up of ten times the key, and of the number of keys in the query."""


def pair(row: Row) -> tuple[int, int]:
    assert row[0] is not None
    assert row[1] is not None
    return read_int8(row[0]), read_int8(row[1])


Numbers = Lookup[tuple[int], tuple[int, int]]


@asynccontextmanager
async def connected(conninfo: str) -> AsyncIterator[Connections]:
    connections = Connections(conninfo)
    try:
        yield connections
    finally:
        await connections.close()


def numbers(
    connections: Connections,
    sql: str = TENFOLD,
    batch: int = 256,
    queries: int | None = None,
) -> Numbers:
    return Lookup(
        connections,
        sql,
        [("number", INT8)],
        pair,
        max_batch=batch,
        max_queries=queries,
    )


@scenario
async def test_lookups_of_one_moment_are_one_query(conninfo: str) -> None:
    async with connected(conninfo) as connections:
        lookup = numbers(connections)
        answers = await asyncio.gather(*(lookup.get((i,)) for i in range(50)))
        assert answers == [(i * 10, 50) for i in range(50)]


@scenario
async def test_equal_keys_share_one_slot_and_all_are_answered(conninfo: str) -> None:
    async with connected(conninfo) as connections:
        lookup = numbers(connections)
        answers = await asyncio.gather(*(lookup.get((i % 2,)) for i in range(10)))
        assert answers == [(i % 2 * 10, 2) for i in range(10)]


@scenario
async def test_batches_are_no_larger_than_allowed(conninfo: str) -> None:
    async with connected(conninfo) as connections:
        lookup = numbers(connections, batch=8)
        answers = await asyncio.gather(*(lookup.get((i,)) for i in range(20)))
        assert [a and a[0] for a in answers] == [i * 10 for i in range(20)]
        assert sorted(a[1] for a in answers if a) == [4] * 4 + [8] * 16


@scenario
async def test_lookups_gather_while_as_many_queries_as_allowed_are_under_way(
    conninfo: str, gate: Gate
) -> None:
    async with connected(conninfo) as connections:
        lookup = numbers(connections, f"{TENFOLD}, {gate.SQL}", batch=8, queries=1)
        answers = [lookup.get((0,))]
        await gate.holds(1)
        for i in range(1, 13):
            answers.append(lookup.get((i,)))
            await asyncio.sleep(0)  # time for a separate query
        gate.open()
        found = await asyncio.gather(*answers)
        assert found == [(0, 1), *((i * 10, 8 if i < 9 else 4) for i in range(1, 13))]
        assert await lookup.get((99,)) == (990, 1)


@scenario
async def test_queries_that_fail_make_room_for_others(conninfo: str) -> None:
    async with connected(conninfo) as connections:
        sql = "SELECT k.n, 10 / (k.number - 1), 7::int8 FROM k"
        lookup = numbers(connections, sql, batch=1, queries=1)
        for _ in range(2):
            with pytest.raises(Unavailable, match="division by zero"):
                await lookup.get((1,))
            found = await asyncio.gather(
                *(lookup.get((i,)) for i in (1, 2, 1, 6)), return_exceptions=True
            )
            assert [found[1], found[3]] == [(10, 7), (2, 7)]
            assert all(isinstance(found[i], Unavailable) for i in (0, 2))


@scenario
async def test_lookups_gather_while_all_connections_are_busy(
    conninfo: str, gate: Gate
) -> None:
    async with connected(conninfo) as connections:
        busy = numbers(connections, f"SELECT k.n, k.number, 0::int8 FROM k, {gate.SQL}")
        lookup = numbers(connections)
        held_up = []
        for i in range(2):  # as many as there are connections
            held_up.append(busy.get((i,)))
            await gate.holds(i + 1)
        answers = []
        for i in range(3):
            answers.append(lookup.get((i,)))
            await asyncio.sleep(0)
        gate.open()
        assert await asyncio.gather(*answers) == [(0, 3), (10, 3), (20, 3)]
        await asyncio.gather(*held_up)


HELD_UP = (
    "SELECT k.n, k.number, (extract(epoch FROM statement_timestamp()) * 1000000)::int8"
    f" FROM k, {Gate.SQL}"
)
"""A look-up of the key, and of the time of the query in microseconds."""


@pytest.mark.parametrize("is_immutable", [True, False])
@scenario
async def test_only_what_never_changes_joins_a_query_under_way(
    conninfo: str, gate: Gate, is_immutable: bool
) -> None:
    async with connected(conninfo) as connections:
        lookup: Numbers = Lookup(
            connections, HELD_UP, [("number", INT8)], pair, is_immutable=is_immutable
        )
        first = lookup.get((1,))
        await gate.holds(1)
        joining = [lookup.get((1,)) for _ in range(3)]
        await gate.holds(1 if is_immutable else 2)
        gate.open()
        others = await asyncio.gather(*joining)
        assert len(set(others)) == 1
        assert ((await first) == others[0]) is is_immutable
        assert (await lookup.get((1,))) != others[0]  # nothing is cached


@scenario
async def test_reader_that_joined_a_query_without_result_makes_a_query_itself(
    conninfo: str, sql: psycopg.Connection[tuple[object, ...]], gate: Gate
) -> None:
    async with connected(conninfo) as connections:
        sql.execute("DROP TABLE IF EXISTS coming")
        # With a row, so that the query evaluates the gate.
        sql.execute("CREATE TABLE coming AS SELECT 99::int8 AS value")
        lookup: Numbers = Lookup(
            connections,
            f"SELECT k.n, coming.value, 0::int8 FROM (SELECT k.* FROM k, {gate.SQL}"
            " OFFSET 0) k JOIN coming ON coming.value = k.number",
            [("number", INT8)],
            pair,
            is_immutable=True,
        )
        early = lookup.get((1,))
        await gate.holds(1)
        sql.execute("INSERT INTO coming VALUES (1)")
        late = [lookup.get((1,)), lookup.get((1,))]
        gate.open()
        assert await early is None
        assert await asyncio.gather(*late) == [(1, 0), (1, 0)]
        sql.execute("DROP TABLE coming")


@scenario
async def test_key_without_a_row_has_none(conninfo: str) -> None:
    async with connected(conninfo) as connections:
        lookup = numbers(connections, TENFOLD + " WHERE k.number <> 3")
        answers = await asyncio.gather(*(lookup.get((i,)) for i in range(5)))
        assert answers == [(0, 5), (10, 5), (20, 5), None, (40, 5)]


@scenario
async def test_answers_find_their_keys_in_whatever_order_they_come(
    conninfo: str,
) -> None:
    async with connected(conninfo) as connections:
        lookup = numbers(connections, TENFOLD + " ORDER BY md5(k.number::text)")
        answers = await asyncio.gather(*(lookup.get((i,)) for i in range(40)))
        assert answers == [(i * 10, 40) for i in range(40)]


@scenario
async def test_failed_query_fails_its_waiters_and_no_others(conninfo: str) -> None:
    async with connected(conninfo) as connections:
        broken = numbers(connections, "SELECT k.n, 1 / k.number, 0::int8 FROM k")
        lookup = numbers(connections)
        bad = [broken.get((i,)) for i in (0, 1)]
        good = [lookup.get((i,)) for i in (0, 1)]
        outcomes = await asyncio.gather(*bad, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [Unavailable] * 2
        assert await asyncio.gather(*good) == [(0, 2), (10, 2)]
        assert await broken.get((1,)) == (1, 0)


@scenario
async def test_error_in_reading_a_row_reaches_only_who_asked_for_it(
    conninfo: str,
) -> None:
    def read(row: Row) -> int:
        return 100 // read_int8(row[0] or b"")

    async with connected(conninfo) as connections:
        lookup: Lookup[tuple[int], int] = Lookup(
            connections, "SELECT k.n, k.number FROM k", [("number", INT8)], read
        )
        bad, good = lookup.get((0,)), lookup.get((5,))
        with pytest.raises(ZeroDivisionError):
            await bad
        assert await good == 20


@scenario
async def test_cancelled_waiter_is_harmless_to_those_with_the_same_key(
    conninfo: str,
) -> None:
    async with connected(conninfo) as connections:
        lookup = numbers(connections)

        async def wait() -> tuple[int, int] | None:
            return await lookup.get((7,))

        first, second = asyncio.create_task(wait()), asyncio.create_task(wait())
        await asyncio.sleep(0)
        first.cancel()
        assert await second == (70, 1)
        with pytest.raises(asyncio.CancelledError):
            await first
        assert await lookup.get((8,)) == (80, 1)


@scenario
async def test_nothing_can_be_written(conninfo: str) -> None:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("CREATE SEQUENCE IF NOT EXISTS lookup_test")
    async with connected(conninfo) as connections:
        writing = numbers(
            connections, "SELECT k.n, nextval('lookup_test')::int8, 0::int8 FROM k"
        )
        with pytest.raises(Unavailable, match="read-only"):
            await writing.get((1,))


@scenario
async def test_table_may_change_between_two_queries(conninfo: str) -> None:
    async with connected(conninfo) as connections:
        with psycopg.connect(conninfo, autocommit=True) as other:
            other.execute("DROP TABLE IF EXISTS changing")
            other.execute("CREATE TABLE changing AS SELECT 5::int8 AS value")
            lookup = numbers(
                connections, "SELECT k.n, t.*, 0::int8 AS zero FROM k, changing t"
            )
            assert await lookup.get((1,)) == (5, 0)
            other.execute("ALTER TABLE changing ADD COLUMN other int8 DEFAULT 9")
            with pytest.raises(Unavailable, match="cached plan"):
                await lookup.get((1,))
            assert await lookup.get((1,)) == (5, 9)
            other.execute("DROP TABLE changing")
