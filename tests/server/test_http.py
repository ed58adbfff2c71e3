"""The HTTP protocol of a worker, tested with raw bytes on sockets."""

from __future__ import annotations

import gc
import logging
import socket
import struct

import pytest
import websockets.sync.client

from server import http, time_limits
from server.request import Request
from tests.support.applications import Answering
from tests.support.served import Served, bodies, read_all, read_answer, request
from tests.support.waiting import wait_until

START = b"POST /node/echo HTTP/1.1\r\nhost: x\r\n"
PAGE = b"GET /page HTTP/1.1\r\nhost: x\r\n\r\n"


def test_whole_request_is_answered_at_once(connect: Served) -> None:
    with connect() as client:
        for size in (0, 1, 9000):
            client.sendall(request("/node/echo", body=b"x" * size))
            assert bodies(client, 1) == [b"%d '127.0.0.1' at once" % size]


def test_body_may_arrive_later(connect: Served) -> None:
    whole = request("/node/echo", body=b"xyz")
    with connect() as client:
        client.sendall(whole[:-2])
        seen_by = connect.connection()
        wait_until(lambda: seen_by.is_answering)
        client.sendall(whole[-2:])
        assert bodies(client, 1) == [b"3 '127.0.0.1' later"]


@pytest.mark.parametrize("kind", ["size", "parts"])
@pytest.mark.parametrize("size", [0, 1, 1800, 20_000, 3_000_000])
def test_response_arrives_whole(connect: Served, kind: str, size: int) -> None:
    with connect() as client:
        for _ in range(3):
            client.sendall(request(f"/node/{kind}/{size}"))
            lines, body = read_answer(client)
            assert body == b"x" * size
            assert {b"HTTP/1.1 200 OK", b"content-type: text/plain"} <= lines
            assert b"connection: close" not in lines


def test_pipelined_requests_are_answered_in_order(connect: Served) -> None:
    paths = ["size/5", "later/a", "size/1", "later/b", "later/c", "size/2"] * 50
    with connect() as client:
        client.sendall(b"".join(request(f"/node/{path}") for path in paths))
        expected = [b"xxxxx", b"a", b"x", b"b", b"c", b"xx"] * 50
        assert bodies(client, len(paths)) == expected


def test_pipelined_requests_wait_until_the_client_reads(connect: Served) -> None:
    with connect() as client:
        client.sendall(request("/node/size/2000000") * 10)
        wait_until(lambda: connect.bounds.buffered.size > 0)
        assert connect.bounds.buffered.size < 4_000_000
        assert bodies(client, 10) == [b"x" * 2_000_000] * 10


@pytest.mark.parametrize(
    "asking",
    [
        request("/node/size/9", "connection: close"),
        request("/node/size/9", version="1.0"),
    ],
)
def test_connection_ends_when_the_client_wants_that(
    connect: Served, asking: bytes
) -> None:
    with connect() as client:
        client.sendall(asking + request("/node/size/1"))
        answer = read_all(client)
        assert b"connection: close\r\n" in answer
        assert answer.endswith(b"\r\n\r\nxxxxxxxxx")


def test_response_to_head_has_no_body(connect: Served) -> None:
    with connect() as client:
        client.sendall(b"HEAD /node/size/7 HTTP/1.1\r\nhost: x\r\n\r\n")
        client.sendall(request("/node/later/b"))
        buffer = client.makefile("rb")
        while (line := buffer.readline()) != b"\r\n":
            assert line
        assert buffer.readline() == b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/node/stream/3", b"2\r\n0,\r\n2\r\n1,\r\n2\r\n2,\r\n0\r\n\r\n"),
        ("/node/stream/3/6", b"0,1,2,"),
    ],
)
def test_stream_is_sent_while_it_is_produced(
    connect: Served, application: Answering, path: str, expected: bytes
) -> None:
    with connect() as client:
        client.sendall(request(path, "connection: close"))
        assert read_all(client).endswith(b"\r\n\r\n" + expected)
    assert application.events == ["closed"]


def test_stream_without_a_length_ends_an_old_connection(connect: Served) -> None:
    with connect() as client:
        client.sendall(request("/node/stream/3", version="1.0"))
        assert read_all(client).endswith(b"\r\n\r\n0,1,2,")


