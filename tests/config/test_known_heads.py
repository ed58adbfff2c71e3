"""Requests whose heads have come before, and are not parsed again."""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from config import known_heads, protocol, worker
from config.known_heads import KnownHead, KnownHeads, KnownRequest
from tests.support.applications import LONG, recognising
from tests.support.served import Served, read_answer, served
from tests.support.waiting import wait_until

CLIENT = "'127.0.0.1'"


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Return what connects to a worker that looks at its connections when told to."""
    monkeypatch.setattr(protocol, "LOOK_SECONDS", 3600)
    with served(monkeypatch, "recognising") as connect:
        yield connect


def asking(body: bytes = b"", path: str = "/", *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "host: x", f"content-length: {len(body)}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + body


def ask(client: socket.socket, *pieces: bytes) -> str:
    """Return the answer's body."""
    for piece in pieces:
        client.sendall(piece)
        if len(pieces) > 1:
            seen_separately()
    return read_answer(client)[1].decode()


def seen_separately() -> None:
    """Wait until the worker has surely read what was sent."""
    time.sleep(0.05)


def make_known(client: socket.socket, request: bytes) -> None:
    """Send a request as often as it takes until its head is known."""
    for _ in range(2):
        assert ask(client, request).startswith("told")


def test_head_that_has_come_twice_is_known(connect: Served) -> None:
    with connect() as client:
        assert ask(client, asking(b"abc")) == f"told 3 {CLIENT}"
        assert ask(client, asking(b"xyz")) == f"told 3 {CLIENT}"
        assert ask(client, asking(b"uvw")) == f"known 3 {CLIENT}"
        make_known(client, asking(b"xyzz"))
        assert ask(client, asking(b"abcd")) == f"known 4 {CLIENT}"
        assert ask(client, asking(b"abc")) == f"known 3 {CLIENT}"
        assert ask(client, asking(b"abc", "/a")) == f"told 3 {CLIENT}"
    with connect() as client:  # another connection's, too
        assert ask(client, asking(b"abc")) == f"known 3 {CLIENT}"
        client.sendall(asking(b"abc"))
        lines, _ = read_answer(client)
        assert {b"x-more: a", b"content-type: application/json"} <= lines


def test_body_may_come_after_its_head(connect: Served) -> None:
    head, body = asking(b"abcdef")[:-6], b"abcdef"
    with connect() as client:
        assert ask(client, head, body) == f"told 6 {CLIENT}"
        assert ask(client, head, body) == f"told 6 {CLIENT}"
        assert ask(client, head, body) == f"known 6 {CLIENT}"
        assert ask(client, head + body) == f"known 6 {CLIENT}"
        # What comes in other pieces is parsed.
        assert ask(client, head, body[:2], body[2:]) == f"told 6 {CLIENT}"
        assert ask(client, head + body[:2], body[2:]) == f"told 6 {CLIENT}"
        assert ask(client, head[:9], head[9:], body) == f"told 6 {CLIENT}"
        assert ask(client, head, body) == f"known 6 {CLIENT}"


def test_body_that_does_not_come_is_waited_for_by_the_application(
    connect: Served,
) -> None:
    head = asking(b"abc")[:-3]
    with connect() as client:
        make_known(client, head + b"abc")
        client.sendall(head)
        seen_by = connect.connection()
        wait_until(lambda: seen_by._held is not None)
        connect.look(0.0)
        assert seen_by._held is None
        assert seen_by.cycle.more_body
        client.sendall(b"xyz")
        assert read_answer(client)[1].decode() == f"told 3 {CLIENT}"


@pytest.mark.parametrize(
    "headers",
    [
        ["expect: 100-continue"],
        ["x-request-id: a"],
        ["traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"],
        ["connection: close"],
        ["upgrade: h2c"],
        ["x-long: " + "a" * known_heads.MAX_KNOWN_BYTES],
        [f"x-{n}: a" for n in range(known_heads.MAX_KNOWN_HEADERS)],
    ],
)
def test_some_heads_are_never_known(connect: Served, headers: list[str]) -> None:
    for _ in range(4):
        with connect() as client:
            client.sendall(asking(b"abc", "/", *headers))
            data = b""
            while b"told 3" not in data:
                received = client.recv(1000)
                assert received
                data += received


def test_neither_are_other_methods_nor_what_nobody_recognises(connect: Served) -> None:
    with connect() as client:
        for _ in range(4):
            assert ask(client, asking(b"abc", "/unknown")) == f"told 3 {CLIENT}"
            get = asking().replace(b"POST", b"GET")
            assert ask(client, get) == f"told 0 {CLIENT}"


