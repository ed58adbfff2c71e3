from __future__ import annotations

import asyncio
import struct
import termios
import time
from collections.abc import Callable
from fcntl import ioctl
from pathlib import Path

import psycopg
import pytest

from config.embedded.postgres import PostgresServer
from postgres.connection import Connection
from postgres.connections import Connections
from postgres.errors import ConnectionFailed, Unavailable
from postgres.lookup import Lookup
from postgres.statement import INT8, Statement, read_int8
from tests.support.coroutines import scenario
from tests.support.waiting import in_time, until, wait_until

ONE = Statement("SELECT 1::int8")
MINE = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'connections'"
FOR_EVER = Statement("SELECT pg_sleep(600)")


def lookup_on(
    connections: Connections, sql: str = "k.number"
) -> Lookup[tuple[int], int]:
    return Lookup(
        connections,
        f"SELECT k.n, {sql} FROM k",
        [("number", INT8)],
        lambda row: read_int8(row[0] or b""),
    )


@scenario
async def test_no_connection_is_opened_before_it_is_needed(
    conninfo: str, sql: psycopg.Connection[tuple[object, ...]]
) -> None:
    connections = Connections(f"{conninfo}?application_name=connections")
    assert sql.execute(MINE).fetchone() == (0,)
    await connections.fetch(ONE)
    assert sql.execute(MINE).fetchone() == (1,)
    await connections.close()


@scenario
async def test_a_host_that_can_not_be_one_is_a_database_that_is_away() -> None:
    connections = Connections("host=database..internal", probe_interval=0.1)
    for _ in range(2):
        with pytest.raises(Unavailable, match="cannot connect"):
            await in_time(connections.fetch(ONE))
    await connections.close()


@scenario
async def test_never_more_connections_than_configured(
    conninfo: str, sql: psycopg.Connection[tuple[object, ...]]
) -> None:
    connections = Connections(f"{conninfo}?application_name=connections", size=3)
    sleeping = Statement("SELECT pg_sleep(0.02)")
    waiting = [asyncio.ensure_future(connections.fetch(sleeping)) for _ in range(40)]
    most = 0
    is_over = False
    while not is_over:
        is_over = all(task.done() for task in waiting)
        row = sql.execute(MINE).fetchone()
        assert row is not None
        most = max(most, int(str(row[0])))
        await asyncio.wait(waiting, timeout=0.01)
    await asyncio.gather(*waiting)
    await connections.close()
    assert most == 3


@scenario
async def test_query_that_takes_too_long_is_given_up(conninfo: str) -> None:
    connections = Connections(conninfo, query_timeout=1.5)
    with pytest.raises(Unavailable, match="timeout"):
        await in_time(connections.fetch(FOR_EVER))
    assert await connections.fetch(ONE) == [((1).to_bytes(8),)]
    await connections.close()


@scenario
async def test_killed_connection_fails_its_query_and_is_replaced(
    conninfo: str, sql: psycopg.Connection[tuple[object, ...]]
) -> None:
    connections = Connections(f"{conninfo}?application_name=connections", size=1)
    sleeper = asyncio.ensure_future(connections.fetch(FOR_EVER))
    asleep = f"{MINE} AND wait_event = 'PgSleep'"
    await until(lambda: sql.execute(asleep).fetchone() == (1,))
    sql.execute(MINE.replace("count(*)", "pg_terminate_backend(pid)"))
    with pytest.raises(Unavailable):
        await in_time(sleeper)
    assert await connections.fetch(ONE) == [((1).to_bytes(8),)]
    await connections.close()


@scenario
async def test_closing_fails_what_waits(
    conninfo: str, sql: psycopg.Connection[tuple[object, ...]]
) -> None:
    connections = Connections(f"{conninfo}?application_name=closing", size=1)
    waiting = [asyncio.ensure_future(connections.fetch(FOR_EVER)) for _ in range(3)]
    asleep = f"{MINE} AND wait_event = 'PgSleep'".replace("connections", "closing")
    await until(lambda: sql.execute(asleep).fetchone() == (1,))
    await connections.close()
    outcomes = await in_time(asyncio.gather(*waiting, return_exceptions=True))
    assert all(isinstance(outcome, Unavailable) for outcome in outcomes)
    with pytest.raises(Unavailable, match="closed"):
        await connections.fetch(ONE)


@scenario
async def test_answer_larger_than_any_buffer_arrives(conninfo: str) -> None:
    connections = Connections(conninfo)
    rows = await connections.fetch(Statement("SELECT repeat('x', 5000000)"))
    assert rows == [(b"x" * 5_000_000,)]
    await connections.close()