def test_broken_stream_ends_the_connection(
    connect: Served, application: Answering
) -> None:
    with connect() as client:
        client.sendall(request("/node/broken-stream") + request("/node/size/1"))
        assert read_all(client).endswith(b"\r\n\r\nsome")
    assert application.events == ["closed"]


def test_stream_that_is_not_sent_is_closed(
    connect: Served, application: Answering
) -> None:
    with connect() as client:
        client.sendall(request("/node/gone/stream"))
        wait_until(lambda: connect.connection().is_answering)
    wait_until(lambda: application.events == ["gone", "closed"])


def test_stream_is_closed_if_its_connection_ends_at_once(
    connect: Served, application: Answering
) -> None:
    application.abort = lambda: connect.connection().transport.abort()
    with connect() as client:
        client.sendall(request("/node/lost-stream"))
        wait_until(lambda: application.events == ["closed"])
        wait_until(lambda: connect.process.in_flight == 0)


def test_request_learns_that_its_client_has_disconnected(
    connect: Served, application: Answering
) -> None:
    with connect() as client:
        client.sendall(request("/node/gone"))
        wait_until(lambda: connect.connection().is_answering)
        assert connect.process.in_flight == 1
    wait_until(lambda: application.events == ["gone"])
    wait_until(lambda: connect.process.in_flight == 0)


