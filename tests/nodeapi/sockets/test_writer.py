"""Limits of unread bytes, for each client and for all together."""

from __future__ import annotations

from nodeapi.frames.writer import (
    MAX_TOTAL_UNREAD_BYTES,
    MAX_UNREAD_BYTES,
    SLOW_READER,
    STALLED_BYTES,
    Backlog,
    FrameWriter,
)

MIB = 2**20


class Line:
    """A connection whose other end reads as many bytes as the test says."""

    def __init__(self) -> None:
        self.waiting_bytes = 0
        self.closed: int | None = None

    def write_text(self, frame: bytes) -> None:
        self.waiting_bytes += len(frame)

    def hang_up(self, code: int, reason: str) -> None:
        self.closed = code


def crowd(count: int) -> tuple[list[Line], list[FrameWriter]]:
    backlog, found = Backlog(), [Line() for _ in range(count)]
    return found, [FrameWriter(line, backlog) for line in found]


def test_one_client_may_leave_so_much_and_one_answer_unread() -> None:
    (line,), (writer,) = crowd(1)
    writer.send(b"x" * MAX_UNREAD_BYTES)
    writer.send(b"x" * MAX_UNREAD_BYTES)
    assert line.closed is None
    writer.send(b"x")
    assert line.closed == SLOW_READER
    assert line.waiting_bytes == 2 * MAX_UNREAD_BYTES


def test_readers_with_most_unread_are_disconnected_first() -> None:
    """A thousand clients never read. Ten of them have fewer unread bytes."""
    lines, writers = crowd(1000)
    for number, writer in enumerate(writers):
        writer.send(b"x" * (MIB // 8 if number < 10 else MIB))
    left = sum(line.waiting_bytes for line in lines if line.closed is None)
    assert left <= MAX_TOTAL_UNREAD_BYTES * 9 // 8
    assert left > MAX_TOTAL_UNREAD_BYTES // 2  # no more clients than necessary
    assert [line.closed for line in lines[:10]] == [None] * 10
    assert {line.closed for line in lines} == {None, SLOW_READER}


def test_frames_that_were_read_are_not_counted() -> None:
    """A thousand clients read everything, so that no bytes are counted."""
    lines, writers = crowd(1000)
    for _ in range(4):
        for line, writer in zip(lines, writers, strict=True):
            writer.send(b"x" * MIB)
            line.waiting_bytes = 0
    assert {line.closed for line in lines} == {None}


def test_short_frames_to_readers_are_not_counted() -> None:
    lagging: list[FrameWriter] = []

    class Listed(Backlog):
        def note(self, writer: FrameWriter, written: int) -> None:
            lagging.append(writer)
            super().note(writer, written)

    line = Line()
    writer = FrameWriter(line, Listed())
    for _ in range(10 * MAX_UNREAD_BYTES // STALLED_BYTES):
        writer.send(b"x" * STALLED_BYTES)
        line.waiting_bytes = 0
    assert line.closed is None
    assert lagging == []
    writer.send(b"x" * (STALLED_BYTES + 1))
    assert lagging == [writer]


def test_slow_client_that_goes_on_reading_is_not_disconnected() -> None:
    line = Line()
    writer = FrameWriter(line, max_unread=32 * MIB)
    writer.send(b"x" * 16 * MIB)
    for _ in range(100):
        line.waiting_bytes -= STALLED_BYTES
        writer.close_if_stalled()
    assert line.closed is None


def test_client_that_has_stopped_reading_is_disconnected() -> None:
    line = Line()
    writer = FrameWriter(line, max_unread=32 * MIB)
    writer.send(b"x" * MIB)
    line.waiting_bytes -= STALLED_BYTES
    for _ in range(3):
        assert line.closed is None
        line.waiting_bytes -= 1
        writer.close_if_stalled()
    line.waiting_bytes -= 1
    writer.close_if_stalled()
    assert line.closed == SLOW_READER
