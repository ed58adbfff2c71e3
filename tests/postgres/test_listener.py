from __future__ import annotations

import asyncio

import psycopg
import pytest

from config.embedded.postgres import PostgresServer
from postgres.listener import Listener
from tests.support.waiting import until

MINE = "FROM pg_stat_activity WHERE application_name = 'listener'"


def test_notifications_of_its_channels_arrive_in_order(
    conninfo: str, sql: psycopg.Connection[tuple[object, ...]]
) -> None:
    async def scenario() -> None:
        heard: list[tuple[str, str]] = []
        listener = Listener(conninfo)
        listener.listen("first", lambda payload: heard.append(("first", payload)))
        listener.listen("second", lambda payload: heard.append(("second", payload)))
        assert listener.epoch == 0
        await listener.start()
        await until(lambda: listener.epoch > 0)
        sql.execute("SELECT pg_notify('other', 'x')")
        for number in range(3):
            sql.execute(f"SELECT pg_notify('first', '{number}')")
            sql.execute(f"SELECT pg_notify('second', '{number}')")
        await until(lambda: len(heard) == 6)
        assert heard == [
            (channel, str(number))
            for number in range(3)
            for channel in ("first", "second")
        ]
        await listener.stop()
        assert listener.epoch == 0

    asyncio.run(scenario())


def test_lost_connection_ends_the_epoch_and_the_next_one_is_announced(
    conninfo: str, sql: psycopg.Connection[tuple[object, ...]]
) -> None:
    async def scenario() -> None:
        epochs: list[int] = []
        listener = Listener(f"{conninfo}?application_name=listener", retry_interval=0.1)
        listener.listen("channel", lambda payload: None)
        listener.at_epoch(lambda: epochs.append(listener.epoch))
        await listener.start()
        await until(lambda: epochs)
        (first,) = epochs
        sql.execute(f"SELECT pg_terminate_backend(pid) {MINE}")
        await until(lambda: listener.epoch == 0)
        await until(lambda: listener.epoch > 0)
        assert epochs[0] == first == 1
        assert listener.epoch == epochs[-1] == len(epochs)
        await listener.stop()

    asyncio.run(scenario())


def test_a_callback_that_fails_does_not_end_the_listening(
    conninfo: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        epochs: list[int] = []

        def told() -> None:
            epochs.append(listener.epoch)
            if len(epochs) == 1:
                raise ValueError("not today")

        listener = Listener(conninfo, retry_interval=0.1)
        listener.at_epoch(told)
        await listener.start()
        await until(lambda: len(epochs) == 2 and listener.epoch == 2)
        await listener.stop()

    asyncio.run(scenario())
    assert "not today" in caplog.text


def test_server_that_no_longer_answers_ends_the_epoch(conninfo: str) -> None:
    """A proxy stands for the network: it stays connected and passes nothing on."""

    async def scenario() -> None:
        target = psycopg.conninfo.conninfo_to_dict(conninfo)
        silent = False

        async def pump(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            while data := await reader.read(65536):
                if not silent:
                    writer.write(data)
            writer.close()

        async def proxy(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            path = f"{target['host']}/.s.PGSQL.{target['port']}"
            to_reader, to_writer = await asyncio.open_unix_connection(path)
            await asyncio.gather(pump(reader, to_writer), pump(to_reader, writer))

        front = await asyncio.start_server(proxy, "127.0.0.1", 0)
        port = front.sockets[0].getsockname()[1]
        listener = Listener(
            psycopg.conninfo.make_conninfo(
                conninfo, host="127.0.0.1", port=port, gssencmode="disable"
            ),
            heartbeat=0.1,
            timeout=2.0,
        )
        listener.listen("channel", lambda payload: None)
        await listener.start()
        await until(lambda: listener.epoch > 0)
        silent = True
        await until(lambda: listener.epoch == 0)
        await listener.stop()
        front.close()
        await asyncio.sleep(0.05)

    asyncio.run(scenario())


def test_listening_begins_when_the_server_does(
    server: PostgresServer, conninfo: str
) -> None:
    async def scenario() -> None:
        await asyncio.to_thread(server.stop)
        listener = Listener(conninfo, retry_interval=0.1)
        listener.listen("channel", lambda payload: None)
        await listener.start()
        await asyncio.sleep(0.2)
        assert listener.epoch == 0
        await asyncio.to_thread(server.start)
        await until(lambda: listener.epoch > 0)
        await listener.stop()

    asyncio.run(scenario())
