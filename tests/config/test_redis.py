"""The embedded Redis: a slow server is not started twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from config.embedded import redis
from config.embedded.errors import ServiceError
from tests.support.redis_server import OwnRedis, own_redis


@pytest.fixture
def server() -> Iterator[OwnRedis]:
    with own_redis() as running:
        yield running


def pid_of(server: OwnRedis) -> int:
    with server.server.client() as client:
        pid: int = client.info("server")["process_id"]
        return pid


def test_server_that_does_not_answer_in_time_gets_no_second_one(
    server: OwnRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = pid_of(server)
    os.kill(pid, signal.SIGSTOP)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(redis, "ANSWER_SECONDS", 0.1)
            patch.setattr(redis, "PATIENCE_SECONDS", 0.1)
            server.start()
            with pytest.raises(ServiceError, match="Redis does not stop"):
                server.stop()
    finally:
        os.kill(pid, signal.SIGCONT)
    assert pid_of(server) == pid