def test_two_requests_at_once_are_not_taken_for_one(connect: Served) -> None:
    """The head of the second is as long as its body: that could be the first's."""
    size = len(asking(b"x" * 50)) - 50
    first, head, other = (
        asking(path="/first"),
        asking(b"x" * size)[:size],
        asking(path="/a"),
    )
    assert len(other) == len(head) == size
    for _ in range(2):
        with connect() as client:
            client.sendall(first + head)
            read_answer(client)
            client.sendall(b"x" * size)
            read_answer(client)
    with connect() as client:
        client.sendall(first + other)
        data = b""
        while data.count(b"told 0") < 2:
            received = client.recv(1000)
            assert received
            data += received


def test_request_without_a_length_has_no_body(connect: Served) -> None:
    start = time.monotonic()
    with connect() as client:
        for word in ("told", "told", "known", "known"):
            client.sendall(b"POST /bodyless HTTP/1.1\r\nhost: x\r\n\r\n")
            assert read_answer(client)[1].decode() == f"{word} 0 {CLIENT}"
    assert time.monotonic() - start < protocol.LOOK_SECONDS


def test_length_may_have_more_digits_than_python_reads(
    connect: Served, caplog: pytest.LogCaptureFixture
) -> None:
    asked = asking(b"abc").replace(b": 3", b": %b3" % (b"0" * 5000))
    with connect() as client:
        for _ in range(3):
            assert ask(client, asked) == f"told 3 {CLIENT}"
    assert not caplog.records


def test_stray_line_ends_between_known_requests_never_add_up(connect: Served) -> None:
    with connect() as first:
        make_known(first, asking(b"abc"))
    with connect() as client:
        for _ in range(3):
            assert ask(client, b"\r\n", asking(b"abc")) == f"known 3 {CLIENT}"
        assert connect.connection()._unfinished_bytes == 0


@pytest.mark.parametrize("path", ["/", "/asked", "/later"])
def test_requests_on_top_of_each_other_are_answered_in_order(
    connect: Served, path: str
) -> None:
    bodies = [b"x" * (n % 3) for n in range(50)]
    with connect() as client:
        for body in bodies[:3]:
            make_known(client, asking(body, path))
        client.sendall(asking(bodies[0], path))
        for body in bodies[1:]:
            client.sendall(asking(body, path))
        data = b""
        while len(answers := re.findall(rb"(?:told|known) (\d+) '", data)) < 50:
            received = client.recv(2**16)
            assert received
            data += received
    assert [int(answer) for answer in answers] == [len(body) for body in bodies]


def test_known_request_may_wait_or_be_sent_as_messages(connect: Served) -> None:
    with connect() as client:
        for path in ("/asked", "/later"):
            make_known(client, asking(b"ab", path))
            answers = {ask(client, asking(b"ab", path)) for _ in range(3)}
            assert answers == {f"known 2 {CLIENT}"}


def test_known_request_that_fails_is_told_to_its_sender_alone(
    connect: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with connect() as client:
        make_known(client, asking(path="/broken"))
        assert ask(client, asking(path="/broken")) == "Internal Server Error"
    assert "no answer today" in caplog.text
    with connect() as client:
        assert ask(client, asking()).startswith("told")


def test_known_request_learns_that_its_client_has_gone(
    connect: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with connect() as client:
        make_known(client, asking(path="/waiting"))
        client.sendall(asking(path="/waiting"))
        connection = connect.connection()
        wait_until(lambda: type(connection.cycle) is KnownRequest)
    wait_until(lambda: recognising.hung_up)
    assert recognising.hung_up.pop() == {"type": "http.disconnect"}
    with connect() as client:
        make_known(client, asking(path="/asked"))
        client.sendall(asking(path="/asked"))
    with connect() as client:  # long enough for the one before
        for _ in range(3):
            ask(client, asking(path="/asked"))
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


def test_call_of_a_client_that_has_gone_is_not_carried_out() -> None:
    request = KnownRequest(None, KnownHead(lambda _: asyncio.sleep(0), 3, {}), b"abc")
    request.disconnected = True
    assert request.take_body() is None


def test_connection_rests_no_longer_than_it_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "KEEP_ALIVE_SECONDS", 0.3)
    with served(monkeypatch, "recognising") as connect, connect() as client:
        for _ in range(12):  # for longer than it may rest
            ask(client, asking(b"abc"))
            seen_separately()
        assert client.recv(1) == b""
        with connect() as later:
            client = later
            for _ in range(2):  # known from the beginning
                assert ask(client, asking(b"abc")).startswith("known")
            assert client.recv(1) == b""


def test_connection_at_work_does_not_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "KEEP_ALIVE_SECONDS", 0.3)
    monkeypatch.setattr(protocol, "LOOK_SECONDS", 3600)
    head = asking(b"abc")[:-3]
    with served(monkeypatch, "recognising") as connect, connect() as client:
        make_known(client, asking(b"", "/slow"))
        make_known(client, head + b"abc")
        # An answer that takes longer than the rest, then a body that comes after it.
        assert ask(client, asking(b"", "/slow")) == f"known 0 {CLIENT}"
        client.sendall(head)
        time.sleep(0.6)
        client.sendall(b"abc")
        assert read_answer(client)[1].decode() == f"known 3 {CLIENT}"
        assert client.recv(1) == b""


