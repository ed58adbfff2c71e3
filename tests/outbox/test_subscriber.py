"""Calls of subscribers: each number once and in order, otherwise to reload."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from typing import Any

import pytest
from channels.layers import channel_layers
from django.db import connection, transaction

from outbox import subscriber as module
from outbox.append import append as append_now
from outbox.models import Entry, Stream
from outbox.pruning import prune
from outbox.reading import MAX_BEHIND
from outbox.streams import MESSAGE_TYPE, group_of
from tests.outbox.conftest import Follower, following
from tests.support.coroutines import scenario
from tests.support.waiting import loop_turns, until
from wallets.serving.threads import in_thread

pytestmark = pytest.mark.django_db(transaction=True)


async def append(stream: str, subject: str) -> None:
    await in_thread(append_now, stream, subject)


def append_many(stream: str, subjects: list[str]) -> None:
    with transaction.atomic():
        for subject in subjects:
            append_now(stream, subject)


@scenario
async def test_changes_arrive_once_and_in_order() -> None:
    async with following("s", "t") as follower:
        for number in range(20):
            await append("s", str(number))
        await append("t", "x")
        await append("other", "y")
        await until(lambda: follower.received["t"])
        assert follower.received == {"s": [str(n) for n in range(20)], "t": ["x"]}


@scenario
async def test_messages_make_it_quick(monkeypatch) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 3600.0)
    async with following("s") as follower:
        await until(lambda: follower.subscriber.has_messages)
        await append("s", "a")
        await until(lambda: follower.received["s"] == ["a"])


class Silent:
    """A channel layer whose messages are lost, as all are while Redis is down."""

    def __init__(self) -> None:
        self.flushed = 0

    async def new_channel(self) -> str:
        raise ConnectionError("no Redis")

    async def flush(self) -> None:
        self.flushed += 1


@scenario
async def test_polling_finds_changes_without_any_message() -> None:
    async with following("s", layer=Silent()) as follower:
        loop = asyncio.get_running_loop()
        for subject in ("a", "b"):
            await append("s", subject)
            began = loop.time()
            await until(lambda subject=subject: subject in follower.received["s"])
            assert loop.time() - began < module.VERIFIED_SECONDS
        assert not follower.subscriber.has_messages


@scenario
async def test_new_subscriber_reloads_once_when_the_position_is_known() -> None:
    await append("s", "before")
    async with following() as follower:
        follower.follow("s")
        follower.follow("empty")
        await follower.subscriber.catch_up()
        assert follower.received == {"s": [None], "empty": [None]}
        second: list[str | None] = []
        follower.subscriber.subscribe("s", second.append, lambda: second.append(None))
        await append("s", "after")
        await until(lambda: second)
        await follower.subscriber.catch_up()
        assert follower.received["s"] == [None, "after"]
        assert second in ([None], [None, "after"])


@scenario
async def test_first_entry_of_a_stream_is_a_change() -> None:
    async with following("s") as follower:
        await append("s", "first")
        await follower.subscriber.catch_up(["s", "unknown"])
        assert follower.received["s"] == ["first"]


@scenario
async def test_ended_subscription_is_not_called() -> None:
    async with following("t") as follower:
        end = follower.follow("s")
        await follower.subscriber.catch_up()
        end()
        end()
        await append("s", "a")
        await append("t", "b")
        await until(lambda: follower.received["t"])
        assert follower.received["s"] == [None]
        follower.follow("s")
        await follower.subscriber.catch_up()
        assert follower.received["s"] == [None, None]


@pytest.mark.parametrize(
    "damage",
    [
        lambda: Entry.objects.filter(number=4).delete(),
        lambda: Stream.objects.update(epoch=uuid.uuid4()),
        lambda: (
            Stream.objects.update(last_number=1),
            Entry.objects.filter(number__gt=1).delete(),
        ),
        lambda: (Stream.objects.all().delete(), Entry.objects.all().delete()),
    ],
    ids=["gap", "other epoch", "set back", "emptied"],
)
@scenario
async def test_subscriber_that_may_have_missed_an_entry_reloads(damage) -> None:
    await in_thread(append_many, "s", ["1", "2", "3"])
    async with following("s", layer=Silent()) as follower:
        follower.connections.fetch, fetch = _refuse, follower.connections.fetch  # type: ignore[method-assign]
        await in_thread(append_many, "s", ["b", "c"])
        await in_thread(damage)
        follower.connections.fetch = fetch  # type: ignore[method-assign]
        await follower.subscriber.catch_up()
        assert follower.received["s"] == [None]
        await append("s", "d")
        await follower.subscriber.catch_up()
        assert follower.received["s"] == [None, "d"]


def _refuse(*_: object) -> Any:
    raise module.Unavailable("not now")


@scenario
async def test_subscriber_that_is_far_behind_reloads(monkeypatch) -> None:
    async with following("s", layer=Silent()) as follower:
        names = [str(number) for number in range(MAX_BEHIND)]
        await in_thread(append_many, "s", names)
        await follower.subscriber.catch_up()
        assert follower.received["s"] == names
        follower.received["s"].clear()
        await in_thread(append_many, "s", [*names, "one more"])
        await follower.subscriber.catch_up()
        assert follower.received["s"] == [None]


@scenario
async def test_failing_subscriber_reloads_and_harms_no_other(caplog) -> None:
    async with following("s", layer=Silent()) as follower:
        calls: list[str | None] = []

        def fail(subject: str | None) -> None:
            calls.append(subject)
            if calls.count(subject) == 1:
                raise ValueError("not today")

        follower.subscriber.subscribe("s", fail, lambda: fail(None))
        await until(lambda: calls == [None, None])
        await append("s", "a")
        await append("s", "b")
        await until(lambda: len(calls) == 4)
        await append("s", "a")
        await until(lambda: len(calls) == 5)
        assert calls == [None, None, "a", None, "a"]
        assert follower.received["s"] == ["a", "b", "a"]
        assert follower.subscriber.epoch > 0
    assert "not today" in caplog.text


@scenario
async def test_message_ahead_of_the_database_is_followed_up(monkeypatch) -> None:
    """This happens if a standby is read that does not have the commit yet.

    Entries that SQL appends directly are not announced by a message.
    """
    monkeypatch.setattr(module, "POLL_SECONDS", 3600.0)
    sender = channel_layers.make_backend("default")
    async with following("s") as follower:
        await until(lambda: follower.subscriber.has_messages)
        reads = 0
        fetch = follower.connections.fetch

        def count(*arguments: Any) -> Any:
            nonlocal reads
            reads += 1
            return fetch(*arguments)

        follower.connections.fetch = count  # type: ignore[method-assign]
        message = {"type": MESSAGE_TYPE, "stream": "s", "number": 1}
        await sender.group_send(group_of("s"), message)
        await until(lambda: reads >= 2)
        await in_thread(_append_in_sql, "s", "late")
        await until(lambda: follower.received["s"] == ["late"])
        # The position is known by now.
        await sender.group_send(group_of("s"), message)
        await sender.group_send(group_of("s"), {**message, "number": 2**62})
        await until(lambda: follower.subscriber._streams["s"].named == 2**62)
        await until(lambda: follower.subscriber._streams["s"].named == 0)
    await sender.flush()


def _append_in_sql(stream: str, subject: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT outbox_append(%s, %s)", [stream, subject])


@scenario
async def test_epoch_ends_when_nothing_can_be_read_and_another_begins() -> None:
    received: list[str] = []
    async with following("s", layer=Silent()) as follower:
        subscriber = follower.subscriber
        subscriber.at_epoch(lambda: received.append(f"epoch {subscriber.epoch}"))
        subscriber.at_lapse(lambda: received.append(f"lapse {subscriber.epoch}"))
        await until(lambda: subscriber.epoch == 1)
        fetch = follower.connections.fetch
        follower.connections.fetch = _refuse  # type: ignore[method-assign]
        loop = asyncio.get_running_loop()
        began = loop.time()
        await until(lambda: subscriber.epoch == 0)
        assert loop.time() - began < module.VERIFIED_SECONDS + 0.5
        await append("s", "in silence")
        follower.connections.fetch = fetch  # type: ignore[method-assign]
        await until(lambda: subscriber.epoch == 2)
        assert follower.received["s"] == ["in silence"]
    assert subscriber.epoch == 0
    assert received[-3:] == ["lapse 0", "epoch 2", "lapse 0"]


@scenario
async def test_epoch_after_a_mistake_begins_when_all_streams_were_read(caplog) -> None:
    known: list[list[str | None]] = []
    async with following("s", layer=Silent()) as follower:
        subscriber = follower.subscriber
        await until(lambda: subscriber.epoch == 1)
        subscriber.at_epoch(lambda: known.append(list(follower.received["s"])))
        fetch = follower.connections.fetch

        def fail(*_: object) -> Any:
            follower.connections.fetch = fetch  # type: ignore[method-assign]
            raise ValueError("a mistake")

        follower.connections.fetch = fail  # type: ignore[method-assign]
        await until(lambda: subscriber.epoch == 2)
        assert known == [[None]]
    assert "a mistake" in caplog.text


@scenario
async def test_callback_that_fails_at_an_epoch_is_called_at_another(caplog) -> None:
    follower = Follower(Silent())
    epochs: list[int] = []

    def fail_once() -> None:
        epochs.append(follower.subscriber.epoch)
        if len(epochs) == 1:
            raise ValueError("not today")

    follower.subscriber.at_epoch(fail_once)
    await follower.subscriber.start()
    await until(lambda: follower.subscriber.epoch == 2)
    assert epochs == [1, 2]
    await follower.close()
    assert "not today" in caplog.text


@scenario
async def test_thousands_of_streams_are_polled_in_several_reads(monkeypatch) -> None:
    monkeypatch.setattr(module, "MAX_STREAMS", 100)
    names = [f"s{number}" for number in range(1050)]
    async with following(*names, layer=Silent()) as follower:
        await until(lambda: follower.subscriber.epoch == 1)
        await in_thread(_append_to_all, names)
        await until(lambda: all(follower.received.values()))
        assert set(map(tuple, follower.received.values())) == {("x",)}
        assert follower.subscriber.epoch == 1


def _append_to_all(names: list[str]) -> None:
    with transaction.atomic():
        for name in names:
            append_now(name, "x")


@scenario
async def test_pruned_entries_are_not_missed_by_subscribers_that_have_read_them() -> (
    None
):
    async with following("s", layer=Silent()) as follower:
        await append("s", "a")
        await follower.subscriber.catch_up()
        assert await in_thread(prune) == 0
        assert await in_thread(prune, timedelta(0)) == 1
        await append("s", "b")
        await follower.subscriber.catch_up()
        assert follower.received["s"] == ["a", "b"]


@scenario
async def test_stop_leaves_no_task() -> None:
    async with following("s") as follower:
        waiting = asyncio.ensure_future(follower.subscriber.catch_up())
        await loop_turns(1)
    await waiting
    assert asyncio.all_tasks() == {asyncio.current_task()}
