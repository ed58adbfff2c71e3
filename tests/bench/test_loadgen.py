"""The load generator counts correctly, and does not count errors as answers."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from bench import loadgen
from bench.loadgen import Job, LoadFailed, begin_answer
from bench.questions import http_request
from server import supervisor

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"


@pytest.fixture(scope="module")
def ceiling() -> Iterator[int]:
    """Run the benchmark's minimal application, and return its port."""
    listeners = supervisor.listen("127.0.0.1", 0, 1)
    with supervisor.Server(listeners, os.environ, "bench.ceiling:application"):
        yield listeners[0].getsockname()[1]


def test_headers_determine_the_position_of_the_body() -> None:
    assert begin_answer(ANSWER) == (len(ANSWER) - 5, 5)


def test_a_body_in_one_chunk_is_measured_with_its_end() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n"
    body = b"0123456789\r\n0\r\n\r\n"
    assert begin_answer(head + body) == (len(head), len(body))


@pytest.mark.parametrize(
    "data",
    [
        ANSWER.replace(b"200 OK", b"503 Service Unavailable"),
        ANSWER.replace(b"content-length", b"x-length"),
        ANSWER[:20],
        b"",
    ],
)
def test_what_is_no_answer_is_refused(data: bytes) -> None:
    with pytest.raises(LoadFailed):
        begin_answer(data)


def test_an_answer_of_another_length_is_refused() -> None:
    with pytest.raises(LoadFailed, match="5 bytes instead of 6"):
        begin_answer(ANSWER, expected=6)


def test_small_and_large_answers_are_counted_and_timed(ceiling: int) -> None:
    requests = [http_request(f"/{size}", b"{}") for size in (50, 2_000, 200_000)]
    load = loadgen.run(
        Job(ceiling, requests, connections=4, seconds=5, max_requests=90)
    )
    assert 90 <= load.requests < 94
    assert 0 < load.p50_ms <= load.p99_ms
    assert load.rate == load.requests / load.seconds


def test_a_server_that_answers_with_an_error_fails_the_load(ceiling: int) -> None:
    with pytest.raises(LoadFailed, match="500"):
        loadgen.run(Job(ceiling, [http_request("/nonsense", b"{}")], 1, 0.1))
