"""Clients that send malformed bytes neither flood the log nor hide other lines."""

from __future__ import annotations

import logging
import random
import socket
import struct
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

from config.log_limits import WINDOW_SECONDS, RepeatLimit
from tests.support import web
from tests.support.live import Live, live_service

INVALID = "Invalid HTTP request received."


class Lines(logging.Handler):
    """A handler that collects log records."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    @property
    def texts(self) -> list[str]:
        return [record.getMessage() for record in self.records]


class Clock:
    """A clock that calls scheduled functions when a test lets a minute pass."""

    def __init__(self) -> None:
        self.scheduled: list[Callable[[], None]] = []

    def schedule(self, seconds: float, function: Callable[[], None]) -> None:
        assert seconds == WINDOW_SECONDS
        self.scheduled.append(function)

    def pass_minute(self) -> None:
        due, self.scheduled = self.scheduled, []
        for function in due:
            function()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lines(clock: Clock) -> Iterator[Lines]:
    handler = Lines()
    handler.addFilter(RepeatLimit(clock.schedule))
    logger = logging.getLogger("uvicorn.error")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def test_first_line_is_written_and_the_others_are_counted(clock: Clock, lines: Lines):
    logger = logging.getLogger("uvicorn.error")
    for _ in range(500):
        logger.warning(INVALID)
    assert lines.texts == [INVALID]
    clock.pass_minute()
    assert lines.texts == [INVALID, f"{INVALID} (499 more in the last 60 s)"]
    logger.warning(INVALID)
    assert len(lines.texts) == 2
    clock.pass_minute()
    assert lines.texts[2:] == [f"{INVALID} (1 more in the last 60 s)"]
    assert lines.records[2].levelno == logging.WARNING
    clock.pass_minute()
    assert clock.scheduled == []
    logger.warning(INVALID)
    assert lines.texts[3:] == [INVALID]


def test_kinds_are_counted_apart(clock: Clock, lines: Lines):
    logger = logging.getLogger("uvicorn.error")
    for _ in range(3):
        logger.warning(INVALID)
        logger.warning("Unsupported upgrade request.")
    assert lines.texts == [INVALID, "Unsupported upgrade request."]


def test_every_other_line_is_written(clock: Clock, lines: Lines):
    logger = logging.getLogger("uvicorn.error")
    for number in range(50):
        logger.warning(INVALID)
        try:
            raise RuntimeError(f"fault {number}")
        except RuntimeError:
            logger.exception("Exception in ASGI application\n")
        logger.error("same text")
        logging.getLogger("uvicorn.error.child").warning(INVALID)
    assert lines.texts.count("Exception in ASGI application\n") == 50
    assert lines.texts.count("same text") == 50
    # A line of another logger is of another kind.
    assert lines.texts.count(INVALID) == 51
    with_trace = [record for record in lines.records if record.exc_info]
    assert len(with_trace) == 50


def test_traceback_of_what_a_client_did_is_left_out(clock: Clock, lines: Lines):
    try:
        b"\xff".decode()
    except UnicodeDecodeError:
        logging.getLogger("uvicorn.error").exception(
            "Invalid UTF-8 sequence received from client."
        )
    assert lines.records[0].exc_info is None


# A real server

POST = b"POST /v3 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
UPGRADE = (
    b"GET /ws/dapp HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
)
HANDSHAKE = (
    UPGRADE + b"Sec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
OTHER_UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close, Upgrade\r\nUpgrade: h2c\r\n\r\n"
)


@pytest.fixture
def live(module_db: None) -> Iterator[Live]:
    # When it stops, its log must not contain a traceback.
    with live_service() as running:
        yield running


def send(live: Live, *parts: bytes) -> bytes:
    """Send bytes on a new connection. Return all that is received until it is closed."""
    address = urlsplit(live.base_url)
    received = b""
    with socket.create_connection((address.hostname, address.port), 5) as connection:
        try:
            for part in parts:
                connection.sendall(part)
            while read := connection.recv(65536):
                received += read
        except OSError:
            pass
    return received


def test_hundreds_of_malformed_connections_leave_a_few_lines(live: Live):
    chance = random.Random(7)
    for _ in range(60):
        junk = bytes(chance.randrange(128, 256) for _ in range(chance.randint(4, 60)))
        send(live, junk)
        send(live, POST + junk)
        send(live, POST, POST + junk)  # the second one is being answered
        send(live, GET + junk)
        send(live, GET + HANDSHAKE + junk)
        send(live, OTHER_UPGRADE)
    refused = {send(live, HANDSHAKE).partition(b"\r\n")[0] for _ in range(60)}
    assert refused == {b"HTTP/1.1 401 Unauthorized"}
    with web.Client(base_url=live.base_url) as http:
        assert http.post("/v3", json=[]).status_code == 401  # it still answers
        assert http.get("/nowhere").status_code == 404
    log = live.log()
    assert log.count(INVALID) == 1
    assert log.count("Unsupported upgrade request.") == 1
    assert "without completing handshake" not in log
    assert "Not Found: /nowhere" in log
    assert len(log.splitlines()) < 20, log


def test_clients_that_reset_several_requests_leave_no_traceback(live: Live):
    address = urlsplit(live.base_url)
    at_once = struct.pack("ii", 1, 0)
    for number in range(100):
        with socket.create_connection((address.hostname, address.port), 5) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
            client.sendall(GET * 3)
            # Clients reset at different times: during the first response or the second.
            time.sleep(number % 10 * 0.001)
    with web.Client(base_url=live.base_url) as http:
        assert http.get("/livez").status_code == 200
    assert "Traceback" not in live.log()