def test_known_request_waits_for_a_slow_reader(connect: Served) -> None:
    with connect() as client:
        for _ in range(3):
            client.sendall(asking(path="/long"))
            read_answer(client)
        client.sendall(asking(path="/long"))
        connection = connect.connection()
        wait_until(lambda: connection.flow.write_paused)
        client.sendall(asking(path="/long"))
        wait_until(lambda: connection.tasks)  # it waits until there is room
        assert [len(read_answer(client)[1]) for _ in range(2)] == [LONG] * 2


def test_requests_are_counted(connect: Served) -> None:
    with connect() as client:
        for _ in range(7):
            ask(client, asking(b"abc"))
        state = connect.connection().server_state
        wait_until(lambda: state.total_requests == 7)


def test_request_under_way_is_answered_before_a_worker_leaves(connect: Served) -> None:
    with connect() as client:
        make_known(client, asking(path="/slow"))
        client.sendall(asking(path="/slow"))
        connection = connect.connection()
        wait_until(lambda: type(connection.cycle) is KnownRequest)
        connection.loop.call_soon_threadsafe(connection.shutdown)
        lines, body = read_answer(client)
        assert b"connection: close" in lines
        assert body.decode() == f"known 0 {CLIENT}"
        assert client.recv(1) == b""


def test_worker_that_leaves_says_so(connect: Served) -> None:
    with connect() as client:
        make_known(client, asking(b"abc"))
        connect.connection()._process.is_draining = True
        client.sendall(asking(b"abc"))
        lines, body = read_answer(client)
        assert b"connection: close" in lines
        assert body.decode() == f"told 3 {CLIENT}"
        assert client.recv(1) == b""


def test_head_that_waits_for_its_body_is_not_lost_when_a_worker_leaves(
    connect: Served,
) -> None:
    head = asking(b"abc")[:-3]
    with connect() as client:
        make_known(client, asking(b"abc"))
        client.sendall(head)
        connection = connect.connection()
        wait_until(lambda: connection._held is not None)
        connection.loop.call_soon_threadsafe(connection.shutdown)
        wait_until(lambda: connection._held is None)
        client.sendall(b"abc")
        lines, body = read_answer(client)
        assert b"connection: close" in lines
        assert body.decode() == f"told 3 {CLIENT}"


@pytest.mark.parametrize(
    ("trusted", "client"), [("127.0.0.1", "203.0.113.7"), ("192.0.2.1", "127.0.0.1")]
)
def test_client_of_a_known_request_is_the_one_that_a_proxy_names(
    monkeypatch: pytest.MonkeyPatch, trusted: str, client: str
) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", trusted)
    asked = asking(b"abc", "/", "x-forwarded-for: 203.0.113.7")
    with served(monkeypatch, "recognising") as connect, connect() as connection:
        make_known(connection, asked)
        assert ask(connection, asked) == f"known 3 '{client}'"


def test_known_requests_are_gone_without_the_garbage_collector(connect: Served) -> None:
    def left() -> int:
        return sum(type(one) is KnownRequest for one in gc.get_objects())

    gc.collect()  # what other tests have left
    gc.disable()
    try:
        before = left()
        with connect() as client:
            for path in ("/", "/asked", "/later"):
                for _ in range(10):
                    ask(client, asking(path=path))
            # The connection remembers its last one, and may not be done with it.
            wait_until(lambda: left() <= before + 1)
    finally:
        gc.enable()


def scope_of(head: bytes) -> dict[str, Any]:
    lines = head.split(b"\r\n")[1:-2]
    headers = [tuple(line.split(b": ", 1)) for line in lines]
    return {"headers": headers, "extensions": {}}


def test_oldest_heads_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_heads, "MAX_HEADS", 3)
    heads = KnownHeads(lambda scope: lambda request: asyncio.sleep(0))
    asked = [asking(path=f"/{n}") for n in range(5)]
    for head in [*asked, *asked]:
        heads.learn("192.0.2.1", head, scope_of(head))
    assert [heads.find(("192.0.2.1", head)) is not None for head in asked] == [
        *(False, False),
        *(True, True, True),
    ]
    assert heads.find(("192.0.2.2", asked[-1])) is None, "another peer's"


def test_heads_that_come_once_are_not_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(known_heads, "MAX_SEEN", 10)
    recognised = []

    def recognise(scope: dict[str, Any]) -> Any:
        recognised.append(scope)
        return lambda request: asyncio.sleep(0)

    heads = KnownHeads(recognise)
    for n in range(1000):
        head = asking(path=f"/{n}")
        heads.learn("192.0.2.1", head, scope_of(head))
        assert len(heads._seen) <= 10
    assert not recognised
    assert heads.find(("192.0.2.1", head)) is None
