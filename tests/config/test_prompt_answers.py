"""Applications that answer as they are called, without a task."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterator

import pytest

from nodeapi.http import DONE, GoOn
from tests.support.served import Served, read_answer, served
from tests.support.waiting import wait_until

HEAD = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n{}\r\n"


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    with served(monkeypatch, "prompt") as connect:
        yield connect


def asking(body: bytes, *headers: str) -> bytes:
    return HEAD.format(len(body), "".join(f"{h}\r\n" for h in headers)).encode() + body


def test_request_that_comes_whole_is_answered_at_once(connect: Served) -> None:
    with connect() as client:
        for size in (0, 1, 50_000):
            client.sendall(asking(b"x" * size))
            _, body = read_answer(client)
            # A long one may come in pieces.
            expected = {b"at once %d '127.0.0.1'" % size, b"later %d" % size}
            assert body in (expected if size > 1 else {sorted(expected)[0]})


def test_body_that_comes_later_is_waited_for(connect: Served) -> None:
    whole = asking(b"xyz")
    with connect() as client:
        client.sendall(whole[:-2])
        # Nothing but the second half can bring an answer.
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.recv(1)
        client.settimeout(10)
        client.sendall(whole[-2:])
        assert read_answer(client)[1] == b"later 3"


def test_requests_on_top_of_each_other_are_answered_in_order(connect: Served) -> None:
    sizes = [n % 7 for n in range(300)]
    with connect() as client:
        client.sendall(b"".join(asking(b"x" * size) for size in sizes))
        data = b""
        while data.count(b"at once") < len(sizes) or not data.endswith(b"'127.0.0.1'"):
            received = client.recv(2**16)
            assert received
            data += received
    bodies = [part.split(b" ")[0] for part in data.split(b"at once ")[1:]]
    assert bodies == [b"%d" % size for size in sizes]


def test_application_goes_on_when_a_future_is_done(connect: Served) -> None:
    asked = ["plain1", "task1", "plain2", "plain3", "task2"]
    requests = [asking(b"").replace(b"/", b"/asked/%b" % a.encode(), 1) for a in asked]
    with connect() as client:
        for name, request in zip(asked, requests, strict=True):
            client.sendall(request)
            assert read_answer(client)[1] == name.encode()
        # On top of each other, they are answered in their order, too.
        client.sendall(b"".join(requests))
        data = b""
        while data.count(b"HTTP/1.1") < len(asked) or not data.endswith(b"task2"):
            data += client.recv(2**16)
    bodies = [part.rpartition(b"\r\n")[2] for part in data.split(b"HTTP/1.1")[1:]]
    assert bodies == [name.encode() for name in asked]
    with connect() as client:  # and who hangs up meanwhile disturbs nobody
        client.sendall(requests[0])
    with connect() as client:
        client.sendall(requests[0].replace(b"host: x", b"connection: close"))
        assert read_answer(client)[1] == b"plain1"
        assert client.recv(1) == b""


def test_what_waits_for_a_future_counts_as_a_task_and_ends_like_one(
    connect: Served,
) -> None:
    with connect() as client:
        client.sendall(asking(b"").replace(b"/", b"/asked/never", 1))
        connection = connect.connection()
        (future,) = wait_until(lambda: connection.tasks)
        connection.loop.call_soon_threadsafe(future.cancel)
        lines, _ = read_answer(client)
        assert b"HTTP/1.1 500 Internal Server Error" in lines
        wait_until(lambda: not connection.tasks)


def test_a_proxy_tells_whom_a_request_comes_from(connect: Served) -> None:
    with connect() as client:
        client.sendall(asking(b"", "X-Forwarded-For: 192.0.2.7, 127.0.0.1"))
        assert read_answer(client)[1] == b"at once 0 '192.0.2.7'"


def test_application_that_fails_as_it_is_called_has_failed(
    connect: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with connect() as client, caplog.at_level(logging.ERROR, "uvicorn.error"):
        client.sendall(asking(b"").replace(b"POST /", b"POST /broken"))
        lines, _ = read_answer(client)
    assert b"HTTP/1.1 500 Internal Server Error" in lines
    assert "no answer today" in caplog.text
    with connect() as client, caplog.at_level(logging.ERROR, "uvicorn.error"):
        client.sendall(asking(b"").replace(b"POST /", b"POST /asked/broken"))
        lines, _ = read_answer(client)
    assert b"HTTP/1.1 500 Internal Server Error" in lines
    assert "no answer today either" in caplog.text


def test_what_is_done_or_goes_on_can_be_awaited_by_other_servers() -> None:
    async def wait() -> None:
        assert await DONE is None
        future = asyncio.get_running_loop().create_future()
        future.get_loop().call_soon(future.set_exception, OSError())
        went_on = []

        def go_on() -> Awaitable[None]:
            went_on.append(future.exception())
            return DONE

        assert await GoOn(future, go_on) is None
        assert isinstance(went_on[0], OSError)

    asyncio.run(wait())
