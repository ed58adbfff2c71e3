"""Heartbeats over a pipe, with a clock that the test moves."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress

import pytest

from server.heartbeat import TURN_SECONDS, Pulse, TurnClock, beat
from tests.support.waiting import PATIENCE_SECONDS


@pytest.fixture
def pipe() -> Iterator[tuple[Pulse, int]]:
    reader, writer = os.pipe()
    pulse = Pulse(reader)
    yield pulse, writer
    pulse.close()
    with suppress(OSError):
        os.close(writer)


def test_silence_adds_up_until_a_beat_comes(pipe: tuple[Pulse, int]) -> None:
    pulse, writer = pipe
    pulse.read(0.2)
    pulse.read(0.2)
    assert not pulse.has_begun
    assert pulse.silent_seconds == pytest.approx(0.4)
    os.write(writer, b"....")
    pulse.read(0.2)
    assert pulse.has_begun
    assert pulse.silent_seconds == 0
    pulse.read(0.2)
    assert pulse.silent_seconds == 0.2


def test_worker_that_closed_its_pipe_is_silent(pipe: tuple[Pulse, int]) -> None:
    pulse, writer = pipe
    os.close(writer)
    pulse.read(1)
    assert pulse.silent_seconds == 1


def test_time_without_turns_is_not_counted() -> None:
    now = 100.0
    clock = TurnClock(lambda: now)
    now += TURN_SECONDS
    assert clock.turn() == pytest.approx(TURN_SECONDS)
    now += 3600
    assert clock.turn() == 2 * TURN_SECONDS
    now += TURN_SECONDS
    assert clock.turn() == pytest.approx(TURN_SECONDS)


@pytest.mark.parametrize("supervisor", ["does not read", "is gone"])
def test_beats_without_a_reader_are_harmless(supervisor: str) -> None:
    reader, writer = os.pipe()
    if supervisor == "is gone":
        os.close(reader)
    else:
        os.set_blocking(writer, False)
        with suppress(BlockingIOError):
            while True:
                os.write(writer, bytes(4096))

    async def live() -> bool:
        heart = asyncio.create_task(beat(writer))
        done, _ = await asyncio.wait([heart], timeout=1.2)
        heart.cancel()
        await asyncio.wait([heart], timeout=PATIENCE_SECONDS)
        return not done

    assert asyncio.run(live())
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(writer)
    if supervisor != "is gone":
        os.close(reader)