def test_long_rows_that_have_come_are_read_at_once(
    conninfo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[int] = []
    rows = Statement("SELECT repeat('x', 30000) FROM generate_series(1, 4)")

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        sockets: set[int] = set()
        add_reader = loop.add_reader

        def counting(
            descriptor: int, callback: Callable[..., None], *arguments: object
        ) -> None:
            def read() -> None:
                turns.append(descriptor)
                callback(*arguments)

            sockets.add(descriptor)
            add_reader(descriptor, read)

        monkeypatch.setattr(loop, "add_reader", counting)
        connection = await Connection.open(
            conninfo, connect_timeout=60, query_timeout=60, on_lost=lambda _: None
        )
        assert (await connection.run(rows, ())).ntuples == 4
        turns.clear()
        running = asyncio.ensure_future(connection.run(rows, ()))
        await asyncio.sleep(0)
        # The event loop does not run until everything has arrived.
        (descriptor,) = sockets
        wait_until(lambda: unread(descriptor) > 120_000)
        assert (await in_time(running)).ntuples == 4
        connection.close()

    asyncio.run(scenario())
    assert len(turns) <= 2  # the end of the command may have arrived a little later


def unread(descriptor: int) -> int:
    """Return the number of unread bytes in a socket's receive buffer."""
    return int(struct.unpack("i", ioctl(descriptor, termios.FIONREAD, bytes(4)))[0])


@scenario
async def test_question_larger_than_any_buffer_is_sent(conninfo: str) -> None:
    connections = Connections(conninfo)
    length = Statement("SELECT length($1::bytea)::int8", [17])
    rows = await connections.fetch(length, [bytes(5_000_000)])
    assert rows == [((5_000_000).to_bytes(8),)]
    await connections.close()


@scenario
async def test_while_the_database_is_down_there_is_one_attempt_per_interval(
    tmp_path: Path,
) -> None:
    attempts = 0

    async def hang_up(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        nonlocal attempts
        attempts += 1
        writer.close()
        await writer.wait_closed()

    fake = await asyncio.start_unix_server(hang_up, tmp_path / ".s.PGSQL.5432")
    connections = Connections(f"host={tmp_path} user=x dbname=x", probe_interval=0.2)
    lookup = lookup_on(connections)
    started = time.monotonic()
    while attempts < 4:
        results = await in_time(
            asyncio.gather(
                *(lookup.get((i,)) for i in range(20)), return_exceptions=True
            )
        )
        assert {type(result) for result in results} == {ConnectionFailed}
        await asyncio.sleep(0)
    assert attempts <= (time.monotonic() - started) / 0.2 + 2
    await connections.close()
    fake.close()
    await fake.wait_closed()


@scenario
async def test_server_that_says_nothing_is_given_up(tmp_path: Path) -> None:
    released = asyncio.Event()

    async def keep_silent(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await released.wait()
        writer.close()
        await writer.wait_closed()

    fake = await asyncio.start_unix_server(keep_silent, tmp_path / ".s.PGSQL.5432")
    connections = Connections(f"host={tmp_path} user=x dbname=x", connect_timeout=0.2)
    with pytest.raises(Unavailable, match="cannot connect"):
        await in_time(connections.fetch(ONE))
    await connections.close()
    released.set()
    fake.close()
    await fake.wait_closed()


@scenario
async def test_restarted_database_is_found_again_under_load(
    server: PostgresServer, conninfo: str
) -> None:
    connections = Connections(conninfo, probe_interval=0.2)
    lookup = lookup_on(connections)
    outcomes: list[tuple[float, float, bool]] = []
    stopped = False

    async def client(first: int) -> None:
        number = first
        while not stopped:
            asked = time.monotonic()
            number += 100
            try:
                answer = await in_time(lookup.get((number,)))
            except Unavailable:
                outcomes.append((asked, time.monotonic(), False))
                await asyncio.sleep(0.01)
            else:
                assert answer == number
                outcomes.append((asked, time.monotonic(), True))

    clients = [asyncio.create_task(client(i)) for i in range(16)]
    await until(lambda: len(outcomes) > 100)
    await asyncio.to_thread(server.stop)
    stopped_at = time.monotonic()  # earlier results may still be unread
    await until(lambda: any(asked > stopped_at for asked, _, _ in outcomes))
    down = time.monotonic()
    several_probes = 0.5
    await until(lambda: outcomes[-1][0] > down + several_probes)
    restarting = time.monotonic()
    await asyncio.to_thread(server.start)
    up = time.monotonic()
    await until(lambda: any(good for _, at, good in outcomes if at > up))
    recovered = time.monotonic()
    await until(lambda: any(asked > recovered for asked, _, _ in outcomes))
    stopped = True
    await asyncio.gather(*clients)
    await connections.close()
    assert any(good for _, at, good in outcomes if at < down)
    between = [good for _, at, good in outcomes if down < at < restarting]
    assert between and not any(between)
    assert all(good for asked, _, good in outcomes if asked > recovered)
