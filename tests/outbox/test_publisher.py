"""Messages are sent by a thread, together, and dropped when they can't be sent."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import Any

import pytest
from redis import Redis

from outbox import publisher as module
from outbox.publisher import MAX_WAITING, Publisher
from tests.support.waiting import PATIENCE_SECONDS, wait_until


class Layer:
    """A channel layer that records sent messages. Tests can make it slow or fail."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, int]] = []
        self.open = threading.Event()
        self.open.set()
        self.error: Exception | None = None

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        while not self.open.is_set():
            await asyncio.sleep(0.001)
        if self.error is not None:
            raise self.error
        assert message == {
            "type": "outbox.changed",
            "stream": group.removeprefix("outbox."),
            "number": message["number"],
        }
        self.sent.append((group, message["number"]))


@pytest.fixture
def layer() -> Layer:
    return Layer()


@pytest.fixture
def publisher(layer: Layer) -> Publisher:
    return Publisher(lambda: layer)


def test_changes_that_wait_become_one_message_with_the_highest_number(
    layer: Layer, publisher: Publisher
) -> None:
    layer.open.clear()
    publisher.publish({"first": 1})
    for numbers in ({"s": 2}, {"s": 5, "t": 1}, {"s": 4}):
        publisher.publish(numbers)
    assert not publisher.flush(0.01)
    layer.open.set()
    assert publisher.flush(PATIENCE_SECONDS)
    assert sorted(layer.sent) == [("outbox.first", 1), ("outbox.s", 5), ("outbox.t", 1)]


def test_no_commit_waits_for_a_channel_layer_that_hangs(
    layer: Layer, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SEND_SECONDS", 0.05)
    layer.open.clear()
    for number in range(MAX_WAITING + 100):
        publisher.publish({f"s{number}": 1})
    assert publisher.flush(PATIENCE_SECONDS)
    assert layer.sent == []
    layer.open.set()
    publisher.publish({"after": 1})
    wait_until(lambda: layer.sent == [("outbox.after", 1)])


def test_failures_are_logged_once(
    layer: Layer, publisher: Publisher, caplog: pytest.LogCaptureFixture
) -> None:
    layer.error = ConnectionError("no Redis")
    for number in range(3):
        publisher.publish({"s": number})
        assert publisher.flush(PATIENCE_SECONDS)
    assert caplog.text.count("no Redis") == 1


def test_process_that_ends_sends_its_last_messages(redis_url: str) -> None:
    """For example, a command of `manage.py` ends right after its commit."""
    program = (
        "import django; django.setup();"
        "from outbox.append import publisher; publisher.publish({'last': 7})"
    )
    with Redis.from_url(redis_url) as redis, redis.pubsub() as pubsub:
        pubsub.subscribe("asgi__group__outbox.last")
        assert pubsub.get_message(timeout=PATIENCE_SECONDS) is not None
        subprocess.run([sys.executable, "-c", program], check=True)
        message = pubsub.get_message(timeout=PATIENCE_SECONDS)
    assert message is not None
    assert b"outbox.changed" in message["data"]