@pytest.mark.parametrize("path", ["crash", "fail"])
def test_crash_is_reported_and_ends_the_connection(
    connect: Served, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    with connect() as client, caplog.at_level(logging.ERROR, "server.http"):
        client.sendall(request(f"/node/{path}"))
        assert read_all(client).startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert "no answer" in caplog.text


def test_body_of_a_refused_request_is_skipped(connect: Served) -> None:
    with connect() as client:
        whole = request("/node/refused", body=b"y" * 200_000)
        client.sendall(whole[:1000])
        assert read_answer(client)[1] == b"refused"
        client.sendall(whole[1000:] + request("/node/later/b"))
        assert bodies(client, 1) == [b"b"]


def test_endless_body_of_a_refused_request_ends_the_connection(
    connect: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "DISCARDED_BYTES", 100_000)
    with connect() as client:
        client.sendall(
            b"POST /node/refused HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        assert read_answer(client)[1] == b"refused"
        with pytest.raises(ConnectionError):
            while True:
                client.sendall(b"1000\r\n" + b"y" * 0x1000 + b"\r\n")


def test_slow_body_of_a_refused_request_ends_the_connection(connect: Served) -> None:
    with connect() as client:
        client.sendall(request("/node/refused", body=b"y" * 10)[:-1])
        assert read_answer(client)[1] == b"refused"
        connect.check_limits(time_limits.DISCARD_SECONDS - 1)
        connect.check_limits(time_limits.DISCARD_SECONDS)
        assert client.recv(1) == b""


def test_body_beyond_the_limit_of_the_handler(connect: Served) -> None:
    start = (
        b"POST /node/limited HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    with connect() as client:
        client.sendall(start)
        wait_until(lambda: connect.connection().is_answering)
        client.sendall(b"b\r\n12345678901\r\n")
        assert bodies(client, 1) == [b"BodyTooLarge()"]
        client.sendall(b"0\r\n\r\n" + start)
        assert bodies(client, 1) == [b"BodyTooSlow()"]


def test_client_is_asked_for_a_body_that_is_wanted(connect: Served) -> None:
    asking = request("/node/echo", "expect: 100-continue", body=b"xyz")
    with connect() as client:
        client.sendall(asking[:-3])
        assert client.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"xyz")
        assert bodies(client, 1) == [b"3 '127.0.0.1' later"]
        client.sendall(asking.replace(b"echo", b"refused")[:-3])
        answer = read_all(client)
        assert answer.startswith(b"HTTP/1.1 401 ")
        assert b"connection: close\r\n" in answer


def test_old_client_is_not_asked_for_a_body(connect: Served) -> None:
    asking = request("/node/echo", "expect: 100-continue", body=b"xyz", version="1.0")
    with connect() as client:
        client.sendall(asking[:-3])
        seen_by = connect.connection()
        wait_until(lambda: seen_by.is_answering)
        client.sendall(b"xyz")
        assert read_all(client).startswith(b"HTTP/1.1 200 OK\r\n")


def test_body_that_comes_without_being_asked_for_is_skipped(connect: Served) -> None:
    asking = request("/node/limited", "expect: 100-continue", body=b"y" * 1000)
    with connect() as client:
        client.sendall(asking[:-500])
        assert bodies(client, 1) == [b"BodyTooLarge()"]
        client.sendall(asking[-500:] + request("/node/size/1"))
        assert bodies(client, 1) == [b"x"]


def test_proxy_names_the_client(connect: Served) -> None:
    with connect() as client:
        client.sendall(request("/node/echo", "X-Forwarded-For: 192.0.2.7, 127.0.0.1"))
        assert bodies(client, 1) == [b"0 '192.0.2.7' at once"]
        lines = "X-Forwarded-For: 192.0.2.8", "X-Forwarded-For: 127.0.0.1"
        client.sendall(request("/node/echo", *lines))
        assert bodies(client, 1) == [b"0 '192.0.2.8' at once"]


def test_date_is_the_present_one(connect: Served) -> None:
    def date() -> bytes:
        client.sendall(request("/node/size/1"))
        lines = client.recv(1000).split(b"\r\n")
        return next(line for line in lines if line.startswith(b"date: "))

    with connect() as client:
        first = date()
        wait_until(lambda: date() != first)


# Hand-over


def test_pages_and_node_requests_share_a_connection(connect: Served) -> None:
    asking = [
        (request("/node/size/2"), b"xx"),
        (request("/page/1", body=b"12345"), b"page /page/1 5"),
        (request("/node/later/a"), b"a"),
        (request("/node/echo", body=b"123"), b"3 '127.0.0.1' later"),
        (PAGE, b"page /page 0"),
    ]
    with connect() as client:
        client.sendall(b"".join(data for data, _ in asking))
        assert bodies(client, 5) == [body for _, body in asking]
    with connect() as client:
        for data, body in asking:
            for cut in (data[:9], data[9:40], data[40:]):
                client.sendall(cut)
            assert bodies(client, 1) == [body]


def test_chunked_body_of_a_page_is_passed_on(connect: Served) -> None:
    start = b"POST /page HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    chunks = b"3\r\nabc\r\n4\r\n\r\n\r\n\r\n0\r\n\r\n"
    with connect() as client:
        client.sendall((start + chunks) * 2 + request("/node/size/1"))
        assert bodies(client, 3) == [b"page /page 7", b"page /page 7", b"x"]


def test_body_of_a_page_is_no_request_even_if_it_asks_for_an_upgrade(
    connect: Served,
) -> None:
    wishes = "Connection: upgrade", "Upgrade: h2c"
    with connect() as client:
        for _ in range(2):
            client.sendall(request("/page/1", *wishes, body=PAGE) + PAGE)
            expected = b"page /page/1 %d" % len(PAGE)
            assert bodies(client, 2) == [expected, b"page /page 0"]


def test_body_of_a_request_that_uvicorn_has_answered_is_skipped(
    connect: Served,
) -> None:
    whole = request("/node/refused", body=b"y" * 200_000)
    with connect() as client:
        client.sendall(PAGE + whole[:1000])
        assert bodies(client, 2) == [b"page /page 0", b"refused"]
        client.sendall(whole[1000:] + request("/node/later/b"))
        assert bodies(client, 1) == [b"b"]
        client.sendall(whole[:1000])
        assert bodies(client, 1) == [b"refused"]
        connect.check_limits(time_limits.DISCARD_SECONDS - 5)
        connect.check_limits(time_limits.DISCARD_SECONDS)
        assert client.recv(1) == b""


def test_malformed_body_gets_no_second_response(connect: Served) -> None:
    start = b"POST /node/refused HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n"
    for first in ([], [b"page /page 0"]):
        with connect() as client:
            client.sendall(PAGE * len(first) + start + b"\r\n")
            assert bodies(client, 1 + len(first)) == [*first, b"refused"]
            client.sendall(b"zz\r\n" + PAGE)
            assert read_all(client) == b""


def test_body_of_a_node_request_is_kept_on_any_connection(connect: Served) -> None:
    with connect() as client:
        client.sendall(PAGE + request("/node/body", body=b"12"))
        assert bodies(client, 2) == [b"page /page 0", b"b'12'"]


def test_stream_ends_when_the_client_of_uvicorn_disconnects(
    connect: Served, application: Answering
) -> None:
    with connect() as client:
        client.sendall(PAGE + request("/node/endless-stream"))
        received = b""
        while received.count(b"HTTP/1.1 200") < 2:  # the stream has begun
            received += client.recv(1000)
    wait_until(lambda: application.events == ["closed"])


def test_reading_pauses_though_uvicorn_has_resumed_it(connect: Served) -> None:
    reads: list[bool] = []

    def pause_twice() -> None:
        connection.pause_reading()
        connection.transport.resume_reading()
        connection.pause_reading()
        reads.append(connection.transport.is_reading())

    with connect():
        connection = connect.connection()
        connection.loop.call_soon_threadsafe(pause_twice)
        wait_until(lambda: reads == [False])


def test_websocket_is_uvicorns_and_leaves_the_limits(connect: Served) -> None:
    with connect() as client:
        port = client.getpeername()[1]
    with websockets.sync.client.connect(f"ws://127.0.0.1:{port}/ws") as client:
        client.send("hello")
        assert client.recv() == "hello"
        wait_until(lambda: not connect.process.connections)
        assert connect.process.websockets == 1


def test_upgrade_of_a_node_request_is_ignored(connect: Served) -> None:
    wishes = "connection: upgrade", "upgrade: h2c"
    with connect() as client:
        client.sendall(request("/node/echo", *wishes, body=b"12") * 2 + PAGE)
        echoed = b"2 '127.0.0.1' at once"
        assert bodies(client, 3) == [echoed, echoed, b"page /page 0"]


# The end


def test_request_in_flight_is_answered_before_a_worker_leaves(
    connect: Served, application: Answering
) -> None:
    with connect() as client, connect() as idle:
        idle.sendall(request("/node/size/1"))
        assert bodies(idle, 1) == [b"x"]
        client.sendall(request("/node/released/a"))
        wait_until(lambda: connect.process.in_flight == 1)
        connect.process.is_draining = True
        loop = next(iter(connect.process.connections)).loop
        loop.call_soon_threadsafe(application.released.set)
        lines, body = read_answer(client)
        assert (b"connection: close" in lines, body) == (True, b"a")
        assert client.recv(1) == b""


def test_connection_ends_with_a_stream_that_began_before_the_worker_leaves(
    connect: Served, application: Answering
) -> None:
    with connect() as client:
        client.sendall(request("/node/paused-stream"))
        connection = connect.connection()
        wait_until(lambda: connection.is_answering)
        assert b"200 OK" in client.recv(15, socket.MSG_WAITALL)
        connection.loop.call_soon_threadsafe(connection.shutdown)
        connection.loop.call_soon_threadsafe(application.released.set)
        assert read_all(client).endswith(b"somemore")


def test_connection_ends_with_a_body_that_is_skipped_while_the_worker_leaves(
    connect: Served,
) -> None:
    whole = request("/node/refused", body=b"y" * 2000)
    with connect() as client:
        client.sendall(whole[:1000])
        assert bodies(client, 1) == [b"refused"]
        connection = connect.connection()
        closing: list[bool] = []

        def leave() -> None:
            connection.shutdown()
            closing.append(connection.transport.is_closing())

        connection.loop.call_soon_threadsafe(leave)
        wait_until(lambda: closing == [False])
        client.sendall(whole[1000:])
        assert read_all(client) == b""


@pytest.mark.parametrize("is_reset", [False, True])
def test_connections_are_freed_without_the_garbage_collector(
    connect: Served, is_reset: bool
) -> None:
    def left() -> int:
        kinds = (http.HttpProtocol, Request)
        # By type: isinstance() follows weak proxies, whose objects may be gone.
        return sum(issubclass(type(one), kinds) for one in gc.get_objects())

    gc.collect()
    gc.freeze()  # `get_objects` returns none of the objects that exist now
    gc.disable()
    try:
        for _ in range(5):
            with connect() as client:
                for path in ("size/1", "later/a", "size/1"):
                    client.sendall(request(f"/node/{path}"))
                    read_answer(client)
                if is_reset:
                    lingers = struct.pack("ii", 1, 0)
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, lingers)
        wait_until(lambda: left() == 0)
    finally:
        gc.enable()
